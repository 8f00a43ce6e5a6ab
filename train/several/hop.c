/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/several/hop.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/random.h"
#include "common/scope.h"
#include "common/thread.h"
#include "train/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Places of locks in the file of visits, beyond any of its lines: a model's is LOCKS + its number,
 * then come that of a rank that adds a line, that of one that asks the plan for a model, and the
 * ranks' own. */
#define LOCKS ((off_t)1 << 40)
/* Bytes of lines that are read at once. */
#define MAX_LINES ((off_t)1 << 28)
/* Seconds from one look at models that are not free to the next, at first and at most. */
#define POLL_MIN 0.005
#define POLL_MAX 0.1
/* Seconds for which all models wait for a rank that is gone, before this one ends. */
#define LOST_RANK_TIMEOUT 5

const char *const dl2_hop_order_words[] = {
    [DL2_HOP_RANDOM] = "random", [DL2_HOP_FIXED] = "fixed", NULL};

/* What this rank knows of a model. */
struct hopper {
    struct stat seen; /* of the checkpoint that `state` is from */
    bool known;
    struct dl2_run_state state;
    bool diverged;
    unsigned last; /* the partition visited last, from 1; 0: none */
};

struct hop {
    struct dl2_stream stream;
    struct dl2_train_model *models;
    size_t count;
    const struct dl2_hop_options *options;
    struct dl2_hop_result *result;
    unsigned own, ranks;
    struct hopper *hoppers; /* [count] */
    uint32_t *chosen;       /* [count]: models to try, the furthest behind first */
    bool *wanted;           /* [count]: models that are to train on */
    char *path;
    int file;        /* of visits */
    off_t read;      /* bytes of its lines that are known */
    bool timed;      /* lines from here on are this call's */
    double visiting; /* seconds of all ranks' visits of this call */
    uint64_t choice; /* number of this rank's next choice */
};

/* -- locks -- */

static int set_lock(const struct hop *hop, size_t byte, short type, bool wait)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = LOCKS + (off_t)byte, .l_len = 1};
    int code;
    while ((code = fcntl(hop->file, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock)) != 0 &&
           errno == EINTR && wait)
        ;
    return code;
}

/* 1: this rank has it now; 0: another has it. */
static int try_lock(const struct hop *hop, size_t byte, struct dl2_error *error)
{
    if (set_lock(hop, byte, F_WRLCK, false) == 0)
        return 1;
    if (errno == EAGAIN || errno == EACCES)
        return 0;
    return dl2_error_system(error, "can't lock %s, which ranks that hop need to", hop->path);
}

static void unlock(const struct hop *hop, size_t byte)
{
    set_lock(hop, byte, F_UNLCK, false);
}

static bool is_locked(const struct hop *hop, size_t byte)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCKS + (off_t)byte, .l_len = 1};
    return fcntl(hop->file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static size_t byte_of_lines(const struct hop *hop)
{
    return hop->count;
}

static size_t byte_of_plan(const struct hop *hop)
{
    return hop->count + 1;
}

static size_t byte_of_rank(const struct hop *hop, unsigned rank)
{
    return hop->count + 2 + rank;
}

/* -- the file of visits -- */

static int add_line(const struct hop *hop, const json_t *line, struct dl2_error *error)
{
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)), *whole = NULL;
    const int length = text ? asprintf(&whole, "%s\n", text) : -1;
    free(text);
    if (length < 0)
        return dl2_error_memory(error, "a line of %s", hop->path);
    set_lock(hop, byte_of_lines(hop), F_WRLCK, true);
    const bool written = write(hop->file, whole, (size_t)length) == length;
    unlock(hop, byte_of_lines(hop));
    free(whole);
    return written ? DL2_OK : dl2_error_system(error, "can't write to %s", hop->path);
}

