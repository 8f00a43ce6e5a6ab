/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport "mpi": Open MPI. The only file that includes its header.
 *
 * Both channels go on at the same time, from two threads, each with a communicator of its own. MPI
 * need not allow that threads are inside it together (MPI_THREAD_MULTIPLE is not on every cluster):
 * every call here is a nonblocking one under a mutex, asked again and again whether it is done. So
 * neither channel ever waits for the other, and who waits long can sleep.
 *
 * A sum goes as in world_local.c: every rank gets everybody's part of its share, adds them up in
 * the order of the ranks, and all get all shares. That moves as many bytes as a ring does.
 *
 * Open MPI's library is loaded when a launcher has started this process, rather than linked: it
 * takes 0.15 s to load, and with Open MPI 5 comes UCX, which takes SIGHUP for its own debugging.
 */
#include "common/memory.h"
#include "ranks/world_numbers.h"

#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes of a piece; what is longer goes one by one. MPI counts in int. */
#define PIECE ((size_t)4 << 20)
/* Looks at a call before who waits sleeps between them, and for how long. */
#define LOOKS     500
#define NAP_NANOS 50000

struct mpi {
    struct dl2_world base;
    MPI_Comm channels[DL2_WORLD_CHANNELS];
    char *parts[DL2_WORLD_CHANNELS]; /* everybody's part of this rank's share of a piece */
    _Atomic uint64_t *moved;         /* bytes that this rank has received */
    int *counts[DL2_WORLD_CHANNELS]; /* [4][size]: sizes and places of shares, see shares_of() */
};

/* MPI is one for the whole process, and so is this. */
static pthread_mutex_t inside = PTHREAD_MUTEX_INITIALIZER;

extern const struct dl2_world_class dl2_world_mpi;

/* -- the library -- */

/* The same from Open MPI 3 to 5. */
#define LIBRARY "libmpi.so.40"

/* What is used of it: functions, and the objects behind constants such as MPI_COMM_WORLD. */
#define FUNCTIONS(F)                                                                               \
    F(Abort)                                                                                       \
    F(Allgather)                                                                                   \
    F(Comm_dup)                                                                                    \
    F(Comm_free)                                                                                   \
    F(Comm_rank)                                                                                   \
    F(Comm_set_errhandler)                                                                         \
    F(Comm_size)                                                                                   \
    F(Comm_split_type)                                                                             \
    F(Error_string)                                                                                \
    F(Finalize)                                                                                    \
    F(Get_library_version)                                                                         \
    F(Get_processor_name)                                                                          \
    F(Iallgatherv)                                                                                 \
    F(Ialltoallv)                                                                                  \
    F(Ibcast)                                                                                      \
    F(Init_thread)                                                                                 \
    F(Test)
#define OBJECTS(F)                                                                                 \
    F(MPI_Comm, comm_world)                                                                        \
    F(MPI_Datatype, byte)                                                                          \
    F(MPI_Datatype, double)                                                                        \
    F(MPI_Datatype, float)                                                                         \
    F(MPI_Datatype, datatype_null)                                                                 \
    F(MPI_Info, info_null)                                                                         \
    F(MPI_Errhandler, errors_return)

static struct {
#define FUNCTION_FIELD(name)     __typeof__(MPI_##name) *name;
#define OBJECT_FIELD(type, name) type of_##name;
    FUNCTIONS(FUNCTION_FIELD)
    OBJECTS(OBJECT_FIELD)
    char missing[256]; /* "": loaded */
} open_mpi;

static void *find(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found && !*open_mpi.missing) {
        const char *why = dlerror();
        snprintf(open_mpi.missing, sizeof open_mpi.missing,
                 "Open MPI's library can't be used (Debian 12: libopenmpi3, 13: libopenmpi40): %s",
                 why ? why : name);
    }
    return found;
}

static void load_library(void)
{
    struct sigaction hangup;
    sigaction(SIGHUP, NULL, &hangup);
    /* Its plugins are not linked with it, and find its functions among the global symbols. */
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    void *found;
    sigaction(SIGHUP, &hangup, NULL);
#define LOAD_FUNCTION(name)                                                                        \
    found = find(library, "MPI_" #name);                                                           \
    memcpy(&open_mpi.name, &found, sizeof found);
#define LOAD_OBJECT(type, name) open_mpi.of_##name = find(library, "ompi_mpi_" #name);
    FUNCTIONS(LOAD_FUNCTION)
    OBJECTS(LOAD_OBJECT)
}

/* NULL if it is there, else why not. */
static const char *missing(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_library);
    return *open_mpi.missing ? open_mpi.missing : NULL;
}

/* -- calls -- */

static int check(int code, const char *what, struct dl2_error *error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS)
        return DL2_OK;
    open_mpi.Error_string(code, text, &length);
    return dl2_error_set(error, DL2_ERR_SYSTEM, "MPI can't %s: %s", what, text);
}

/* Ends a call that was begun, with what its beginning returned; `inside` is held then, and isn't
 * on return. */
