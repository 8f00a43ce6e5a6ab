/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/trainer.h"

#include "common/file.h"
#include "common/json.h"
#include "common/process.h"
#include "study/child.h"
#include "study/paths.h"
#include "study/result.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* ---- What it is told */

const struct dl2_told_value dl2_told[DL2_TOLD_COUNT] = {
    [DL2_TOLD_DATA] = {'d', "DL2_DATA", "the training data"},
    [DL2_TOLD_VAL] = {'v', "DL2_VAL", "the validation data"},
    [DL2_TOLD_ORIGINAL] = {'r', "DL2_ORIGINAL", "the original"},
    [DL2_TOLD_VARIANT] = {'n', "DL2_VARIANT", "the variant's name"},
    [DL2_TOLD_ARCH] = {'m', "DL2_ARCH", "the network"},
    [DL2_TOLD_SEED] = {'s', "DL2_SEED", "the seed"},
    [DL2_TOLD_OUT] = {'o', "DL2_OUT", "the folder for results"},
    [DL2_TOLD_THREADS] = {'t', "DL2_THREADS", "threads"},
    [DL2_TOLD_EPOCHS] = {'e', "DL2_EPOCHS", "epochs"},
    [DL2_TOLD_BATCH] = {'b', "DL2_BATCH", "images a step"},
    [DL2_TOLD_IMAGE_SIZE] = {'p', "DL2_IMAGE_SIZE", "pixels"},
    [DL2_TOLD_DEVICE] = {'g', "DL2_DEVICE", "the device"},
    [DL2_TOLD_ATTEMPT] = {'a', "DL2_ATTEMPT", "the attempt"},
};

size_t dl2_told_of_letter(char letter)
{
    size_t i = 0;
    while (i < DL2_TOLD_COUNT && dl2_told[i].letter != letter)
        i++;
    return i;
}

/* ---- Its files */

const char *dl2_trainer_sum(const char *path)
{
    enum { DIGITS = 64 };
    struct dl2_words command = {0};
    const char *output, *messages;
    dl2_words_more(&command, "sha256sum", "--", path, NULL);
    if (dl2_child_ask(command, &output, &messages) != 0)
        return NULL;
    output += *output == '\\'; /* before the sum of a name that it quotes */
    return strspn(output, "0123456789abcdef") == DIGITS ? dl2_text("%.*s", DIGITS, output) : NULL;
}

/* Bytecode, which Python writes beside scripts as it runs them. */
static bool is_by_the_way(const char *path)
{
    return strstr(path, "__pycache__/") != NULL;
}

static void add_file(json_t *files, const char *variable, const char *text, const char *path)
{
    if (json_object_get(files, path))
        return;
    const char *sum = dl2_trainer_sum(path);
    if (!sum)
        dl2_setting_refuse(variable, text, "%s cannot be read", path);
    dl2_put(files, path, dl2_text_json(sum));
}

/* TRAIN_FILES: of folders all files in them. */
static void add_named_files(json_t *files, const char *text)
{
    const struct dl2_words words = dl2_words_of_command(text);
    for (size_t i = 0; i < words.count; i++) {
        const char *path = words.at[i];
        struct dl2_file_list list;
        struct dl2_error error = DL2_ERROR_INIT;
        if (dl2_is_file(path)) {
            add_file(files, "TRAIN_FILES", text, path);
            continue;
        }
        if (!dl2_is_folder(path))
            dl2_setting_refuse("TRAIN_FILES", text, "%s is neither a file nor a folder", path);
        if (dl2_list_files(path, &list, &error) < 0)
            dl2_setting_refuse("TRAIN_FILES", text, "%s", error.message);
        for (size_t f = 0; f < list.count; f++)
            if (!is_by_the_way(list.paths[f]))
                add_file(files, "TRAIN_FILES", text, dl2_text("%s/%s", path, list.paths[f]));
        dl2_file_list_free(&list);
    }
}

/* An interpreter or another program of the system: it is no part of what the user writes. */
static bool is_binary(const char *path)
{
    static const char elf[] = "\177ELF";
    char begin[4] = "";
    FILE *file = fopen(path, "rb");
    const bool is = file && fread(begin, 1, 4, file) == 4 && memcmp(begin, elf, 4) == 0;
    if (file)
        fclose(file);
    return is;
}

