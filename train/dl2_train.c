/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-train: trains a network on a dataset and reports its accuracy. */
#include "config.h"

#include "codec/codec.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "common/quote.h"
#include "common/scope.h"
#include "device/device.h"
#include "network/arch.h"
#include "network/network.h"
#include "pixels/augment.h"
#include "ranks/world.h"
#include "train/several/configs.h"
#include "train/several/hop.h"
#include "train/several/makespan.h"
#include "train/several/search.h"
#include "train/train_console.h"
#include "train/train_options.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <zlib.h>

enum list { LIST_ARCHS, LIST_DEVICES, LIST_AUGMENTATIONS, LIST_NOT_MEASURED, LIST_NOTHING };
static const char *const lists[] = {[LIST_ARCHS] = "archs",
                                    [LIST_DEVICES] = "devices",
                                    [LIST_AUGMENTATIONS] = "augmentations",
                                    [LIST_NOT_MEASURED] = "not-measured",
                                    NULL};

enum share { SHARE_BATCH, SHARE_DECODE };
static const char *const shares[] = {[SHARE_BATCH] = "batch", [SHARE_DECODE] = "decode", NULL};

/* A positive number for each rank. */
struct rank_numbers {
    unsigned count; /* 0: not given */
    double of[64];
};

static struct {
    struct dl2_train_settings train;
    unsigned list, share;
    struct rank_numbers speeds, links;
    const char *configs;
    bool hop, task, plan;
    unsigned hop_order;
    bool in_database;
    struct dl2_search_options search;
    double budget; /* seconds of a search; NAN: none */
} settings = {.list = LIST_NOTHING, .search = DL2_SEARCH_DEFAULTS, .budget = NAN};

/* Several models are trained together. */
static bool has_several(void)
{
    return settings.configs || settings.search.space;
}

static struct dl2_train_config *const config = &settings.train.config;

/* Each rank trains one model at a time. */
static bool goes_by_ranks(void)
{
    return settings.hop || settings.task;
}

enum command { RUN, EVALUATE, MEASURE, SEVERAL, SEARCH, PLAN };

static volatile sig_atomic_t stop;
static bool budget_ended;

static void on_signal(int number)
{
    stop = number;
}

static struct dl2_command commands[] = {
    [RUN] = {"run", DL2_RUN, "", 0, 0, "Train a network, and report its accuracy",
             NULL}, /* main() adds the details */
    [EVALUATE] = {"evaluate", DL2_EVALUATION, "FILE", 1, 1, "Validate a network that was trained",
                  "Validates the network of FILE, a checkpoint or an --export, on each --val, and "
                  "writes evaluation_report.json. Settings that are not given are those of its "
                  "run."},
    [MEASURE] = {"measure", DL2_MEASURING, "", 0, 0, "Measure how fast a training would be",
                 "Trains for --duration or an epoch to warm up, then for --duration or a little "
                 "longer, without validation and checkpoint, and writes rate_report.json."},
    [SEVERAL] = {"several", DL2_SEVERAL, "", 0, 0, "Train the models of a list together", NULL},
    [SEARCH] =
        {"search", DL2_SEARCH, "", 0, 0, "Search for the best settings",
         "Finds the configuration with the best --objective in a space of settings, and writes "
         "DIR/" DL2_SEARCH_FILE " [DIR: experiments/search]. Exit status: 0 if a best model "
         "was found, also by the end of --budget, 1 if all diverged."},
    [PLAN] =
        {"plan", DL2_PLANNING, "", 0, 0, "Predict how long several or a search will take",
         "Trains only the first epoch of each model on --ranks, in DIR/plan, and predicts from "
         "the times of these visits how long all epochs take, with --hop, with --task, and "
         "with a barrier."},
    {0},
};

enum { BOTH = DL2_SEVERAL | DL2_SEARCH };

/* "1,1,0.5" */
static int parse_rank_numbers(const char *text, void *value, struct dl2_error *error)
{
    struct rank_numbers *numbers = value;
    numbers->count = 0;
    for (const char *at = text;; at++) {
        char *end;
        const double number = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(number) || !(number > 0) ||
            numbers->count == sizeof numbers->of / sizeof *numbers->of)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "'%s' is not a list of at most %zu numbers above 0, one for each "
                                 "rank, such as 1,1,0.5",
                                 text, sizeof numbers->of / sizeof *numbers->of);
        numbers->of[numbers->count++] = number;
        if (!*(at = end))
            return DL2_OK;
    }
}

