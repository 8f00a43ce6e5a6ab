/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives over shared memory. A channel has a slot for each rank and one for the result, and a
 * place to meet. To sum up a piece of what all have: each rank copies its own into its slot; they
 * meet; each adds up its share of all slots, in the order of the ranks, into the result; they meet;
 * each copies the result out. Nobody writes to a slot before the second meeting of the piece
 * before, when all have read it; nor to the result before the first meeting of the next piece.
 *
 * Who waits sleeps in the kernel, on the channel's count of meetings. A rank that has left sets
 * that count's highest bit, which wakes all who wait and turns away all who come. A meeting that
 * was complete before stays so for those who only then look.
 */
#include "ranks/world_local.h"
#include "common/memory.h"
#include "common/scope.h"
#include "ranks/world_numbers.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOT ((size_t)256 << 10)
#define LEFT 0x80000000u
/* Looks before it sleeps: short, as there may be more ranks than processors. */
#define SPINS 200

struct channel {
    _Alignas(DL2_ALIGNMENT) _Atomic uint32_t meetings;
    _Atomic uint32_t arrived;
};

/* At the beginning of the shared memory; the channels' slots follow. */
struct shared {
    struct channel channels[DL2_WORLD_CHANNELS];
    _Atomic uint32_t left; /* 1 + the first rank that left; 0: all are there */
    _Atomic bool parted;
    _Atomic uint64_t moved[DL2_LOCAL_RANKS_MAX]; /* bytes that each rank has read of others' */
};

struct dl2_local {
    unsigned ranks;
    size_t size;
    struct shared *shared;
};

struct member {
    struct dl2_world base;
    struct dl2_local *local;
    bool owner;
};

static struct dl2_local *local_of(const struct dl2_world *world)
{
    return ((const struct member *)world)->local;
}

/* -- meeting -- */

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static int somebody_left(const struct dl2_local *local, struct dl2_error *error)
{
    const uint32_t left = atomic_load(&local->shared->left);
    return dl2_error_set(error, DL2_ERR_CANCELED, "rank %u has ended before its time",
                         left ? left - 1 : 0);
}

static int meet(const struct dl2_local *local, unsigned number, struct dl2_error *error)
{
    struct channel *channel = &local->shared->channels[number];
    const uint32_t before = atomic_load(&channel->meetings);
    if (before & LEFT)
        return somebody_left(local, error);
    if (atomic_fetch_add(&channel->arrived, 1) + 1 == local->ranks) {
        atomic_store(&channel->arrived, 0);
        uint32_t expected = before;
        if (!atomic_compare_exchange_strong(&channel->meetings, &expected, (before + 1) & ~LEFT))
            return somebody_left(local, error);
        futex(&channel->meetings, FUTEX_WAKE, INT_MAX);
        return DL2_OK;
    }
    for (unsigned looks = 0;; looks++) {
        const uint32_t now = atomic_load(&channel->meetings);
        if ((now & ~LEFT) != before)
            return DL2_OK;
        if (now & LEFT)
            return somebody_left(local, error);
        if (looks >= SPINS)
            futex(&channel->meetings, FUTEX_WAIT, before);
    }
}

void dl2_local_leave(struct dl2_local *local, unsigned rank)
{
    uint32_t nobody = 0;
    atomic_compare_exchange_strong(&local->shared->left, &nobody, rank + 1);
    for (int i = 0; i < DL2_WORLD_CHANNELS; i++) {
        struct channel *channel = &local->shared->channels[i];
        atomic_fetch_or(&channel->meetings, LEFT);
        futex(&channel->meetings, FUTEX_WAKE, INT_MAX);
    }
}

/* -- collectives -- */

/* A rank's slot of a channel; behind the last rank's, the result. */
static char *slot_of(const struct dl2_local *local, unsigned channel, unsigned rank)
{
    const size_t number = (size_t)channel * (local->ranks + 1) + rank;
    return (char *)local->shared + sizeof(struct shared) + number * SLOT;
}

static void count_moved(const struct dl2_world *world, size_t bytes)
{
    atomic_fetch_add(&local_of(world)->shared->moved[world->rank], bytes);
}