static void take_line(struct hop *hop, const char *text, size_t length)
{
    json_auto_t *line = json_loadb(text, length, 0, NULL);
    const char *name = dl2_json_get_text(line, "model", "");
    for (size_t i = 0; i < hop->count; i++) {
        struct hopper *hopper = &hop->hoppers[i];
        if (strcmp(hop->models[i].config.run.name, name) != 0)
            continue;
        hopper->last = (unsigned)dl2_json_get_integer(line, "partition", 0);
        hopper->diverged = strcmp(dl2_json_get_text(line, "outcome", ""), "diverged") == 0;
    }
    hop->result->visits += line != NULL;
    hop->result->bytes_moved += (uint64_t)dl2_json_get_integer(line, "bytes_moved", 0);
    if (hop->timed)
        hop->visiting += dl2_json_get_real(line, "seconds", 0);
}

/* Takes the lines that are new. A killed rank may have left a part of one, which takes the next one
 * with it: then a model's last place is not known, and no more. */
static int read_lines(struct hop *hop, struct dl2_error *error)
{
    struct stat info;
    if (fstat(hop->file, &info) != 0)
        return dl2_error_system(error, "can't read %s", hop->path);
    const off_t news = info.st_size - hop->read;
    if (news <= 0)
        return DL2_OK;
    if (news > MAX_LINES)
        return dl2_error_set(error, DL2_ERR_LIMIT, "%s is too large for lines of visits",
                             hop->path);
    DL2_AUTO_FREE char *text = dl2_calloc((size_t)news, 1);
    if (!text)
        return dl2_error_memory(error, "%s", hop->path);
    const ssize_t got = pread(hop->file, text, (size_t)news, hop->read);
    const char *at = text, *end = text + (got > 0 ? got : 0), *newline;
    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
        take_line(hop, at, (size_t)(newline - at));
    hop->read += at - text;
    return got < 0 ? dl2_error_system(error, "can't read %s", hop->path) : DL2_OK;
}

/* -- choosing -- */

static bool is_over(const struct hopper *hopper)
{
    return hopper->diverged || hopper->state.completed;
}

/* Looks where the model's checkpoint is now. */
static int look_at(struct hop *hop, size_t number, struct dl2_error *error)
{
    struct hopper *hopper = &hop->hoppers[number];
    struct stat now;
    if (stat(hop->stream.runs[number].checkpoint, &now) != 0) {
        if (errno == ENOENT)
            return DL2_OK;
        return dl2_error_system(error, "can't read %s", hop->stream.runs[number].checkpoint);
    }
    if (hopper->known && now.st_ino == hopper->seen.st_ino &&
        dl2_mtime_ns(&now) == dl2_mtime_ns(&hopper->seen))
        return DL2_OK;
    dl2_run_state_free(&hopper->state);
    hopper->known = false;
    DL2_TRY(dl2_checkpoint_peek(hop->stream.runs[number].checkpoint, &hopper->state, error));
    const unsigned partitions = hop->options->whole ? 0 : hop->ranks;
    if (hopper->state.partitions != partitions)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "checkpoint %s: its run has %u partitions, this one %u, for %u ranks",
                             hop->stream.runs[number].checkpoint, hopper->state.partitions,
                             partitions, hop->ranks);
    hopper->known = true;
    hopper->seen = now;
    return DL2_OK;
}

/* Is the model where it is to stop? With a plan that still wants it, its report is lost, and a
 * visit makes up for it. */
static bool is_there(const struct hop *hop, size_t number)
{
    const struct dl2_run_state *state = &hop->hoppers[number].state;
    return state->completed || dl2_run_is_at(state, hop->models[number].config.run.stop_at);
}

/* Finds out which models are to train on. Returns 1 where none will be any more. */
static int look_for_wanted(struct hop *hop, bool idle, struct dl2_error *error)
{
    const struct dl2_hop_plan *plan = hop->options->plan;
    bool over = true;
    for (size_t i = 0; i < hop->count; i++) {
        hop->wanted[i] = !is_over(&hop->hoppers[i]) && (plan || !is_there(hop, i));
        hop->models[i].result.diverged = hop->hoppers[i].diverged;
        over = over && !hop->wanted[i];
    }
    return plan ? plan->look(plan->context, idle, hop->wanted, error) : over;
}