static int finish(int begun, MPI_Request *request, const char *what, struct dl2_error *error)
{
    int done = 0, code = begun;
    for (unsigned looks = 0; code == MPI_SUCCESS; looks++) {
        code = open_mpi.Test(request, &done, MPI_STATUS_IGNORE);
        if (done || code != MPI_SUCCESS)
            break;
        pthread_mutex_unlock(&inside);
        if (looks < LOOKS)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NANOS}, NULL);
        pthread_mutex_lock(&inside);
    }
    int status = check(code, what, error);
    pthread_mutex_unlock(&inside);
    return status;
}

/* -- collectives -- */

/* How `n` numbers are shared out, and where parts of this rank's share arrive, in MPI's ints. */
struct shares {
    int *counts, *places;           /* [size]: each rank's share of the piece */
    int *part_counts, *part_places; /* [size]: of this rank's share, from each rank */
};

static struct shares shares_of(const struct mpi *mpi, unsigned channel, size_t n)
{
    const unsigned size = mpi->base.size;
    int *counts = mpi->counts[channel];
    const struct shares shares = {counts, counts + size, counts + 2 * size, counts + 3 * size};
    for (unsigned rank = 0; rank < size; rank++) {
        shares.places[rank] = (int)(n * rank / size);
        shares.counts[rank] = (int)(n * (rank + 1) / size) - shares.places[rank];
    }
    for (unsigned rank = 0; rank < size; rank++) {
        shares.part_counts[rank] = shares.counts[mpi->base.rank];
        shares.part_places[rank] = shares.counts[mpi->base.rank] * (int)rank;
    }
    return shares;
}

static int mpi_sum(const struct dl2_world *world, unsigned channel, enum dl2_world_numbers kind,
                   void *data, size_t count, struct dl2_error *error)
{
    const struct mpi *mpi = (const struct mpi *)world;
    const char *what = "add up what ranks have";
    const MPI_Datatype type = kind == DL2_WORLD_FLOATS ? open_mpi.of_float : open_mpi.of_double;
    const size_t size = dl2_world_number_size(kind), most = PIECE / size;
    MPI_Request request;
    for (size_t done = 0; done < count; done += most) {
        const size_t n = count - done < most ? count - done : most;
        const struct shares s = shares_of(mpi, channel, n);
        const size_t share = (size_t)s.counts[world->rank];
        char *piece = (char *)data + done * size, *parts = mpi->parts[channel];
        pthread_mutex_lock(&inside);
        int code = open_mpi.Ialltoallv(piece, s.counts, s.places, type, parts, s.part_counts,
                                       s.part_places, type, mpi->channels[channel], &request);
        DL2_TRY(finish(code, &request, what, error));
        /* Parts lie one behind the other. */
        char *sum = piece + (size_t)s.places[world->rank] * size;
        memcpy(sum, parts, share * size);
        for (unsigned rank = 1; rank < world->size; rank++)
            dl2_world_add(kind, sum, parts + rank * share * size, share);
        pthread_mutex_lock(&inside);
        code = open_mpi.Iallgatherv(MPI_IN_PLACE, 0, open_mpi.of_datatype_null, piece, s.counts,
                                    s.places, type, mpi->channels[channel], &request);
        DL2_TRY(finish(code, &request, what, error));
        /* The others' parts of this rank's share, then their shares. */
        atomic_fetch_add(mpi->moved, (share * (world->size - 1) + n - share) * size);
    }
    return DL2_OK;
}

static int mpi_broadcast(const struct dl2_world *world, unsigned root, void *data, size_t bytes,
                         struct dl2_error *error)
{
    const struct mpi *mpi = (const struct mpi *)world;
    MPI_Request request;
    for (size_t done = 0; done < bytes; done += PIECE) {
        const size_t n = bytes - done < PIECE ? bytes - done : PIECE;
        pthread_mutex_lock(&inside);
        int code = open_mpi.Ibcast((char *)data + done, (int)n, open_mpi.of_byte, (int)root,
                                   mpi->channels[0], &request);
        DL2_TRY(finish(code, &request, "tell all ranks what one has", error));
        atomic_fetch_add(mpi->moved, world->rank == root ? 0 : n);
    }
    return DL2_OK;
}

/* -- the transport -- */

static uint64_t mpi_moved(const struct dl2_world *world)
{
    return atomic_load(((const struct mpi *)world)->moved);
}

static const char *mpi_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (missing())
        return missing();
    open_mpi.Get_library_version(text, &length);
    text[strcspn(text, ",")] = '\0'; /* "Open MPI v4.1.4, package: ..." */
    return text;
}

static bool mpi_started(void)
{
    /* Open MPI's mpirun; a step of srun's, which reaches Open MPI by PMIx or PMI2. A batch script's
     * own process has SLURM_ variables, too, but none of a step. */
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK") ||
           (getenv("SLURM_STEP_NUM_TASKS") && atoi(getenv("SLURM_STEP_NUM_TASKS")) > 1);
}

static void mpi_give_up(const struct dl2_world *world)
{
    (void)world;
    pthread_mutex_lock(&inside); /* the other channel's thread may be there */
    open_mpi.Abort(open_mpi.of_comm_world, 1);
    pthread_mutex_unlock(&inside);
}