/* The file that a word of the command names, also as --option=FILE; or NULL. */
static const char *file_of_word(const char *word)
{
    const char *value = strchr(word, '=');
    const char *path = dl2_is_file(word) ? word : value ? value + 1 : "";
    return dl2_is_file(path) && !is_binary(path) ? path : NULL;
}

/* ---- What it has to be told */

bool dl2_trainer_names(const struct dl2_trainer *trainer, const char *name)
{
    enum { LARGEST_SCRIPT = 1 << 20 };
    const char *file;
    json_t *sum;
    for (size_t i = 0; i < trainer->command.count; i++)
        if (strstr(trainer->command.at[i], name))
            return true;
    json_object_foreach(trainer->files, file, sum)
    {
        struct dl2_bytes bytes = DL2_BYTES_INIT;
        const bool is_script = dl2_file_read(file, LARGEST_SCRIPT, &bytes, NULL) == DL2_OK;
        const char *text =
            is_script ? dl2_text("%.*s", (int)bytes.size, (const char *)bytes.data) : "";
        dl2_bytes_free(&bytes);
        if (strstr(text, name))
            return true;
    }
    return false;
}

/* Whether the command has the placeholder, or it or a file of it names the variable, or uses
 * dl2.study, which reads all. */
static bool learns(const struct dl2_trainer *trainer, enum dl2_told_number which)
{
    for (size_t i = 0; i < trainer->command.count; i++)
        for (const char *at = trainer->command.at[i]; (at = strchr(at, '%')) && at[1]; at += 2)
            if (at[1] == dl2_told[which].letter)
                return true;
    return dl2_trainer_names(trainer, dl2_told[which].variable) ||
           dl2_trainer_names(trainer, "dl2.study") ||
           dl2_trainer_names(trainer, "from dl2 import study");
}

static void check_placeholders(const struct dl2_trainer *trainer, const char *text)
{
    for (size_t i = 0; i < trainer->command.count; i++)
        for (const char *at = trainer->command.at[i]; (at = strchr(at, '%')); at += 2)
            if (at[1] != '%' && dl2_told_of_letter(at[1]) == DL2_TOLD_COUNT)
                dl2_setting_refuse(trainer->variable, text,
                                   "there is no %%%.1s; --help has what there is, and a percent "
                                   "sign is %%%%",
                                   at + 1);
            else if (!at[1])
                break;
}

static void check_learns(const struct dl2_trainer *trainer, const char *text,
                         enum dl2_told_number which)
{
    if (!learns(trainer, which))
        dl2_setting_refuse(trainer->variable, text,
                           "it is not told %s: put %%%c into it, or read %s from the environment "
                           "in a script that it or TRAIN_FILES names",
                           dl2_told[which].what, dl2_told[which].letter, dl2_told[which].variable);
}

/* ---- Settings */

static bool is_given(const char *text)
{
    return text && text[strspn(text, " \t\r\n")];
}

bool dl2_trainer_is_given(const struct dl2_study_options *options)
{
    return is_given(options->train_with) || is_given(options->evaluate_with) ||
           is_given(options->weights);
}

/* The name of the script in a command, or of its module or program, as a folder may be called. */
static const char *name_of(struct dl2_words command)
{
    const char *path = NULL;
    for (size_t i = 0; i < command.count && !path; i++)
        path = file_of_word(command.at[i]);
    for (size_t i = 0; i + 1 < command.count && !path; i++)
        if (strcmp(command.at[i], "-m") == 0)
            path = command.at[i + 1];
    path = path ? path : command.at[0];
    const char *base = dl2_path_base(path);
    const size_t stem = dl2_path_stem_length(path) - (size_t)(base - path);
    char *name = dl2_text("%.*s", stem ? (int)stem : 64, base);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_", *c))
            *c = '-';
    return *name ? name : "trainer";
}

/* A card is taken where there is one: nobody else's "auto" is known. */
static const char *default_device(const struct dl2_study_options *options)
{
    const bool has_card = options->gpus || access("/dev/nvidia0", F_OK) == 0;
    return is_given(options->weights) ? "auto" : has_card ? "cuda" : "cpu";
}

void dl2_trainer_defaults(struct dl2_study_options *options)
{
    const char *text = is_given(options->train_with)      ? options->train_with
                       : is_given(options->evaluate_with) ? options->evaluate_with
                                                          : dl2_shell_quote(options->weights);
    if (!options->archs)
        options->archs = name_of(dl2_words_of_command(text));
    if (!options->train_flags)
        options->train_flags = "";
    /* A metric may have any unit: 1 would be much of a loss in nats. Weights are dl2-train's. */
    if (!options->tolerance && (is_given(options->train_with) || is_given(options->evaluate_with)))
        options->tolerance = "1%";
    if (!options->device)
        options->device = default_device(options);
}

