/* SPDX-License-Identifier: BSD-2-Clause */
/* The registry of transports, how a process comes by its world, and what is made of collectives.
 * The only file here that asks HAVE_MPI. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "common/memory.h"
#include "common/scope.h"
#include "ranks/world_local.h"

#include <stdlib.h>
#include <string.h>

extern const struct dl2_world_class dl2_world_local;
#ifdef HAVE_MPI
extern const struct dl2_world_class dl2_world_mpi;
#endif

static const struct dl2_world_class *const transports[] = {
    &dl2_world_local,
#ifdef HAVE_MPI
    &dl2_world_mpi,
#endif
};

enum { TRANSPORTS = sizeof transports / sizeof transports[0] };

const struct dl2_world_class *dl2_world_at(size_t index)
{
    return index < TRANSPORTS ? transports[index] : NULL;
}

const struct dl2_world_class *dl2_world_find(const char *name)
{
    for (size_t i = 0; i < TRANSPORTS; i++)
        if (!strcmp(transports[i]->name, name))
            return transports[i];
    return NULL;
}

/* -- opening -- */

/* mpirun's and srun's environment, as far as it tells that there are several of this process. */
static const char *launcher(void)
{
    const char *size = getenv("OMPI_COMM_WORLD_SIZE");
    if (size && atoi(size) > 1)
        return "mpirun";
    size = getenv("SLURM_STEP_NUM_TASKS");
    return size && atoi(size) > 1 ? "srun" : NULL;
}

static int open_started(struct dl2_world **out, struct dl2_error *error)
{
    for (size_t i = 0; i < TRANSPORTS; i++)
        if (transports[i]->started && transports[i]->started())
            return transports[i]->open(out, error);
    if (launcher())
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                             "%s started several of this process, but this build has no MPI for "
                             "them to train together: configure it with Open MPI (Debian: "
                             "libopenmpi-dev), or use --ranks or --gpus on one machine",
                             launcher());
    *out = NULL;
    return DL2_OK;
}

int dl2_world_open(const struct dl2_world_options *options, struct dl2_world **out,
                   int *exit_status, struct dl2_error *error)
{
    const struct dl2_world_class *transport =
        options->transport ? dl2_world_find(options->transport) : NULL;
    *out = NULL;
    if (options->transport && !transport)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "there is no transport '%s' in this build",
                             options->transport);
    if (options->ranks && launcher())
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s has started several of this process already: each would start %u "
                             "more; leave out --ranks and --gpus",
                             launcher(), options->ranks);
    if (options->ranks && (!transport || !transport->open))
        return dl2_local_launch(options->ranks, out, exit_status, error);
    if (options->ranks)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "it is mpirun or srun that says how many ranks there are");
    if (!transport)
        return open_started(out, error);
    return transport->open ? transport->open(out, error) : DL2_OK;
}

/* -- what is made of collectives -- */

unsigned dl2_world_rank(const struct dl2_world *world)
{
    return world ? world->rank : 0;
}

unsigned dl2_world_size(const struct dl2_world *world)
{
    return world ? world->size : 1;
}

uint64_t dl2_world_moved(const struct dl2_world *world)
{
    return world ? world->ops->moved(world) : 0;
}

void dl2_world_close(struct dl2_world *world)
{
    if (world)
        world->ops->close(world);
}

int dl2_world_sum(const struct dl2_world *world, double *values, size_t count,
                  struct dl2_error *error)
{
    return world ? world->ops->sum(world, 0, DL2_WORLD_DOUBLES, values, count, error) : DL2_OK;
}

/* Each rank's number, to all. */
static int gather_numbers(const struct dl2_world *world, double own, double **out,
                          struct dl2_error *error)
{
    DL2_AUTO_FREE double *numbers = NULL;
    DL2_TRY(DL2_NEW(&numbers, world->size, "what ranks tell each other", error));
    numbers[world->rank] = own;
    DL2_TRY(dl2_world_sum(world, numbers, world->size, error));
    *out = numbers;
    numbers = NULL;
    return DL2_OK;
}

int dl2_world_agree(const struct dl2_world *world, int status, struct dl2_error *error)
{
    if (!world)
        return status;
    double *statuses;
    struct dl2_error unheard = DL2_ERROR_INIT, *said = error ? error : &unheard;
    if (status < 0)
        said->status = (enum dl2_status)status;
    DL2_TRY(gather_numbers(world, status, &statuses, said));
    unsigned first = 0;
    while (first < world->size && statuses[first] == 0)
        first++;
    free(statuses);
    if (first == world->size)
        return DL2_OK;
    DL2_TRY(world->ops->broadcast(world, first, said, sizeof *said, said));
    return said->status;
}

/* A rank's text, to all: in *text, a new string. */
static int broadcast_text(const struct dl2_world *world, unsigned rank, const char *own,
                          size_t length, char **text, struct dl2_error *error)
{
    DL2_TRY(DL2_NEW(text, length + 1, "what ranks tell each other", error));
    if (rank == dl2_world_rank(world))
        memcpy(*text, own, length);
    return world ? world->ops->broadcast(world, rank, *text, length, error) : DL2_OK;
}

static int gather_texts(const struct dl2_world *world, const char *own, json_t *all,
                        struct dl2_error *error)
{
    DL2_AUTO_FREE double *lengths = NULL;
    if (world)
        DL2_TRY(gather_numbers(world, (double)strlen(own), &lengths, error));
    for (unsigned rank = 0; rank < dl2_world_size(world); rank++) {
        const size_t length = lengths ? (size_t)lengths[rank] : strlen(own);
        DL2_AUTO_FREE char *text = NULL;
        DL2_TRY(broadcast_text(world, rank, own, length, &text, error));
        if (json_array_append_new(all, json_loads(text, 0, NULL)) != 0)
            return dl2_error_memory(error, "what ranks tell each other");
    }
    return DL2_OK;
}

int dl2_world_gather(const struct dl2_world *world, const json_t *own, json_t **all,
                     struct dl2_error *error)
{
    DL2_AUTO_FREE char *text = json_dumps(own, JSON_COMPACT | JSON_REAL_PRECISION(17));
    *all = json_array();
    const int status = text && *all ? gather_texts(world, text, *all, error)
                                    : dl2_error_memory(error, "what ranks tell each other");
    if (status < 0) {
        json_decref(*all);
        *all = NULL;
    }
    return status;
}

int dl2_world_share(const struct dl2_world *world, char **text, struct dl2_error *error)
{
    if (!world)
        return DL2_OK;
    double size = world->rank == 0 && *text ? (double)strlen(*text) + 1 : 0;
    DL2_TRY(dl2_world_sum(world, &size, 1, error));
    if (world->rank != 0)
        *text = size > 0 ? dl2_calloc((size_t)size, 1) : NULL;
    if (size > 0 && !*text)
        return dl2_error_memory(error, "what ranks tell each other");
    return size > 0 ? world->ops->broadcast(world, 0, *text, (size_t)size, error) : DL2_OK;
}