/* May the model visit this rank's partition next? */
static bool is_due(const struct hop *hop, size_t number)
{
    const struct hopper *hopper = &hop->hoppers[number];
    uint64_t begin, end;
    if (!hop->wanted[number] || hop->options->whole || is_there(hop, number))
        return hop->wanted[number];
    const enum dl2_visit visit =
        dl2_visit_find(&hop->stream.runs[number], &hopper->state, hop->own, &begin, &end);
    if (visit != DL2_VISIT_NEW || hop->options->order != DL2_HOP_FIXED || hopper->state.trained)
        return visit == DL2_VISIT_NEW || visit == DL2_VISIT_BEGUN;
    const size_t done = json_array_size(hopper->state.visits);
    return (number + done) % hop->ranks == hop->own;
}

/* Is model a farther behind than b? */
static bool is_behind(const struct hop *hop, size_t a, size_t b)
{
    const struct dl2_run_state *left = &hop->hoppers[a].state, *right = &hop->hoppers[b].state;
    if (left->pass != right->pass)
        return left->pass < right->pass;
    return json_array_size(left->visits) < json_array_size(right->visits);
}

/* Puts the models that are due in hop->chosen. Returns how many there are. */
static size_t choose(struct hop *hop)
{
    struct dl2_random random;
    uint32_t count = 0;
    dl2_random_init(&random, hop->options->seed, DL2_RANDOM_HOP, hop->own, hop->choice);
    for (size_t i = 0; i < hop->count; i++)
        if (is_due(hop, i))
            hop->chosen[count++] = (uint32_t)i;
    if (hop->options->order == DL2_HOP_RANDOM)
        dl2_random_shuffle(&random, hop->chosen, count);
    for (size_t i = 1; i < count; i++) { /* stable, so that equals stay in their order */
        const uint32_t number = hop->chosen[i];
        size_t k = i;
        for (; k > 0 && is_behind(hop, number, hop->chosen[k - 1]); k--)
            hop->chosen[k] = hop->chosen[k - 1];
        hop->chosen[k] = number;
    }
    return count;
}

/* -- visits -- */

static const char *outcome_of(const struct dl2_run *run)
{
    return run->phase == DL2_RUN_DIVERGED  ? "diverged"
           : run->decision == DL2_RUN_STOP ? "stopped"
                                           : "done";
}

/* The model is locked. */
static int visit(struct hop *hop, size_t number, struct dl2_error *error)
{
    struct hopper *hopper = &hop->hoppers[number];
    struct dl2_run *run = &hop->stream.runs[number];
    struct dl2_train_config *config = &hop->models[number].config;
    const uint64_t pass = hopper->state.pass;
    const bool moved = hopper->known && hopper->last && hopper->last != hop->own + 1;
    const json_int_t bytes = moved ? (json_int_t)hopper->seen.st_size : 0;
    hop->choice++;
    config->run.resume = hopper->known;
    config->run.restart = !hopper->known;
    config->run.started = dl2_clock_wall();
    const int status = dl2_run_visit(run, error);
    if (status < 0) {
        dl2_error_prefix(error, "%s", run->name);
        return status;
    }
    json_auto_t *line = json_pack(
        "{s:s, s:I, s:I, s:f, s:I, s:s}", "model", config->run.name, "epoch", (json_int_t)pass + 1,
        "partition", (json_int_t)hop->own + 1, "seconds", dl2_clock_wall() - config->run.started,
        "bytes_moved", bytes, "outcome", outcome_of(run));
    return line ? add_line(hop, line, error) : dl2_error_memory(error, "a visit");
}