static const struct dl2_option options[] = {
    {DL2_OPTION_TABLE, .table = dl2_train_options},
    {DL2_OPTION_GROUP, .help = "Options for several models:"},
    {DL2_OPTION_TEXT, "configs", 0, "FILE",
     "Models to train on images that are decoded once for all (see --share): FILE "
     "has a JSON object on each line, with a name and options that differ, as in {\"name\": \"a\", "
     "\"lr\": 0.1}; the report of each is in DIR/NAME",
     offsetof(__typeof__(settings), configs), .commands = DL2_SEVERAL | DL2_PLANNING},
    {DL2_OPTION_TEXT, "space", 0, "FILE",
     "Settings to search, a JSON object of lists and ranges, as in {\"lr\": {\"min\": 0.001, "
     "\"max\": 0.3, \"scale\": \"log\"}, \"optimizer\": [\"sgd\", \"adamw\"]}",
     offsetof(__typeof__(settings), search.space), .commands = DL2_SEARCH | DL2_PLANNING},
    {DL2_OPTION_CHOICE, "share", 0, "WHAT",
     "What models that are trained together share: batch: the same images in the same batches, "
     "with the same crops; decode: only decoded images, in a cache of the size of "
     "--cache-decoded, while each model has the order and the crops of its own seed",
     offsetof(__typeof__(settings), share), .words = shares, .commands = BOTH},
    {DL2_OPTION_FLAG, "hop", 0, NULL,
     "With --ranks or mpirun: each rank keeps a partition of the training images, and the models "
     "go from rank to rank, so that each visits every partition once in an epoch; all ranks must "
     "see --out",
     offsetof(__typeof__(settings), hop), .commands = BOTH},
    {DL2_OPTION_CHOICE, "hop-order", 0, "ORDER",
     "Which of the models that are furthest behind a free rank of --hop takes: random, by --seed; "
     "or fixed: model I visits partitions I, I + 1 and so on, for the same weights in every run",
     offsetof(__typeof__(settings), hop_order), .words = dl2_hop_order_words,
     .commands = DL2_TOGETHER},
    {DL2_OPTION_FLAG, "in-database", 0, NULL,
     "With --hop and --data postgresql://..., one table or one a rank: the server trains, by its "
     "extension dl2, and no training image leaves it; dl2-train validates",
     offsetof(__typeof__(settings), in_database), .commands = DL2_TOGETHER},
    {DL2_OPTION_FLAG, "task", 0, NULL,
     "With --ranks or mpirun: each rank trains one model at a time, from its beginning to its end, "
     "on all training images; all ranks must see --out",
     offsetof(__typeof__(settings), task), .commands = BOTH},
    {DL2_OPTION_PARSE, "rank-speeds", 0, "N,...",
     "Speeds of the ranks that are planned for, as multiples of those of --ranks here",
     offsetof(__typeof__(settings), speeds), .parse = parse_rank_numbers, .unset = "all alike",
     .commands = DL2_PLANNING},
    {DL2_OPTION_PARSE, "rank-bandwidth", 0, "MB/S,...",
     "Megabytes a second to and from each rank, by which models reach it and leave it",
     offsetof(__typeof__(settings), links), .parse = parse_rank_numbers,
     .unset = "as on this machine", .commands = DL2_PLANNING},
    {DL2_OPTION_CHOICE, "objective", 0, "FIGURE",
     "What models are compared by, on the first validation set: accuracy, the highest; or loss, "
     "the lowest",
     offsetof(__typeof__(settings), search.goal), .words = dl2_search_goal_words,
     .commands = DL2_SEARCH},
    {DL2_OPTION_CHOICE, "algorithm", 0, "NAME",
     "How the search goes: grid, every combination of the lists; random, combinations drawn with "
     "--seed; halving, random ones that all train for a few epochs, then the best of them for "
     "more, round after round; or asha, where the best so far go on before a round is complete",
     offsetof(__typeof__(settings), search.algorithm), .words = dl2_search_words,
     .commands = DL2_SEARCH | DL2_PLANNING},
    {DL2_OPTION_UINT, "trials", 0, "N", "Number of combinations that random, halving and asha draw",
     offsetof(__typeof__(settings), search.trials), .min = 1, .max = 4096,
     .commands = DL2_SEARCH | DL2_PLANNING},
    {DL2_OPTION_UINT, "max-concurrent", 0, "N", "Number of models that are trained at once",
     offsetof(__typeof__(settings), search.at_once), .min = 1, .max = 4096,
     .commands = DL2_SEARCH | DL2_PLANNING},
    {DL2_OPTION_UINT, "reduction-factor", 0, "N",
     "Factor of halving and asha: each round is N times as long as the one before, and one of N "
     "models goes on to it",
     offsetof(__typeof__(settings), search.eta), .min = 2, .max = 100, .commands = DL2_SEARCH},
    {DL2_OPTION_REAL, "min-epochs", 0, "N",
     "Length of the first round of halving and asha, in epochs",
     offsetof(__typeof__(settings), search.first_epochs), .min = 1, .max = 1e9,
     .commands = DL2_SEARCH},
    {DL2_OPTION_PARSE, "budget", 0, "TIME",
     "End the search after this time, for example 2h, with the best model so far; with --resume it "
     "goes on for this time",
     offsetof(__typeof__(settings), budget), .parse = dl2_parse_duration, .commands = DL2_SEARCH},
    {DL2_OPTION_GROUP, .help = "Options for scripts:"},
    {DL2_OPTION_CHOICE, "list", 0, "WHAT",
     "Check the other options, list what this build has, and exit: archs (name, default image "
     "size, optimizer, millions of multiply-adds, frames of a clip, depth of a volume or 0, what "
     "is learnt, description), devices "
     "(name, version, usable or why not; with --device, "
     "that one alone), augmentations (name with its settings and their defaults, description) or "
     "not-measured (options that measure lacks, with their argument); one line each, with tabs "
     "between the columns",
     offsetof(__typeof__(settings), list), .words = lists, .commands = DL2_RUN},
    {DL2_OPTION_END},
};