static void release(struct mpi *mpi)
{
    for (int i = 0; i < DL2_WORLD_CHANNELS; i++) {
        if (mpi->channels[i])
            open_mpi.Comm_free(&mpi->channels[i]);
        free(mpi->parts[i]);
        free(mpi->counts[i]);
    }
    free(mpi->moved);
    free(mpi);
}

static void mpi_close(struct dl2_world *world)
{
    release((struct mpi *)world);
    open_mpi.Finalize();
}

/* Finds this rank's number among the ranks on this machine, and how many of them may run on the
 * same processors: mpirun often binds each to processors of its own. */
static int look_around(struct dl2_world *world, struct dl2_error *error)
{
    MPI_Comm here;
    int rank = 0, size = 1;
    cpu_set_t own;
    DL2_TRY(check(open_mpi.Comm_split_type(open_mpi.of_comm_world, MPI_COMM_TYPE_SHARED,
                                           (int)world->rank, open_mpi.of_info_null, &here),
                  "find the ranks on this machine", error));
    open_mpi.Comm_rank(here, &rank);
    open_mpi.Comm_size(here, &size);
    world->local_rank = (unsigned)rank;
    world->local_size = (unsigned)size;
    world->sharers = 1;
    CPU_ZERO(&own);
    sched_getaffinity(0, sizeof own, &own);
    cpu_set_t *all = dl2_calloc((size_t)size, sizeof *all);
    int status = all ? check(open_mpi.Allgather(&own, sizeof own, open_mpi.of_byte, all, sizeof own,
                                                open_mpi.of_byte, here),
                             "find who shares processors", error)
                     : dl2_error_memory(error, "a world");
    for (int i = 0; i < size && status == DL2_OK; i++)
        world->sharers += i != rank && CPU_EQUAL(&own, &all[i]);
    free(all);
    open_mpi.Comm_free(&here);
    return status;
}

static int prepare(struct mpi *mpi, struct dl2_error *error)
{
    int rank, size, length;
    char machine[MPI_MAX_PROCESSOR_NAME];
    open_mpi.Comm_rank(open_mpi.of_comm_world, &rank);
    open_mpi.Comm_size(open_mpi.of_comm_world, &size);
    open_mpi.Get_processor_name(machine, &length);
    mpi->base.rank = (unsigned)rank;
    mpi->base.size = (unsigned)size;
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    if (tasks && size == 1 && atoi(tasks) > 1)
        return dl2_error_set(error, DL2_ERR_SYSTEM,
                             "srun started %s tasks, but MPI knows only of this one (on %s), and "
                             "each would train alone: use srun --mpi=pmix, or mpirun",
                             tasks, machine);
    DL2_TRY(look_around(&mpi->base, error));
    DL2_TRY(DL2_NEW(&mpi->moved, 1, "a world", error));
    const size_t ranks = mpi->base.size;
    for (int i = 0; i < DL2_WORLD_CHANNELS; i++) {
        /* Shares differ by one number at most, and parts of the largest have to fit. */
        mpi->parts[i] = dl2_alloc_aligned(PIECE + ranks * sizeof(double), 1);
        mpi->counts[i] = dl2_calloc(4 * ranks, sizeof(int));
        if (!mpi->parts[i] || !mpi->counts[i])
            return dl2_error_memory(error, "a world");
        DL2_TRY(check(open_mpi.Comm_dup(open_mpi.of_comm_world, &mpi->channels[i]),
                      "make a channel", error));
        DL2_TRY(check(open_mpi.Comm_set_errhandler(mpi->channels[i], open_mpi.of_errors_return),
                      "return errors", error));
    }
    return DL2_OK;
}

static int mpi_open(struct dl2_world **out, struct dl2_error *error)
{
    int provided = MPI_THREAD_SINGLE;
    struct mpi *mpi;
    if (missing())
        return dl2_error_set(error, DL2_ERR_UNSUPPORTED, "%s", missing());
    DL2_TRY(DL2_NEW(&mpi, 1, "a world", error));
    mpi->base.ops = &dl2_world_mpi;
    int status =
        check(open_mpi.Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided), "start", error);
    if (status < 0) {
        free(mpi);
        return status;
    }
    open_mpi.Comm_set_errhandler(open_mpi.of_comm_world, open_mpi.of_errors_return);
    if (provided < MPI_THREAD_SERIALIZED)
        status = dl2_error_set(error, DL2_ERR_UNSUPPORTED,
                               "this MPI can't be called from more than one thread");
    if (status == DL2_OK)
        status = prepare(mpi, error);
    if (status < 0) { /* without MPI_Finalize(), for which the others might never come */
        release(mpi);
        return status;
    }
    *out = &mpi->base;
    return DL2_OK;
}

const struct dl2_world_class dl2_world_mpi = {
    .name = "mpi",
    .version = mpi_version,
    .started = mpi_started,
    .open = mpi_open,
    .close = mpi_close,
    .give_up = mpi_give_up,
    .moved = mpi_moved,
    .sum = mpi_sum,
    .broadcast = mpi_broadcast,
};