/* Returns whether the model could be visited: it may be locked, or have moved on. */
static int try_visit(struct hop *hop, size_t number, struct dl2_error *error)
{
    const int locked = try_lock(hop, number, error);
    if (locked <= 0)
        return locked;
    int status = read_lines(hop, error);
    if (status == DL2_OK)
        status = look_at(hop, number, error);
    if (status == DL2_OK)
        status = look_for_wanted(hop, false, error);
    const bool due = status >= 0 && is_due(hop, number);
    if (due)
        status = visit(hop, number, error);
    unlock(hop, number);
    return status < 0 ? status : due;
}

static bool asked_to_stop(const struct hop *hop)
{
    const volatile sig_atomic_t *stop = hop->models[0].config.run.stop;
    return stop && *stop;
}

/* Has a rank gone that will not come again? */
static bool rank_is_gone(const struct hop *hop)
{
    const struct dl2_world *world = hop->options->world;
    if (world && world->ops->broken)
        return world->ops->broken(world);
    for (unsigned rank = 0; rank < hop->ranks; rank++)
        if (rank != hop->own && !is_locked(hop, byte_of_rank(hop, rank)))
            return true;
    return false;
}

/* No model is due here: is one on a visit, so that it may come? */
static bool any_visit(const struct hop *hop)
{
    for (size_t i = 0; i < hop->count; i++)
        if (is_locked(hop, i))
            return true;
    return false;
}

/* Asks the plan for one more model. Returns 1 where there is one, or where all are over. */
static int ask_plan(struct hop *hop, struct dl2_error *error)
{
    const size_t before = choose(hop);
    if (!hop->options->plan)
        return 0;
    set_lock(hop, byte_of_plan(hop), F_WRLCK, true);
    const int over = look_for_wanted(hop, true, error);
    unlock(hop, byte_of_plan(hop));
    return over ? over : choose(hop) > before;
}

/* One look at all models, and a visit if one is due and free. Returns 1 after a visit, or where
 * another look may find one, 0 where this rank has to wait; sets *over where all models are. */
static int hop_once(struct hop *hop, bool *over, struct dl2_error *error)
{
    DL2_TRY(read_lines(hop, error));
    for (size_t i = 0; i < hop->count; i++)
        DL2_TRY(look_at(hop, i, error));
    const int found = look_for_wanted(hop, false, error);
    *over = found > 0;
    if (found)
        return found;
    const size_t count = choose(hop);
    for (size_t i = 0; i < count; i++) {
        const int visited = try_visit(hop, hop->chosen[i], error);
        if (visited)
            return visited;
    }
    return ask_plan(hop, error);
}

static int hop_on(struct hop *hop, struct dl2_error *error)
{
    double nap = POLL_MIN, idle = 0;
    while (!asked_to_stop(hop)) {
        bool over;
        const int visited = hop_once(hop, &over, error);
        if (visited < 0 || over)
            return visited < 0 ? visited : DL2_OK;
        if (visited) {
            nap = POLL_MIN;
            idle = 0;
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = (long)(nap * 1e9)}, NULL);
        idle = any_visit(hop) || !rank_is_gone(hop) ? 0 : idle + nap;
        nap = nap * 2 < POLL_MAX ? nap * 2 : POLL_MAX;
        if (idle > LOST_RANK_TIMEOUT)
            return dl2_error_set(error, DL2_ERR_CANCELED,
                                 "all models wait for a rank that has ended; --resume goes on");
    }
    hop->result->stopped = true;
    return DL2_OK;
}

/* -- beginning and end -- */

static int claim_rank(const struct hop *hop, struct dl2_error *error)
{
    const int locked = try_lock(hop, byte_of_rank(hop, hop->own), error);
    if (locked != 0)
        return locked < 0 ? locked : DL2_OK;
    return dl2_error_set(
        error, DL2_ERR_SYSTEM,
        "%s: another dl2-train is at work there; wait for it, or name another folder "
        "by --out",
        hop->options->out);
}

