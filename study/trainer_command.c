/* SPDX-License-Identifier: BSD-2-Clause */
/* A trainer's command as a training runs it, and what its report begins with. */
#include "study/paths.h"
#include "study/trainer.h"

#include <stdlib.h>
#include <string.h>

/* ---- The command */

/* The word with the values that are not NULL in the place of placeholders. Where any is NULL, a
 * percent sign stays doubled for the next time. */
static const char *fill(const char *word, const char *const values[DL2_TOLD_COUNT])
{
    bool is_last = true;
    for (size_t i = 0; i < DL2_TOLD_COUNT; i++)
        is_last = is_last && values[i];
    const char *text = "";
    while (*word) {
        const size_t plain = strcspn(word, "%");
        text = dl2_text("%s%.*s", text, (int)plain, word);
        word += plain;
        if (!*word)
            break;
        const size_t which = dl2_told_of_letter(word[1]);
        const char *value = word[1] == '%' ? "%" : which < DL2_TOLD_COUNT ? values[which] : NULL;
        if (!value)
            text = dl2_text("%s%%%c", text, word[1]);
        for (; value && *value; value++)
            text = dl2_text(*value == '%' && !is_last ? "%s%%%c" : "%s%c", text, *value);
        word += 1 + (word[1] != '\0');
    }
    return text;
}

static struct dl2_words fill_all(struct dl2_words words, const char *const values[DL2_TOLD_COUNT])
{
    struct dl2_words filled = {0};
    for (size_t i = 0; i < words.count; i++)
        dl2_words_add(&filled, fill(words.at[i], values));
    return filled;
}

/* Folders as they are from anywhere: scripts change theirs. */
static const char *place_of(const struct dl2_study_settings *study, const char *name)
{
    const char *place = dl2_study_place(study, name);
    return strstr(place, "://") ? place : dl2_path_absolute(place);
}

struct dl2_words dl2_trainer_command(const struct dl2_study_settings *study,
                                     const struct dl2_trainer *trainer,
                                     const struct dl2_training *training, const char *out,
                                     unsigned at_once)
{
    const struct dl2_study_options *o = &study->options;
    const char *const values[DL2_TOLD_COUNT] = {
        [DL2_TOLD_DATA] = place_of(study, training->name),
        [DL2_TOLD_VAL] = place_of(study, training->validated),
        [DL2_TOLD_ORIGINAL] = place_of(study, "raw"),
        [DL2_TOLD_VARIANT] = training->name,
        [DL2_TOLD_ARCH] = training->arch,
        [DL2_TOLD_SEED] = training->seed,
        [DL2_TOLD_OUT] = dl2_path_absolute(out),
        [DL2_TOLD_THREADS] = dl2_text("%u", dl2_study_threads(study, at_once)),
        [DL2_TOLD_EPOCHS] = o->epochs,
        [DL2_TOLD_BATCH] = o->batch,
        [DL2_TOLD_IMAGE_SIZE] = o->image_size,
        [DL2_TOLD_DEVICE] = o->device,
    };
    struct dl2_words words = {0};
    dl2_words_add(&words, "env");
    for (size_t i = 0; i < DL2_TOLD_COUNT; i++)
        dl2_words_add(&words, dl2_text("%s=%%%c", dl2_told[i].variable, dl2_told[i].letter));
    if (!getenv("OMP_NUM_THREADS")) /* else each training would take all processors */
        dl2_words_add(&words, "OMP_NUM_THREADS=%t");
    dl2_words_add_all(&words, trainer->command);
    return fill_all(words, values);
}

struct dl2_words dl2_trainer_attempt(struct dl2_words command, unsigned attempt)
{
    const char *values[DL2_TOLD_COUNT];
    for (size_t i = 0; i < DL2_TOLD_COUNT; i++)
        values[i] = dl2_text("%u", attempt); /* the others are filled in */
    return fill_all(command, values);
}

/* ---- The report */

static json_t *validation_set(const struct dl2_study_settings *study, const char *name)
{
    json_t *set = dl2_need(json_object());
    dl2_put(set, "name", dl2_text_json(name));
    dl2_put(set, "path", dl2_text_json(dl2_study_place(study, name)));
    return set;
}

json_t *dl2_trainer_report(const struct dl2_study_settings *study,
                           const struct dl2_trainer *trainer, const struct dl2_training *training,
                           unsigned at_once)
{
    const struct dl2_study_options *o = &study->options;
    json_t *report = dl2_keep_json(json_object()), *own = dl2_need(json_object());
    json_t *comparable = dl2_need(json_object()), *sets = dl2_need(json_array());
    json_t *arguments = dl2_need(json_object());
    dl2_put(report, "schema", dl2_text_json("dl2-experiment/1"));
    dl2_put(report, "variant", dl2_text_json(training->name));
    dl2_put(report, "arch", dl2_text_json(training->arch));
    dl2_put(report, "seed", json_integer((json_int_t)strtoull(training->seed, NULL, 10)));
    dl2_put(report, "device", dl2_text_json(o->device));
    dl2_put(own, "command", dl2_words_json(trainer->command));
    dl2_put(own, "files", json_incref(trainer->files));
    dl2_put(own, "result", dl2_text_json(trainer->result));
    dl2_put(report, "trainer", own);
    if (trainer->evaluates)
        dl2_put(report, "inference", json_true());
    dl2_put(arguments, "trainers", json_integer(at_once));
    dl2_put(report, "arguments", arguments);
    dl2_put(comparable, "trainer", dl2_text_json(dl2_shell_command(trainer->command)));
    dl2_put(comparable, "result", dl2_text_json(trainer->result));
    dl2_put(comparable, "files", json_incref(trainer->files));
    dl2_put(comparable, "epochs", dl2_text_json(o->epochs));
    dl2_put(comparable, "batch", dl2_text_json(o->batch));
    dl2_put(comparable, "image-size", dl2_text_json(o->image_size));
    dl2_put(report, "comparable", comparable);
    if (json_array_append_new(sets, validation_set(study, training->validated)) < 0 ||
        (strcmp(training->validated, "raw") != 0 && !trainer->evaluates &&
         json_array_append_new(sets, validation_set(study, "raw")) < 0))
        dl2_need(NULL);
    dl2_put(report, "final", sets);
    return report;
}
