/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/several/makespan.h"

#include "common/file.h"
#include "common/json.h"
#include "common/random.h"
#include "common/scope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const dl2_makespan_words[] = {
    [DL2_MAKESPAN_HOP] = "--hop",
    [DL2_MAKESPAN_BARRIER] = "hopping with a barrier",
    [DL2_MAKESPAN_TASK] = "--task",
    NULL,
};

/* A model on its way. */
struct traveler {
    const struct dl2_makespan_model *model;
    bool begun, away; /* away: on a visit */
    unsigned pass, visits;
    bool *visited; /* [ranks]: in this pass */
};

struct simulation {
    const struct dl2_makespan_options *options;
    struct traveler *travelers;
    size_t count;
    bool *visited;    /* of all travelers */
    double *ends;     /* [ranks]: of the visits that they are on */
    size_t *on_visit; /* [ranks]: the model, or `count` */
    uint64_t *choices;
    double busy;
};

/* -- the parts of a training -- */

static unsigned passes(const struct dl2_makespan_model *model)
{
    return (unsigned)ceil(model->epochs);
}

/* Seconds of one visit of a pass; the last pass may be a part of an epoch. */
static double visit_of_pass(const struct dl2_makespan_model *model, unsigned pass)
{
    return model->visit * fmin(1, model->epochs - pass);
}

/* Seconds of the validation at a pass's end. */
static double validation_of_pass(const struct dl2_makespan_model *model, unsigned pass)
{
    const bool due = pass + 1 == passes(model) ||
                     (model->validate_every > 0 && fmod(pass + 1, model->validate_every) == 0);
    return due ? model->validate : 0;
}

/* Seconds that a rank takes for what takes `seconds` on a measured one. */
static double on_rank(const struct simulation *simulation, unsigned rank, double seconds)
{
    const double *speeds = simulation->options->speeds;
    return speeds ? seconds / speeds[rank] : seconds;
}

static bool is_over(const struct traveler *traveler)
{
    return traveler->pass == passes(traveler->model);
}

/* Begins the model's next visit, at a rank's partition. Returns its seconds. */
static double depart(const struct simulation *simulation, struct traveler *traveler, unsigned rank)
{
    const struct dl2_makespan_options *options = simulation->options;
    double seconds = visit_of_pass(traveler->model, traveler->pass);
    traveler->visited[rank] = traveler->away = true;
    if (++traveler->visits == options->ranks)
        seconds += validation_of_pass(traveler->model, traveler->pass);
    return on_rank(simulation, rank, seconds) +
           (options->links ? 2 * traveler->model->bytes / options->links[rank] : 0);
}

static void arrive(const struct simulation *simulation, struct traveler *traveler)
{
    traveler->away = false;
    if (traveler->visits < simulation->options->ranks)
        return;
    traveler->pass++;
    traveler->visits = 0;
    memset(traveler->visited, 0, simulation->options->ranks * sizeof *traveler->visited);
}

/* -- hopping -- */

static bool is_due(const struct simulation *simulation, size_t number, unsigned rank)
{
    const struct traveler *traveler = &simulation->travelers[number];
    const struct dl2_makespan_options *options = simulation->options;
    if (!traveler->begun || traveler->away || is_over(traveler) || traveler->visited[rank])
        return false;
    return options->order != DL2_HOP_FIXED || (number + traveler->visits) % options->ranks == rank;
}

/* The model that a free rank takes; `count`: none. */
static size_t choose(struct simulation *simulation, unsigned rank)
{
    struct dl2_random random;
    size_t best = simulation->count;
    uint32_t equals = 0;
    dl2_random_init(&random, simulation->options->seed, DL2_RANDOM_HOP, rank,
                    simulation->choices[rank]);
    for (size_t i = 0; i < simulation->count; i++) {
        const struct traveler *one = &simulation->travelers[i],
                              *other = &simulation->travelers[best];
        if (!is_due(simulation, i, rank))
            continue;
        const bool behind = best == simulation->count || one->pass < other->pass ||
                            (one->pass == other->pass && one->visits < other->visits);
        const bool equal = !behind && one->pass == other->pass && one->visits == other->visits;
        equals = behind ? 1 : equals + equal;
        if (behind || (equal && simulation->options->order == DL2_HOP_RANDOM &&
                       dl2_random_below(&random, equals) == 0))
            best = i;
    }
    return best;
}