/* Rank 0 begins anew where no other's runs are, or, with --restart, without their files. */
static int clear_visits(struct hop *hop, struct dl2_error *error)
{
    const struct dl2_train_config *config = &hop->models[0].config;
    if (config->run.resume)
        return DL2_OK;
    for (size_t i = 0; i < hop->count; i++) {
        const struct dl2_run *run = &hop->stream.runs[i];
        if (!dl2_is_file(run->checkpoint))
            continue;
        if (!config->run.restart)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s is there already: continue it with --resume, choose "
                                 "another place with --out, or overwrite it with --restart",
                                 run->checkpoint);
        if (unlink(run->checkpoint) != 0)
            return dl2_error_system(error, "can't remove %s", run->checkpoint);
        unlink(run->report_path);
    }
    return ftruncate(hop->file, 0) == 0 ? DL2_OK
                                        : dl2_error_system(error, "can't empty %s", hop->path);
}

static int open_visits(struct hop *hop, struct dl2_error *error)
{
    const struct dl2_world *world = hop->options->world;
    DL2_TRY(dl2_make_folders(hop->options->out, error));
    hop->path = dl2_path_join(hop->options->out, DL2_VISITS_FILE);
    if (!hop->path)
        return dl2_error_memory(error, "the file of visits");
    hop->file = open(hop->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (hop->file < 0)
        return dl2_error_system(error, "can't open %s", hop->path);
    DL2_TRY(claim_rank(hop, error));
    return dl2_world_rank(world) == 0 && !(world && world->again) ? clear_visits(hop, error)
                                                                  : DL2_OK;
}

/* Each of several ranks on a machine has its share of the processors, or a card. */
static int set_rank(struct hop *hop, struct dl2_train_config *config, char *card, size_t size)
{
    const struct dl2_world *world = hop->options->world;
    const unsigned sharers = world ? world->sharers : 1, processors = dl2_cpu_count();
    const unsigned share = processors > sharers ? processors / sharers : 1;
    struct dl2_device_name name;
    config->loader.partition = hop->options->whole ? 0 : hop->own;
    config->loader.partitions = hop->options->whole ? 0 : hop->ranks;
    config->threads = config->threads ? config->threads : share;
    config->loader.workers = config->loader.workers ? config->loader.workers : share;
    config->run.trainers += world ? world->local_size - 1 : 0;
    DL2_TRY(dl2_device_parse(config->device, &name, NULL));
    const struct dl2_device_class *ops = dl2_device_named(&name);
    if (world && world->local_size > 1 && ops->is_card && !name.numbered) {
        snprintf(card, size, "%s:%u", ops->name, world->local_rank);
        config->device = card;
    }
    return DL2_OK;
}

/* A run that is completed may lack its report, where a kill came between its checkpoint and that:
 * a visit, which has nothing to train, makes up for it. */
static int mend_reports(struct hop *hop, struct dl2_error *error)
{
    for (size_t i = 0; i < hop->count; i++) {
        DL2_TRY(look_at(hop, i, error));
        if (!hop->hoppers[i].known || !hop->hoppers[i].state.completed)
            continue;
        hop->models[i].config.run.resume = true;
        hop->models[i].config.run.started = dl2_clock_wall();
        DL2_TRY(dl2_run_visit(&hop->stream.runs[i], error));
    }
    return DL2_OK;
}

/* Waits for ranks that still write what they have done, and takes it. */
static int take_results(struct hop *hop, struct dl2_error *error)
{
    for (size_t i = 0; i < hop->count; i++) {
        set_lock(hop, i, F_WRLCK, true);
        unlock(hop, i);
    }
    DL2_TRY(read_lines(hop, error));
    for (size_t i = 0; i < hop->count; i++) {
        const struct hopper *hopper = &hop->hoppers[i];
        DL2_TRY(look_at(hop, i, error));
        hop->models[i].result =
            (struct dl2_train_result){.completed = hopper->state.completed,
                                      .diverged = hopper->diverged,
                                      .stopped = hop->result->stopped && !is_over(hopper),
                                      .position = hopper->state.pass_start};
    }
    return DL2_OK;
}

static int hop_to_end(struct hop *hop, struct dl2_error *error)
{
    const struct dl2_world *world = hop->options->world;
    const bool again = world && world->again;
    int status = dl2_stream_open(&hop->stream, error);
    if (status == DL2_OK && hop->stream.config->run.in_database)
        status = dl2_stream_check_database(&hop->stream, hop->own, hop->ranks, error);
    if (status == DL2_OK)
        status = open_visits(hop, error);
    if (!again)
        status = dl2_world_agree(world, status, error);
    hop->result->common = status < 0 && !again;
    DL2_TRY(status);
    if (world && world->ops->part)
        world->ops->part(world);
    if (again) {
        char text[80];
        if (hop->options->whole)
            snprintf(text, sizeof text, "rank %u was killed, and goes on", world->rank);
        else
            snprintf(text, sizeof text, "rank %u was killed, and goes on with partition %u",
                     world->rank, hop->own + 1);
        hop->options->note(text);
    }
    DL2_TRY(read_lines(hop, error));
    hop->timed = true;
    const double began = dl2_clock_wall();
    if (hop->own == 0 && !again && hop->models[0].config.run.resume && !hop->options->plan)
        DL2_TRY(mend_reports(hop, error));
    DL2_TRY(hop_on(hop, error));
    if (hop->own == 0)
        DL2_TRY(take_results(hop, error));
    hop->result->busy = hop->visiting / (hop->ranks * (dl2_clock_wall() - began));
    return DL2_OK;
}

/* Whether it has all its memory. */
static bool set_up(struct hop *hop)
{
    struct dl2_stream *stream = &hop->stream;
    stream->runs = dl2_calloc(hop->count, sizeof *stream->runs);
    hop->hoppers = dl2_calloc(hop->count, sizeof *hop->hoppers);
    hop->chosen = dl2_calloc(hop->count, sizeof *hop->chosen);
    hop->wanted = dl2_calloc(hop->count, sizeof *hop->wanted);
    if (!stream->runs || !hop->hoppers || !hop->chosen || !hop->wanted)
        return false;
    stream->run_count = hop->count;
    stream->several = stream->hopping = true;
    for (size_t i = 0; i < hop->count; i++) {
        stream->runs[i].config = &hop->models[i].config;
        stream->runs[i].events = hop->models[i].events;
        stream->runs[i].phase = DL2_RUN_OVER;
        if (hop->own > 0) {
            stream->runs[i].events.opened = NULL;
            stream->runs[i].events.stepped = NULL;
        }
    }
    return true;
}

int dl2_train_hopping(struct dl2_train_model *models, size_t count,
                      const struct dl2_hop_options *options, struct dl2_hop_result *result,
                      struct dl2_error *error)
{
    struct hop hop = {.models = models,
                      .count = count,
                      .options = options,
                      .result = result,
                      .own = dl2_world_rank(options->world),
                      .ranks = dl2_world_size(options->world),
                      .file = -1};
    char card[32];
    *result = (struct dl2_hop_result){.visits = 0};
    int status = set_up(&hop) ? DL2_OK : dl2_error_memory(error, "models that hop");
    for (size_t i = 0; i < count && status == DL2_OK; i++)
        status = set_rank(&hop, &models[i].config, card, sizeof card);
    if (status == DL2_OK)
        status = hop_to_end(&hop, error);
    if (hop.stream.runs && hop.stream.run_count)
        dl2_stream_close(&hop.stream);
    for (size_t i = 0; hop.hoppers && i < count; i++)
        dl2_run_state_free(&hop.hoppers[i].state);
    if (hop.file >= 0)
        close(hop.file);
    free(hop.path);
    free(hop.chosen);
    free(hop.wanted);
    free(hop.hoppers);
    free(hop.stream.runs);
    return status;
}