static int local_sum(const struct dl2_world *world, unsigned channel, enum dl2_world_numbers type,
                     void *data, size_t count, struct dl2_error *error)
{
    const struct dl2_local *local = local_of(world);
    const size_t size = dl2_world_number_size(type), most = SLOT / size;
    char *own = slot_of(local, channel, world->rank);
    char *result = slot_of(local, channel, local->ranks);
    for (size_t done = 0; done < count; done += most) {
        const size_t n = count - done < most ? count - done : most;
        const size_t begin = n * world->rank / world->size;
        const size_t share = n * (world->rank + 1) / world->size - begin;
        char *piece = (char *)data + done * size;
        memcpy(own, piece, n * size);
        DL2_TRY(meet(local, channel, error));
        memcpy(result + begin * size, slot_of(local, channel, 0) + begin * size, share * size);
        for (unsigned rank = 1; rank < world->size; rank++)
            dl2_world_add(type, result + begin * size, slot_of(local, channel, rank) + begin * size,
                          share);
        DL2_TRY(meet(local, channel, error));
        memcpy(piece, result, n * size);
        /* The others' parts of this rank's share, then their shares. */
        count_moved(world, (share * (world->size - 1) + n - share) * size);
    }
    return DL2_OK;
}

static int local_broadcast(const struct dl2_world *world, unsigned root, void *data, size_t bytes,
                           struct dl2_error *error)
{
    const struct dl2_local *local = local_of(world);
    char *result = slot_of(local, 0, local->ranks);
    for (size_t done = 0; done < bytes; done += SLOT) {
        const size_t n = bytes - done < SLOT ? bytes - done : SLOT;
        /* The first meeting is for those who still read the result of the call before. */
        DL2_TRY(meet(local, 0, error));
        if (world->rank == root)
            memcpy(result, (char *)data + done, n);
        DL2_TRY(meet(local, 0, error));
        if (world->rank != root) {
            memcpy((char *)data + done, result, n);
            count_moved(world, n);
        }
    }
    return DL2_OK;
}

/* -- the transport -- */

static void local_give_up(const struct dl2_world *world)
{
    dl2_local_leave(local_of(world), world->rank);
}

static uint64_t local_moved(const struct dl2_world *world)
{
    return atomic_load(&local_of(world)->shared->moved[world->rank]);
}

static void local_part(const struct dl2_world *world)
{
    atomic_store(&local_of(world)->shared->parted, true);
}

bool dl2_local_parted(const struct dl2_local *local)
{
    return atomic_load(&local->shared->parted);
}

static bool local_broken(const struct dl2_world *world)
{
    return atomic_load(&local_of(world)->shared->channels[0].meetings) & LEFT;
}

static void local_close(struct dl2_world *world)
{
    struct member *member = (struct member *)world;
    if (member->owner)
        dl2_local_destroy(member->local);
    free(member);
}

static const char *local_version(void)
{
    return "shared memory";
}

const struct dl2_world_class dl2_world_local = {
    .name = "local",
    .version = local_version,
    .close = local_close,
    .give_up = local_give_up,
    .part = local_part,
    .moved = local_moved,
    .broken = local_broken,
    .sum = local_sum,
    .broadcast = local_broadcast,
};

int dl2_local_create(unsigned ranks, struct dl2_local **out, struct dl2_error *error)
{
    *out = NULL;
    if (ranks < 1 || ranks > DL2_LOCAL_RANKS_MAX)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "no world of %u ranks: 1 to %d are possible",
                             ranks, DL2_LOCAL_RANKS_MAX);
    DL2_AUTO_FREE struct dl2_local *local = NULL;
    DL2_TRY(DL2_NEW(&local, 1, "ranks", error));
    local->ranks = ranks;
    local->size = sizeof(struct shared) + DL2_WORLD_CHANNELS * (ranks + 1) * SLOT;
    void *memory =
        mmap(NULL, local->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return dl2_error_system(error, "can't have memory that %u ranks share", ranks);
    local->shared = memory; /* zeroes, which is how all of it begins */
    *out = local;
    local = NULL;
    return DL2_OK;
}

void dl2_local_destroy(struct dl2_local *local)
{
    if (!local)
        return;
    munmap(local->shared, local->size);
    free(local);
}

int dl2_local_join(struct dl2_local *local, unsigned rank, bool owner, struct dl2_world **out,
                   struct dl2_error *error)
{
    struct member *member;
    DL2_TRY(DL2_NEW(&member, 1, "a rank", error));
    member->base = (struct dl2_world){.ops = &dl2_world_local,
                                      .rank = rank,
                                      .size = local->ranks,
                                      .local_rank = rank,
                                      .local_size = local->ranks,
                                      .sharers = local->ranks};
    member->local = local;
    member->owner = owner;
    *out = &member->base;
    return DL2_OK;
}