/* Begins one more model for a rank that has nothing to do; false if there is none. */
static bool begin_model(struct simulation *simulation)
{
    size_t training = 0, next = simulation->count;
    for (size_t i = simulation->count; i-- > 0;) {
        const struct traveler *traveler = &simulation->travelers[i];
        training += traveler->begun && !is_over(traveler);
        if (!traveler->begun)
            next = i;
    }
    if (next == simulation->count || training >= simulation->options->at_once)
        return false;
    simulation->travelers[next].begun = true;
    return true;
}

static void send_ranks(struct simulation *simulation, double now)
{
    for (unsigned rank = 0; rank < simulation->options->ranks; rank++) {
        if (simulation->on_visit[rank] != simulation->count)
            continue;
        size_t number = choose(simulation, rank);
        if (number == simulation->count && begin_model(simulation))
            number = choose(simulation, rank);
        if (number == simulation->count)
            continue;
        const double seconds = depart(simulation, &simulation->travelers[number], rank);
        simulation->on_visit[rank] = number;
        simulation->ends[rank] = now + seconds;
        simulation->busy += seconds;
        simulation->choices[rank]++;
    }
}

/* The rank whose visit ends next, or the number of ranks. */
static unsigned next_end(const struct simulation *simulation)
{
    unsigned next = simulation->options->ranks;
    for (unsigned rank = 0; rank < simulation->options->ranks; rank++)
        if (simulation->on_visit[rank] != simulation->count &&
            (next == simulation->options->ranks || simulation->ends[rank] < simulation->ends[next]))
            next = rank;
    return next;
}

static double hop(struct simulation *simulation)
{
    double now = 0;
    for (;;) {
        send_ranks(simulation, now);
        const unsigned rank = next_end(simulation);
        if (rank == simulation->options->ranks)
            return now;
        now = simulation->ends[rank];
        arrive(simulation, &simulation->travelers[simulation->on_visit[rank]]);
        simulation->on_visit[rank] = simulation->count;
    }
}

/* -- the other ways -- */

/* One sub-epoch: rank R trains model R + `shift`, modulo the larger of both numbers. */
static double sub_epoch(struct simulation *simulation, size_t shift, size_t larger)
{
    double slowest = 0;
    for (unsigned rank = 0; rank < simulation->options->ranks; rank++) {
        const size_t number = (rank + shift) % larger;
        if (number >= simulation->count || is_over(&simulation->travelers[number]))
            continue;
        const double seconds = depart(simulation, &simulation->travelers[number], rank);
        slowest = fmax(slowest, seconds);
        simulation->busy += seconds;
    }
    for (size_t i = 0; i < simulation->count; i++)
        if (simulation->travelers[i].away)
            arrive(simulation, &simulation->travelers[i]);
    return slowest;
}

static double hop_with_barrier(struct simulation *simulation)
{
    const size_t ranks = simulation->options->ranks;
    const size_t larger = simulation->count > ranks ? simulation->count : ranks;
    double now = 0;
    for (bool over = false; !over;) {
        for (size_t shift = 0; shift < larger; shift++)
            now += sub_epoch(simulation, shift, larger);
        over = true;
        for (size_t i = 0; i < simulation->count; i++)
            over = over && is_over(&simulation->travelers[i]);
    }
    return now;
}

/* Each model on the rank that is free first. */
static double train_whole(struct simulation *simulation)
{
    const unsigned ranks = simulation->options->ranks;
    double last = 0;
    for (size_t i = 0; i < simulation->count; i++) {
        const struct dl2_makespan_model *model = simulation->travelers[i].model;
        double seconds = 0;
        unsigned first = 0;
        for (unsigned pass = 0; pass < passes(model); pass++)
            seconds += ranks * visit_of_pass(model, pass) + validation_of_pass(model, pass);
        for (unsigned rank = 1; rank < ranks; rank++)
            if (simulation->ends[rank] < simulation->ends[first])
                first = rank;
        seconds = on_rank(simulation, first, seconds);
        simulation->ends[first] += seconds;
        simulation->busy += seconds;
        last = fmax(last, simulation->ends[first]);
    }
    return last;
}