/* What has no place beside a trainer of the user's. */
static void refuse_others(const struct dl2_study_settings *study, const struct dl2_trainer *trainer)
{
    const struct dl2_study_options *o = &study->options;
    const char *variable = trainer->variable;
    if (*o->train_flags)
        dl2_setting_refuse("TRAIN_FLAGS", o->train_flags,
                           "these are options of dl2-train, and %s is given: put what it needs "
                           "into its command",
                           variable);
    if (*o->forecast)
        dl2_setting_refuse("FORECAST", o->forecast,
                           "it tunes and validates networks of dl2-train, and %s is given",
                           variable);
    if (trainer->evaluates && *o->decide)
        dl2_setting_refuse("DECIDE", o->decide, "it adds seeds, and %s has none", variable);
    if (trainer->evaluates && study->given.seeds)
        dl2_setting_refuse("SEEDS", study->given.seeds, "%s has none: nothing is trained",
                           variable);
}

static void check_archs(const struct dl2_study_settings *study, const struct dl2_trainer *trainer)
{
    const struct dl2_study_options *o = &study->options;
    const struct dl2_words archs = dl2_words_split(o->archs);
    for (size_t i = 0; i < archs.count; i++)
        if (strchr(archs.at[i], '/') || *archs.at[i] == '.')
            dl2_setting_refuse("ARCHS", o->archs,
                               "%s can't be a folder's name: call the network by a short one, and "
                               "have the command, or its script, know the long one",
                               archs.at[i]);
    if (archs.count > 1 && !learns(trainer, DL2_TOLD_ARCH))
        dl2_setting_refuse("ARCHS", o->archs,
                           "%s is not told the network, so all would be the same: put %%m into it, "
                           "or read DL2_ARCH in its script",
                           trainer->variable);
}

/* Who it is, once its result is known. */
static void identify(struct dl2_trainer *trainer)
{
    const char *files = dl2_keep_block(dl2_need(json_dumps(trainer->files, JSON_COMPACT)));
    trainer->identity =
        dl2_text("%s %s %s", dl2_shell_command(trainer->command), trainer->result, files);
}

/* A command of a setting, which has to be told so much; its words and files are checked. */
static struct dl2_trainer *take_command(const struct dl2_study_settings *study,
                                        const char *variable, const char *text,
                                        struct dl2_words command,
                                        const enum dl2_told_number *needed, size_t count)
{
    struct dl2_trainer *trainer = dl2_keep(1, sizeof *trainer, "the trainer");
    *trainer = (struct dl2_trainer){.variable = variable,
                                    .text = text,
                                    .command = command,
                                    .files = dl2_keep_json(json_object())};
    if (!dl2_program_find(command.at[0], (char[PATH_MAX]){0}))
        dl2_setting_refuse(variable, text, "there is no program %s", command.at[0]);
    check_placeholders(trainer, text);
    for (size_t i = 0; i < command.count; i++) {
        const char *file = file_of_word(command.at[i]);
        if (file)
            add_file(trainer->files, variable, text, file);
    }
    add_named_files(trainer->files, study->options.train_files);
    for (size_t i = 0; i < count; i++)
        check_learns(trainer, text, needed[i]);
    trainer->resumes = learns(trainer, DL2_TOLD_ATTEMPT);
    return trainer;
}

/* The command of dl2-train that evaluates a network of its own. */
static struct dl2_words evaluation_of(const struct dl2_study_settings *study)
{
    struct dl2_words command = {0};
    if (!dl2_is_file(study->options.weights))
        dl2_setting_refuse("WEIGHTS", study->options.weights, "there is no such file");
    dl2_words_more(&command, dl2_study_program(study, "dl2-train"), "evaluate",
                   study->options.weights, "--val", "%v", "--out", "%o", "--device", "%g",
                   "--threads", "%t", "-j", "%t", "--quiet", NULL);
    for (size_t i = 0; i < study->decoding.count; i++) { /* its placeholders are its own */
        const char *text = "";
        for (const char *c = study->decoding.at[i]; *c; c++)
            text = dl2_text(*c == '%' ? "%s%%%c" : "%s%c", text, *c);
        dl2_words_add(&command, text);
    }
    return command;
}