static void print_versions(FILE *out)
{
    dl2_codec_print_versions(out);
    fprintf(out, "  zlib %s\n", zlibVersion());
    for (size_t i = 0; dl2_device_at(i); i++)
        fprintf(out, "  device %s: %s\n", dl2_device_at(i)->name, dl2_device_at(i)->version());
    for (size_t i = 0; dl2_world_at(i); i++)
        fprintf(out, "  ranks by %s: %s\n", dl2_world_at(i)->name, dl2_world_at(i)->version());
}

static struct dl2_program program = {
    .name = "dl2-train",
    .summary = "Train a network on a dataset, validate it on one or several, and write "
               "experiment_report.json.",
    .details =
        "SIGINT and SIGTERM stop a run after its step, with a checkpoint and a report. --resume "
        "then leads to the same weights, bit for bit, on the same device with as many --threads. "
        "With another --batching than strict it goes on with the images that the epoch has not "
        "had.\n\n"
        "Exit status: 0 the run ended, or stopped where --run-epochs told it to; 1 something "
        "failed, a run or one of several models diverged, or a signal stopped it; 2 wrong usage, "
        "or mistakes in FILE of --configs or --space.",
    .examples = "  $ dl2-train -d photos\n"
                "  $ dl2-train measure -d photos\n"
                "  $ dl2-train -d variants/jpeg-25 --val photos -e 60 --out run1\n"
                "  $ dl2-train evaluate run1/checkpoint.safetensors --val variants/jpeg-10\n"
                "  $ dl2-train --stages variants/jpeg-10:45,photos:15 -a resnet50\n"
                "  $ dl2-train -d photos --time-budget 10m\n"
                "  $ dl2-train several -d photos -e 10 --configs rates.jsonl --out rates\n"
                "  $ dl2-train several -d photos --configs rates.jsonl --hop --ranks 2 --out hop\n"
                "  $ dl2-train search -d photos --space space.json",
    .options = options,
    .values = &settings,
    .commands = commands,
    .has_default = true,
    .print_versions = print_versions,
};

static void print_model_options(FILE *out, unsigned role)
{
    const struct dl2_train_settings defaults = dl2_train_defaults();
    json_auto_t *all = dl2_options_json(dl2_train_options, &defaults);
    json_auto_t *own = dl2_options_select(dl2_train_options, all, role);
    const char *name, *comma = "";
    json_t *unused;
    json_object_foreach(own, name, unused)
    {
        fprintf(out, "%s%s", comma, name);
        comma = ", ";
    }
}

