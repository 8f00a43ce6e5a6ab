/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is used of NCCL, between processes of this machine: they meet in a file that all have in
 * memory, whose name is the communicator's. Sums are queued like any other work of the fake card
 * (fake_cuda.h), and formed, in the order of the ranks, when that is done.
 */
#include "tests/cuda/fake_cuda.h"

#include <fcntl.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PIECE 4096 /* floats */

struct meeting {
    _Atomic unsigned arrived, rounds;
    float parts[][PIECE]; /* of each rank */
};

struct ncclComm {
    int rank, ranks;
    size_t size;
    struct meeting *meeting;
    atomic_bool aborted, lost; /* lost: a peer, as far as this one can see */
    unsigned sums;
    struct ncclComm *next; /* aborted ones are kept: their sums may still be queued */
};

static struct ncclComm *graveyard;

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* False when there is no hope that all come. */
static bool meet(struct ncclComm *comm)
{
    struct meeting *m = comm->meeting;
    const unsigned round = atomic_load(&m->rounds);
    if (atomic_fetch_add(&m->arrived, 1) + 1 == (unsigned)comm->ranks) {
        atomic_store(&m->arrived, 0);
        atomic_fetch_add(&m->rounds, 1);
        return true;
    }
    while (atomic_load(&m->rounds) == round) {
        if (atomic_load(&comm->aborted))
            return false;
        nap();
    }
    return true;
}

struct sum {
    struct ncclComm *comm;
    float *data;
    size_t count;
};

static void sum_now(void *call)
{
    const struct sum *sum = call;
    struct ncclComm *comm = sum->comm;
    const char *limit = getenv("DL2_FAKE_NCCL_SUMS");
    if (limit && ++comm->sums > (unsigned)atoi(limit)) {
        atomic_store(&comm->lost, true);
        while (!atomic_load(&comm->aborted)) /* as a kernel waits for a peer */
            nap();
    }
    for (size_t done = 0; done < sum->count && !atomic_load(&comm->aborted); done += PIECE) {
        const size_t n = sum->count - done < PIECE ? sum->count - done : PIECE;
        float *data = sum->data + done;
        memcpy(comm->meeting->parts[comm->rank], data, n * sizeof *data);
        if (!meet(comm))
            return;
        memcpy(data, comm->meeting->parts[0], n * sizeof *data);
        for (int rank = 1; rank < comm->ranks; rank++)
            for (size_t i = 0; i < n; i++)
                data[i] += comm->meeting->parts[rank][i];
        if (!meet(comm))
            return;
    }
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    if (from != to || type != ncclFloat || op != ncclSum || atomic_load(&comm->aborted))
        return ncclInvalidArgument;
    struct sum sum = {comm, to, count};
    dl2_fake_queue_meeting(stream, sum_now, &sum, sizeof sum);
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    const char *folder = getenv("TMPDIR");
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%s/dl2-fake-nccl.XXXXXX",
             folder ? folder : "/tmp");
    int file = mkstemp(id->internal);
    if (file < 0)
        return ncclSystemError;
    close(file);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    if (rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    struct ncclComm *comm = calloc(1, sizeof *comm);
    int file = open(id.internal, O_RDWR | O_CLOEXEC);
    if (!comm || file < 0)
        return ncclSystemError;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->size = sizeof *comm->meeting + (size_t)ranks * sizeof comm->meeting->parts[0];
    if (ftruncate(file, (off_t)comm->size) != 0)
        return ncclSystemError;
    comm->meeting = mmap(NULL, comm->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (comm->meeting == MAP_FAILED || !meet(comm))
        return ncclSystemError;
    if (rank == 0)
        unlink(id.internal);
    *out = comm;
    return ncclSuccess;
}

/* As NCCL 2.28.9 does in commDestroySync(), also where it aborts. */
static void wait_for_recordings(void)
{
    const time_t began = time(NULL);
    while (dl2_fake_recorded_meetings) {
        if (time(NULL) > began + 60) {
            fprintf(stderr, "fake NCCL: recordings keep a communicator for ever\n");
            abort();
        }
        nap();
    }
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    wait_for_recordings();
    munmap(comm->meeting, comm->size);
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->next = graveyard;
    graveyard = comm;
    atomic_store(&comm->aborted, true);
    wait_for_recordings();
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = atomic_load(&comm->lost) ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError ? "a peer is lost" : "an error of the fake NCCL";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}