static struct dl2_trainer *take_given(const struct dl2_study_settings *study)
{
    static const enum dl2_told_number of_training[] = {DL2_TOLD_DATA, DL2_TOLD_SEED, DL2_TOLD_OUT};
    static const enum dl2_told_number of_evaluation[] = {DL2_TOLD_VAL, DL2_TOLD_OUT};
    const struct dl2_study_options *o = &study->options;
    const char *train = o->train_with, *evaluate = o->evaluate_with, *weights = o->weights;
    if (is_given(train) + is_given(evaluate) + is_given(weights) > 1)
        dl2_setting_refuse(is_given(evaluate) ? "EVALUATE_WITH" : "WEIGHTS",
                           is_given(evaluate) ? evaluate : weights,
                           "a study has one of TRAIN_WITH, EVALUATE_WITH and WEIGHTS");
    if (is_given(train))
        return take_command(study, "TRAIN_WITH", train, dl2_words_of_command(train), of_training,
                            sizeof of_training / sizeof *of_training);
    struct dl2_trainer *trainer =
        is_given(evaluate)
            ? take_command(study, "EVALUATE_WITH", evaluate, dl2_words_of_command(evaluate),
                           of_evaluation, sizeof of_evaluation / sizeof *of_evaluation)
            : take_command(study, "WEIGHTS", weights, evaluation_of(study), NULL, 0);
    trainer->evaluates = true;
    return trainer;
}

const struct dl2_trainer *dl2_trainer_resolve(const struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    const bool of_weights = is_given(o->weights);
    if (!dl2_trainer_is_given(o)) {
        const char *const with_it[][2] = {{"RESULT", o->result}, {"TRAIN_FILES", o->train_files}};
        for (size_t i = 0; i < sizeof with_it / sizeof *with_it; i++)
            if (*with_it[i][1])
                dl2_setting_refuse(with_it[i][0], with_it[i][1],
                                   "it has an effect with TRAIN_WITH or EVALUATE_WITH only");
        return NULL;
    }
    struct dl2_trainer *trainer = take_given(study);
    if (study->unsplit && !trainer->evaluates)
        fprintf(stderr,
                "dl2-study: %s has no splits, such as train and val, and dl2's own rule for that "
                "is not known to others: %s has to split it itself, alike on each variant\n",
                study->data, trainer->variable);
    if (of_weights && *o->result)
        dl2_setting_refuse("RESULT", o->result, "of WEIGHTS it is known");
    dl2_result_check_setting(o->result);
    refuse_others(study, trainer);
    check_archs(study, trainer);
    trainer->result = of_weights ? DL2_RESULT_OF_DL2 : *o->result ? o->result : DL2_RESULT_FILE;
    identify(trainer);
    return trainer;
}

const struct dl2_trainer *dl2_trainer_resolve_sensitivity(const struct dl2_study_settings *study)
{
    static const enum dl2_told_number needed[] = {DL2_TOLD_DATA, DL2_TOLD_OUT};
    const struct dl2_study_options *o = &study->options;
    const bool is_wanted = study->trainer && dl2_words_have(study->tables, "network");
    const bool has_command = is_given(o->sensitivity_with);
    if (is_wanted && study->trainer->evaluates)
        dl2_setting_refuse("TABLES", o->tables,
                           "network tables need a training: for a network as it is, make a file of "
                           "them by `dl2-transcode fit-tables`, and give CODECS=jpeg:tables=FILE");
    if (is_wanted && !has_command)
        dl2_setting_refuse("TABLES", o->tables,
                           "network tables of what TRAIN_WITH trains need SENSITIVITY_WITH, a "
                           "command that writes %%o/" DL2_SENSITIVITY_FILE
                           " (in Python, dl2.study.sensitivity)");
    if (!is_wanted && has_command)
        dl2_setting_refuse("SENSITIVITY_WITH", o->sensitivity_with,
                           "it has an effect with TRAIN_WITH and network among TABLES only");
    if (!is_wanted)
        return NULL;
    struct dl2_trainer *trainer = take_command(study, "SENSITIVITY_WITH", o->sensitivity_with,
                                               dl2_words_of_command(o->sensitivity_with), needed,
                                               sizeof needed / sizeof *needed);
    trainer->result = DL2_SENSITIVITY_FILE;
    identify(trainer);
    return trainer;
}