static char *describe(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fprintf(out, "Architectures, with the default of --image-size, and millions of "
                 "multiply-adds of an image at that size, or of a clip of its --frames, or of a "
                 "patch of a volume:\n");
    const struct dl2_arch *arch;
    for (size_t i = 0; (arch = dl2_arch_at(i)); i++) {
        fprintf(out, "  %-12s %3u %5.0f %s", arch->name, arch->image_size,
                1e-6 * dl2_arch_multiply_adds(arch, arch->image_size), arch->summary);
        if (arch->labels != DL2_LABEL_CLASS)
            fprintf(out, "; with --mask");
        if (arch->labels == DL2_LABEL_VOLUME)
            fprintf(out, "; --image-size %ux%ux%u", arch->frames, arch->image_size,
                    arch->image_size);
        else if (arch->frames)
            fprintf(out, "; --frames %u", arch->frames);
        fputc('\n', out);
    }
    fprintf(out, "\nOptimizers, with the defaults of --lr, --weight-decay and --beta2:\n");
    for (int i = 0; dl2_optimizer_words[i]; i++) {
        const struct dl2_optimizer_facts *facts = dl2_optimizer_facts((enum dl2_optimizer)i);
        char beta2[32] = "-";
        if (facts->adaptive)
            snprintf(beta2, sizeof beta2, "%g", facts->beta2);
        fprintf(out, "  %-8s %-6g %-6g %-5s %s\n", dl2_optimizer_words[i], facts->rate,
                facts->weight_decay, beta2, facts->summary);
    }
    fprintf(out, "\nOptions that models of several may differ in:\n  ");
    print_model_options(out, DL2_OPTION_MODEL);
    fprintf(out, ".\nWith --hop and --task also in:\n  ");
    print_model_options(out, DL2_OPTION_ALONE);
    fputs(".", out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void list_devices(void)
{
    const struct dl2_device_options how = {.threads = config->threads,
                                           .precision = config->precision,
                                           .loss_scale = config->loss_scale,
                                           .deterministic = config->deterministic};
    dl2_device_list(config->device, &how, stdout);
}

static void list_augmentations(void)
{
    char *text;
    const char *summary;
    for (size_t i = 0; dl2_augmentation_row(i, &text, &summary); i++, free(text))
        printf("%s\t%s\n", text, summary);
}

/* -- running -- */

static json_t *library_versions(void)
{
    json_t *versions = dl2_codec_versions();
    json_object_set_new(versions, "dl2", json_string(PACKAGE_VERSION));
    json_object_set_new(versions, "jansson", json_string(JANSSON_VERSION));
    json_object_set_new(versions, "zlib", json_string(zlibVersion()));
    return versions;
}

/* A second signal ends the program as it would any other. A rank's comes from who started it, and
 * from the terminal, too. */
static void heed_signals(bool started)
{
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = started ? 0 : (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Stops the models when the search has had its time. */
static void start_budget(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    if (isnan(settings.budget))
        return;
    const double left = fmax(1e-3, settings.budget - (dl2_clock_wall() - config->run.started));
    struct itimerval timer = {.it_value.tv_sec = (time_t)fmin(left, 1e9)};
    timer.it_value.tv_usec = (suseconds_t)((fmin(left, 1e9) - (double)timer.it_value.tv_sec) * 1e6);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void complete_model(struct dl2_train_model *model, struct dl2_world *world, json_t *versions)
{
    model->events = dl2_train_console_events(model);
    model->config.run.stop = &stop;
    model->config.world = world;
    model->config.run.versions = versions;
}

static int train(struct dl2_world *world)
{
    struct dl2_train_model model = {.config = *config};
    struct dl2_train_result *result = &model.result;
    struct dl2_error error = DL2_ERROR_INIT;
    json_auto_t *versions = library_versions();
    heed_signals(world && !world->ops->open);
    config->world = world;
    dl2_train_console.rank = dl2_world_rank(world);
    complete_model(&model, world, versions);
    const int status = config->run.evaluate      ? dl2_evaluate(&model, &error)
                       : config->run.measure > 0 ? dl2_measure(&model, &error)
                                                 : dl2_train(&model, &error);
    dl2_train_console_end_bar();
    const bool first = dl2_world_rank(world) == 0;
    const bool told = world && !result->common && status != DL2_ERR_CANCELED; /* by the event */
    if (status < 0 && first && !told)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    if (status < 0)
        return first || !result->common ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    if (first && !result->completed && config->loader.partitions && !result->stopped)
        fprintf(stderr,
                "%s: at epoch %.4g; --resume with a --partition that it has not visited goes on\n",
                program.name, result->position);
    else if (first && !result->completed)
        fprintf(stderr,
                "%s: stopped at epoch %.4g; the same command with --resume goes on from there\n",
                program.name, result->position);
    /* The others have nothing to say; what is theirs alone is told above. */
    return first && result->stopped ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}

static void tell_hop(const char *text)
{
    dl2_train_console_end_bar();
    fprintf(stderr, "%s: %s\n", program.name, text);
}

/* Trains models that go from rank to rank. Returns a status. */
static int hop_models(struct dl2_train_model *models, size_t count, struct dl2_world *world,
                      const struct dl2_hop_plan *plan, struct dl2_hop_result *result,
                      struct dl2_error *error)
{
    const struct dl2_hop_options how = {.whole = settings.task,
                                        .plan = plan,
                                        .order = (enum dl2_hop_order)settings.hop_order,
                                        .seed = config->seed,
                                        .out = config->run.out,
                                        .world = world,
                                        .note = tell_hop};
    const int status = dl2_train_hopping(models, count, &how, result, error);
    const bool first = dl2_world_rank(world) == 0;
    if (status < 0 && !first && !result->common)
        dl2_train_console_failed(error);
    if (status == DL2_OK && first && !dl2_train_console.quiet && settings.task)
        printf("%zu models on %u ranks, which were busy for %.0f%% of the time; %.2f MB of "
               "checkpoints moved between them\n",
               count, dl2_world_size(world), 100 * result->busy, (double)result->bytes_moved / 1e6);
    else if (status == DL2_OK && first && !dl2_train_console.quiet)
        printf("%llu visits, %.2f MB of checkpoints moved between %u ranks, which were busy for "
               "%.0f%% of the time\n",
               (unsigned long long)result->visits, (double)result->bytes_moved / 1e6,
               dl2_world_size(world), 100 * result->busy);
    return status;
}

/* Trains the models together. One that diverges is a failure, which its note has told, but in a
 * search. */
static int train_models_in(struct dl2_train_model *models, size_t count, struct dl2_world *world,
                           const struct dl2_hop_plan *plan)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_hop_result hop = {.visits = 0};
    json_auto_t *versions = library_versions();
    heed_signals(world && !world->ops->open);
    config->world = world;
    dl2_train_console.rank = dl2_world_rank(world);
    for (size_t i = 0; i < count; i++)
        complete_model(&models[i], NULL, versions);
    const int status = goes_by_ranks() ? hop_models(models, count, world, plan, &hop, &error)
                                       : dl2_train_models(models, count, &error);
    dl2_train_console_end_bar();
    if (dl2_world_rank(world) > 0) /* rank 0 has the results, and errors of all */
        return status < 0 && !hop.common ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    if (status < 0)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    bool failed = status < 0, stopped = false, unfinished = false;
    for (size_t i = 0; i < count && status == DL2_OK; i++) {
        const struct dl2_train_result *result = &models[i].result;
        stopped |= result->stopped;
        failed |= result->stopped || (result->diverged && settings.configs);
        unfinished |= !result->completed && !result->diverged && !settings.plan;
    }
    budget_ended = stopped && stop == SIGALRM;
    if (budget_ended)
        fprintf(stderr, "%s: the budget is used up; --resume goes on from there\n", program.name);
    else if (stopped || (unfinished && settings.configs))
        fprintf(stderr, "%s: stopped; the same command with --resume goes on from there\n",
                program.name);
    return failed ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}

static int train_models(struct dl2_train_model *models, size_t count)
{
    return train_models_in(models, count, NULL, NULL);
}

/* Whether this process trains; else *exit_status is its own. */
static bool open_world(struct dl2_world **world, int *exit_status)
{
    const struct dl2_world_options world_options = {settings.train.world,
                                                    dl2_train_options_ranks(&settings.train)};
    struct dl2_error error = DL2_ERROR_INIT;
    if (world_options.ranks)
        heed_signals(true); /* a rank can be told to stop as soon as it is started */
    const int status = dl2_world_open(&world_options, world, exit_status, &error);
    if (error.status)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    if (status < 0)
        *exit_status = DL2_EXIT_FAILED;
    return status == DL2_OK;
}

/* Opens the world of ranks that train one model each at a time. As open_world(). */
static bool open_ranks(struct dl2_world **world, int *exit_status)
{
    if (!open_world(world, exit_status))
        return false;
    config->world = *world;
    if (*world)
        return true;
    *exit_status = dl2_program_usage_error(
        &program, "--%s needs several ranks: --ranks N, or mpirun", settings.hop ? "hop" : "task");
    return false;
}

/* The rows of the table that ends a search. */
enum { MAX_ROWS = 20 };

static void tell_round(const char *line)
{
    dl2_train_console_end_bar();
    printf("%s\n", line);
    fflush(stdout);
}

static int tell_found(struct dl2_search *search)
{
    const struct dl2_search_result result = dl2_search_result(search);
    if (!result.name) {
        fprintf(stderr, "%s: no model of the search has learned: %s\n", program.name,
                budget_ended ? "--budget ended before any validation" : "all diverged");
        return DL2_EXIT_FAILED;
    }
    DL2_AUTO_FREE char *text = json_dumps(result.settings, JSON_COMPACT | JSON_REAL_PRECISION(12));
    if (!dl2_train_console.quiet)
        dl2_search_print(search, MAX_ROWS, stdout);
    printf("best%s: ", budget_ended ? " so far" : "");
    if (settings.search.goal == DL2_SEARCH_LOSS)
        printf("loss %.4f, ", result.loss);
    printf("accuracy %.2f%%, %s\n", 100 * result.accuracy, text ? DL2_SHOWN(text) : "");
    printf("%.4g epochs of training in all; with every model to its end %.4g\n", result.trained,
           result.all);
    return DL2_EXIT_OK;
}

/* -- a plan -- */

/* A time for people: "25 s", "3 min 20 s", "2 h 05 min". */
static const char *time_text(double seconds, char text[32])
{
    const unsigned long whole = (unsigned long)fmin(seconds + 0.5, 1e15);
    if (whole < 60)
        snprintf(text, 32, "%.3g s", seconds);
    else if (whole < 3600)
        snprintf(text, 32, "%lu min %02lu s", whole / 60, whole % 60);
    else
        snprintf(text, 32, "%lu h %02lu min", whole / 3600, whole / 60 % 60);
    return text;
}

/* Prints what the visits of the first epoch predict. */
static int print_plan(const struct dl2_makespan_model *models, size_t count, unsigned ranks,
                      struct dl2_error *error)
{
    /* A search begins a model where a rank is idle; --configs has all in training. */
    const struct dl2_makespan_options how = {
        .ranks = ranks,
        .at_once = settings.configs ? 0 : settings.search.at_once,
        .order = (enum dl2_hop_order)settings.hop_order,
        .seed = config->seed,
        .speeds = settings.speeds.count ? settings.speeds.of : NULL,
        .links = settings.links.count ? settings.links.of : NULL};
    double work = 0;
    for (unsigned rank = 0; rank < settings.links.count; rank++)
        settings.links.of[rank] *= 1e6; /* bytes a second */
    for (size_t i = 0; i < count; i++)
        work += models[i].epochs * (ranks * models[i].visit + models[i].validate);
    char text[32];
    printf("%zu models on %u ranks, predicted from their first epochs: %s of work\n", count, ranks,
           time_text(work, text));
    for (int way = 0; way < DL2_MAKESPAN_WAYS; way++) {
        struct dl2_makespan makespan;
        DL2_TRY(dl2_makespan((enum dl2_makespan_way)way, models, count, &how, &makespan, error));
        printf("  %-24s %12s, ranks busy for %.0f%% of it\n", dl2_makespan_words[way],
               time_text(makespan.seconds, text), 100 * makespan.busy);
    }
    return DL2_OK;
}

/* Refuses lists that do not have a number for each rank. */
static int check_rank_numbers(unsigned ranks)
{
    const struct rank_numbers *const both[] = {&settings.speeds, &settings.links};
    for (int i = 0; i < 2; i++)
        if (both[i]->count && both[i]->count != ranks)
            return dl2_program_usage_error(&program, "--%s has %u numbers for %u ranks",
                                           i ? "rank-bandwidth" : "rank-speeds", both[i]->count,
                                           ranks);
    return 0;
}

/* Of a model of a plan; 0 without memory or a checkpoint. */
static double checkpoint_bytes(const char *name)
{
    struct stat status;
    DL2_AUTO_FREE char *folder = dl2_path_join(config->run.out, name);
    DL2_AUTO_FREE char *path = folder ? dl2_path_join(folder, DL2_CHECKPOINT_FILE) : NULL;
    return path && stat(path, &status) == 0 ? (double)status.st_size : 0;
}

static int predict(const struct dl2_configs *configs, double validate_every, unsigned ranks,
                   struct dl2_error *error)
{
    DL2_AUTO_FREE struct dl2_makespan_model *models = NULL;
    DL2_AUTO_FREE const char **names = NULL;
    DL2_AUTO_FREE char *path = dl2_path_join(config->run.out, DL2_VISITS_FILE);
    DL2_TRY(DL2_NEW(&models, configs->count, "a plan", error));
    DL2_TRY(DL2_NEW(&names, configs->count, "a plan", error));
    if (!path)
        return dl2_error_memory(error, "a plan");
    for (size_t i = 0; i < configs->count; i++) {
        names[i] = configs->models[i].config.run.name;
        models[i].epochs = configs->models[i].config.data.stages[0].epochs;
        models[i].validate_every = validate_every;
        models[i].bytes = checkpoint_bytes(names[i]);
    }
    if (check_rank_numbers(ranks) != 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "nothing is predicted");
    DL2_TRY(dl2_makespan_take_visits(path, names, configs->count, ranks, models, error));
    return print_plan(models, configs->count, ranks, error);
}

/* Trains the first epoch of each model, which is validated, and predicts the rest. */
static int plan_models(const struct dl2_configs *configs, struct dl2_world *world)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const double validate_every = config->run.validate_every;
    for (size_t i = 0; i < configs->count; i++) {
        configs->models[i].config.run.stop_at = 1;
        configs->models[i].config.run.validate_every = 1;
    }
    const int status = train_models_in(configs->models, configs->count, world, NULL);
    if (status != DL2_EXIT_OK || dl2_world_rank(world) > 0)
        return status;
    if (predict(configs, validate_every, dl2_world_size(world), &error) == DL2_OK)
        return DL2_EXIT_OK;
    fprintf(stderr, "%s: %s\n", program.name, error.message);
    return DL2_EXIT_FAILED;
}

/* The runs of a plan lie in a folder of their own, and are begun anew each time. */
static int begin_plan(void)
{
    config->run.out = dl2_path_join(config->run.out, "plan");
    config->run.restart = true;
    if (config->run.out)
        return 0;
    fprintf(stderr, "%s: out of memory\n", program.name);
    return DL2_EXIT_FAILED;
}

/* -- searches -- */

/* Rank 0 begins the search, the others wait for it; one that was killed finds it begun. */
static int begin_search(struct dl2_search *search, const struct dl2_world *world)
{
    struct dl2_error error = DL2_ERROR_INIT;
    const bool first = dl2_world_rank(world) == 0, again = world && world->again;
    int status = first && !again ? dl2_search_begin(search, &error) : DL2_OK;
    if (!again)
        status = dl2_world_agree(world, status, &error);
    if (status < 0 && first)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    return status;
}

/* This process' part of a search. */
static int train_search(struct dl2_search *search, struct dl2_world *world)
{
    const struct dl2_configs *configs = dl2_search_configs(search);
    const struct dl2_hop_plan plan = dl2_search_plan(search);
    const bool first = dl2_world_rank(world) == 0;
    start_budget();
    if (begin_search(search, world) < 0)
        return first ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    const int status = world ? train_models_in(configs->models, configs->count, world, &plan)
                             : dl2_search_run(search, train_models);
    return (status == DL2_EXIT_OK || budget_ended) && first ? tell_found(search) : status;
}

static int search(const struct dl2_common_options *common)
{
    struct dl2_world *world = NULL;
    struct dl2_search *search;
    if (!config->run.out)
        config->run.out = "experiments/search";
    if (!dl2_train_console.quiet)
        settings.search.tell = tell_round;
    const struct dl2_configs_base base = {&settings.train, &program, common, goes_by_ranks()};
    int status = settings.plan ? begin_plan() : 0;
    if (status != 0)
        return status;
    status = dl2_search_open(&settings.search, &base, &search);
    if (status == 0 && (!goes_by_ranks() || open_ranks(&world, &status)))
        status = settings.plan ? plan_models(dl2_search_configs(search), world)
                               : train_search(search, world);
    dl2_world_close(world);
    dl2_search_close(search);
    return status;
}

static int train_configs_in_world(const struct dl2_configs *configs)
{
    struct dl2_world *world = NULL;
    int status;
    if (open_ranks(&world, &status))
        status = settings.plan ? plan_models(configs, world)
                               : train_models_in(configs->models, configs->count, world, NULL);
    dl2_world_close(world);
    return status;
}

static int train_configs(const struct dl2_common_options *common)
{
    const struct dl2_configs_base base = {&settings.train, &program, common, goes_by_ranks()};
    struct dl2_configs configs = {.count = 0};
    if (goes_by_ranks() && !config->run.out)
        config->run.out = settings.hop ? "experiments/hop" : "experiments/task";
    int status = settings.plan ? begin_plan() : 0;
    if (status == 0)
        status = dl2_configs_check_base(&base);
    if (status == 0)
        status = dl2_configs_read(&configs, &base, settings.configs);
    if (status == 0)
        status = goes_by_ranks() ? train_configs_in_world(&configs)
                                 : train_models(configs.models, configs.count);
    dl2_configs_free(&configs);
    return status;
}

/* Alone, or as one of several, or as the one who looks after those. */
static int train_in_world(void)
{
    struct dl2_world *world;
    int status;
    if (!open_world(&world, &status))
        return status;
    if (world && config->loader.partitions) {
        dl2_world_close(world);
        return dl2_program_usage_error(&program,
                                       "--partition works with one process only: --hop --configs "
                                       "FILE gives each rank a partition");
    }
    status = dl2_train_options_check_rates(
        config, &program, dl2_world_size(world)); /* mpirun's number is known only now */
    if (status == 0 && config->sync_norm && !world)
        status = dl2_program_usage_error(
            &program, "--sync-bn goes with --ranks, --gpus or mpirun: one process alone has "
                      "nobody to share statistics with");
    if (status == 0)
        status = train(world);
    dl2_world_close(world);
    return status;
}

/*
 * GCC's OpenMP lets threads that wait for others spin for milliseconds before they sleep. The
 * loader's workers need those processors: with spins of a tenth, training alone and on JPEGs is as
 * fast, and on PNGs 17 to 36% faster (docs/measurements/train.md). The runtime reads its
 * environment before main() begins, so a program that is going to train starts itself again.
 */
static void spin_shortly(char **argv)
{
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") ||
        setenv("GOMP_SPINCOUNT", "30000", 1) != 0)
        return;
    /* By its own path, which gives the process its name in ps and for pkill. */
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = '\0';
        execv(path, argv);
    }
    execv("/proc/self/exe", argv); /* returns only where it can't: then without */
}

static int check_several(const struct dl2_common_options *common)
{
    const struct dl2_search_options *search = &settings.search;
    const bool searches = search->space;
    const bool rounds = dl2_search_has_rounds(search);
    const struct dl2_option_rule rules[] = {
        {!settings.hop, "hop-order", "needs --hop"},
        {searches && rounds && settings.plan, "algorithm",
         "of a plan is grid or random: how far a model trains with halving and asha depends on "
         "results"},
        {!searches, "algorithm,trials,max-concurrent", "needs --space"},
        {settings.configs, "space", "excludes --configs"},
        {!settings.hop, "in-database", "needs --hop"},
        {config->loader.mask, "in-database", "excludes --mask: tables hold no masks"},
        {settings.hop, "task", "excludes --hop: models move to the data, or have all of it"},
        {settings.hop, "share", "has no use with --hop: a rank trains one model at a time"},
        {settings.task, "share", "has no use with --task: a rank trains one model at a time"},
        {settings.share == SHARE_DECODE && !config->loader.decoded_cache_bytes, "share",
         "decode needs --cache-decoded: how much of the decoded images may stay in memory for all "
         "models"},
        {!rounds, "reduction-factor,min-epochs", "needs --algorithm halving or asha"},
        {search->algorithm == DL2_SEARCH_GRID, "trials", "has no effect on a grid"},
    };
    const int status = dl2_program_refuse(&program, common, rules, sizeof rules / sizeof *rules);
    const unsigned ranks = dl2_train_options_ranks(&settings.train);
    return status || !ranks ? status : check_rank_numbers(ranks);
}

/* Checks the settings of one model and trains it. */
static int train_alone(const struct dl2_common_options *common, char **argv)
{
    const bool lists_only = settings.list != LIST_NOTHING;
    int status = dl2_train_options_take(&settings.train, &program, common);
    if (status == 0)
        status = dl2_train_options_check(&settings.train, &program, common, !lists_only);
    if (status == 0) {
        /* Rates are set once the world is open; mistakes are found before it starts. */
        struct dl2_train_config trial = *config;
        const unsigned ranks = dl2_train_options_ranks(&settings.train);
        status = dl2_train_options_check_rates(&trial, &program, ranks ? ranks : 1);
    }
    if (status == 0 && !lists_only) {
        spin_shortly(argv);
        status = train_in_world();
    } else if (status == 0 && settings.list == LIST_ARCHS)
        dl2_arch_list(stdout);
    else if (status == 0 && settings.list == LIST_DEVICES)
        list_devices();
    else if (status == 0 && settings.list == LIST_AUGMENTATIONS)
        list_augmentations();
    else if (status == 0)
        dl2_options_list_without_effect(dl2_train_options, DL2_MEASURING, stdout);
    return status;
}

/* What the command means for the settings. */
static int take_command(enum command command, char **arguments, size_t count)
{
    if (command == EVALUATE)
        config->run.evaluate = arguments[0];
    else if (count)
        return dl2_program_usage_error(&program, "unexpected '%s'", arguments[0]);
    if (command == MEASURE && isnan(config->run.measure))
        config->run.measure = 5;
    settings.plan = command == PLAN;
    settings.hop |= settings.plan;
    if (command == SEARCH && !settings.search.space)
        return dl2_program_usage_error(&program, "search needs --space FILE");
    if (command == SEVERAL && !settings.configs)
        return dl2_program_usage_error(&program, "several needs --configs FILE");
    if (command == PLAN && !has_several())
        return dl2_program_usage_error(&program, "plan needs --configs FILE or --space FILE");
    return 0;
}

int main(int argc, char **argv)
{
    settings.train = dl2_train_defaults();
    config->run.started = dl2_clock_wall();
    struct dl2_common_options common = {0};
    char **arguments, *description = describe();
    size_t count;
    commands[RUN].details = description;
    dl2_program_parse(&program, argc, argv, &common, &arguments, &count);
    int status = take_command((enum command)common.command, arguments, count);
    free(arguments);
    config->loader.workers = common.jobs;
    dl2_train_console = (struct dl2_train_console){.program = program.name,
                                                   .quiet = common.quiet,
                                                   .several = has_several(),
                                                   .searching = settings.search.space};
    config->data.own_batches = settings.share == SHARE_DECODE;
    config->run.in_database = settings.in_database;
    /* Else some of the images would tell. */
    if (settings.in_database && !config->loader.channels)
        config->loader.channels = 3;
    if (status == 0)
        status = check_several(&common);
    if (status == 0 && has_several() && settings.list == LIST_NOTHING) {
        spin_shortly(argv);
        status = settings.configs ? train_configs(&common) : search(&common);
    } else if (status == 0)
        status = train_alone(&common, argv);
    dl2_train_options_free(config);
    free(description);
    return status;
}