static void free_simulation(struct simulation *simulation)
{
    free(simulation->travelers);
    free(simulation->visited);
    free(simulation->ends);
    free(simulation->on_visit);
    free(simulation->choices);
}

int dl2_makespan(enum dl2_makespan_way way, const struct dl2_makespan_model *models, size_t count,
                 const struct dl2_makespan_options *options, struct dl2_makespan *out,
                 struct dl2_error *error)
{
    static const char what[] = "a simulation of models";
    const unsigned ranks = options->ranks;
    DL2_CLEANUP(free_simulation)
    struct simulation simulation = {.options = options, .count = count};
    DL2_TRY(DL2_NEW(&simulation.travelers, count + 1, what, error)); /* one for no model */
    DL2_TRY(DL2_NEW(&simulation.visited, count * ranks, what, error));
    DL2_TRY(DL2_NEW(&simulation.ends, ranks, what, error));
    DL2_TRY(DL2_NEW(&simulation.on_visit, ranks, what, error));
    DL2_TRY(DL2_NEW(&simulation.choices, ranks, what, error));
    for (size_t i = 0; i < count; i++)
        simulation.travelers[i] = (struct traveler){.model = &models[i],
                                                    .begun = !options->at_once,
                                                    .visited = simulation.visited + i * ranks};
    for (unsigned rank = 0; rank < ranks; rank++)
        simulation.on_visit[rank] = count;
    out->seconds = way == DL2_MAKESPAN_HOP       ? hop(&simulation)
                   : way == DL2_MAKESPAN_BARRIER ? hop_with_barrier(&simulation)
                                                 : train_whole(&simulation);
    out->busy = simulation.busy / (ranks * out->seconds);
    return DL2_OK;
}

/* -- measured visits -- */

/* Sums over a model's visits. */
struct measured {
    unsigned plain, last; /* visits without and with validation */
    double plain_seconds, last_seconds;
};

static int set_times(const char *path, const char *name, unsigned ranks,
                     const struct measured *measured, struct dl2_makespan_model *model,
                     struct dl2_error *error)
{
    const double last = measured->last_seconds / measured->last;
    if (!measured->last && (!measured->plain || model->epochs >= 1))
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: no whole epoch of model %s, which has to visit %u partitions",
                             path, name, ranks);
    if (!measured->last) { /* all that it trains */
        model->visit = measured->plain_seconds / (model->epochs * ranks);
        model->validate = 0;
        return DL2_OK;
    }
    model->visit = measured->plain ? measured->plain_seconds / measured->plain : last;
    model->validate = fmax(0, last - model->visit);
    return DL2_OK;
}

int dl2_makespan_take_visits(const char *path, const char *const *names, size_t count,
                             unsigned ranks, struct dl2_makespan_model *models,
                             struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes file = DL2_BYTES_INIT;
    DL2_AUTO_FREE struct measured *all = NULL;
    DL2_TRY(DL2_NEW(&all, count, "visits", error));
    DL2_TRY(dl2_file_read(path, (size_t)1 << 28, &file, error));
    const char *at = (const char *)file.data, *end = at + file.size;
    for (const char *newline; at < end && (newline = memchr(at, '\n', (size_t)(end - at)));
         at = newline + 1) {
        json_auto_t *line = json_loadb(at, (size_t)(newline - at), 0, NULL);
        const char *name = dl2_json_get_text(line, "model", "");
        const double seconds = dl2_json_get_real(line, "seconds", NAN);
        for (size_t i = 0; i < count; i++) {
            if (strcmp(names[i], name) != 0 || !(seconds >= 0))
                continue;
            const bool is_last = (all[i].plain + all[i].last + 1) % ranks == 0;
            *(is_last ? &all[i].last : &all[i].plain) += 1;
            *(is_last ? &all[i].last_seconds : &all[i].plain_seconds) += seconds;
        }
    }
    for (size_t i = 0; i < count; i++)
        DL2_TRY(set_times(path, names[i], ranks, &all[i], &models[i], error));
    return DL2_OK;
}
