/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives: the same checks on ranks in threads, over shared memory, and, where mpirun started
 * this program, on its ranks (test_mpi.sh).
 */
#include "common/random.h"
#include "ranks/reducer.h"
#include "ranks/world_local.h"
#include "tests/unit.h"

#include <pthread.h>

/* Failures end the process: a cmocka assertion in another thread would jump into a stack that isn't
 * its own. */
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: rank %u: not so: %s\n", __FILE__, __LINE__,                    \
                    dl2_world_rank(world), #what);                                                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A number that any rank can work out for any other. Sums of such depend on their order. */
static float number(unsigned rank, size_t i, unsigned round)
{
    const uint32_t counter[4] = {(uint32_t)i, rank, round, 0}, key[2] = {0, 0};
    uint32_t bits[4];
    dl2_philox(counter, key, bits);
    return ((float)bits[0] - 0x1p31f) * (i % 3 ? 1e-3f : 1);
}

static void check_sums(const struct dl2_world *world)
{
    /* Below the number of ranks; one of the transports' pieces, and one more; several. */
    static const size_t counts[] = {1, 2, 65536, 65537, 200001, 1u << 20, (1u << 20) + 3};
    for (unsigned round = 0; round < sizeof counts / sizeof *counts; round++) {
        struct dl2_error error = DL2_ERROR_INIT;
        const size_t count = counts[round];
        float *floats = calloc(count, sizeof *floats);
        double *doubles = calloc(count, sizeof *doubles);
        CHECK(floats && doubles);
        for (size_t i = 0; i < count; i++)
            doubles[i] = floats[i] = number(world->rank, i, round);
        CHECK(world->ops->sum(world, round % 2, DL2_WORLD_FLOATS, floats, count, &error) == DL2_OK);
        CHECK(world->ops->sum(world, round % 2, DL2_WORLD_DOUBLES, doubles, count, &error) ==
              DL2_OK);
        for (size_t i = 0; i < count; i += 1 + i / 64) {
            float f = number(0, i, round);
            double d = f;
            for (unsigned rank = 1; rank < world->size; rank++) {
                f += number(rank, i, round);
                d += number(rank, i, round);
            }
            CHECK(memcmp(&f, &floats[i], sizeof f) == 0);
            CHECK(memcmp(&d, &doubles[i], sizeof d) == 0);
        }
        free(floats);
        free(doubles);
    }
}

static void check_broadcast(const struct dl2_world *world)
{
    static const size_t sizes[] = {0, 1, 100, 1u << 20};
    for (unsigned k = 0; k < 8; k++) {
        struct dl2_error error = DL2_ERROR_INIT;
        const size_t size = sizes[k % 4];
        const unsigned root = k % world->size;
        uint8_t *bytes = malloc(size + 1);
        CHECK(bytes);
        memset(bytes, (int)world->rank + 1, size + 1);
        CHECK(world->ops->broadcast(world, root, bytes, size, &error) == DL2_OK);
        for (size_t i = 0; i < size; i++)
            CHECK(bytes[i] == (uint8_t)(root + 1));
        CHECK(bytes[size] == (uint8_t)(world->rank + 1));
        free(bytes);
    }
}

static void check_texts(const struct dl2_world *world)
{
    struct dl2_error error = DL2_ERROR_INIT;
    char *shared = NULL;
    json_t *own = json_pack("[s%]", "abcdefghij", (size_t)world->rank), *all;
    CHECK(dl2_world_gather(world, own, &all, &error) == DL2_OK);
    CHECK(json_array_size(all) == world->size);
    for (unsigned rank = 0; rank < world->size; rank++) {
        const char *text = json_string_value(json_array_get(json_array_get(all, rank), 0));
        CHECK(text && strlen(text) == rank && strncmp(text, "abcdefghij", rank) == 0);
    }
    json_decref(all);
    json_decref(own);
    if (world->rank == 0)
        shared = strdup("for all");
    CHECK(dl2_world_share(world, &shared, &error) == DL2_OK);
    CHECK(shared && strcmp(shared, "for all") == 0);
    free(shared);
    shared = NULL;
    CHECK(dl2_world_share(world, &shared, &error) == DL2_OK && !shared);
}

static void check_agreement(const struct dl2_world *world)
{
    struct dl2_error error = DL2_ERROR_INIT;
    CHECK(dl2_world_agree(world, DL2_OK, &error) == DL2_OK && error.status == DL2_OK);
    /* The last two ranks fail: all hear of the first of them. */
    int status = DL2_OK;
    const unsigned first = world->size > 1 ? world->size - 2 : 0;
    if (world->rank >= first)
        status = dl2_error_set(&error, DL2_ERR_FORMAT, "of rank %u", world->rank);
    CHECK(dl2_world_agree(world, status, &error) == DL2_ERR_FORMAT);
    char want[64];
    snprintf(want, sizeof want, "of rank %u", first);
    CHECK(error.status == DL2_ERR_FORMAT && strcmp(error.message, want) == 0);
    CHECK(world->rank < first || dl2_world_agree(world, DL2_OK, NULL) == DL2_OK);
    CHECK(world->rank >= first || dl2_world_agree(world, DL2_OK, &error) == DL2_OK);
}

/* The reducer's channel and the other at once; and more pieces than its queue holds. */
static void check_reducer(const struct dl2_world *world)
{
    enum { PIECES = 100, COUNT = 3000 };
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_reducer *reducer;
    CHECK(dl2_reducer_start(world, &reducer, &error) == DL2_OK);
    float *data = calloc((size_t)PIECES * COUNT, sizeof *data);
    CHECK(data);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < (size_t)PIECES * COUNT; i++)
            data[i] = (float)(i % 100 + world->rank);
        for (int piece = 0; piece < PIECES; piece++) {
            dl2_reducer_add(reducer, data + (size_t)piece * COUNT, COUNT);
            double one = 1;
            if (piece % 10 == 0)
                CHECK(dl2_world_sum(world, &one, 1, &error) == DL2_OK && one == world->size);
        }
        CHECK(dl2_reducer_wait(reducer, &error) == DL2_OK);
        const unsigned ranks = world->size, others = ranks * (ranks - 1) / 2;
        for (size_t i = 0; i < (size_t)PIECES * COUNT; i++)
            CHECK(data[i] == (float)(i % 100 * ranks + others));
    }
    dl2_reducer_stop(reducer);
    free(data);
}

static void check_world(const struct dl2_world *world)
{
    check_sums(world);
    check_broadcast(world);
    check_texts(world);
    check_agreement(world);
    check_reducer(world);
}

/* -- ranks in threads -- */

struct member {
    struct dl2_local *local;
    unsigned rank;
    void (*check)(const struct dl2_world *world);
};

static void *be_rank(void *context)
{
    const struct member *member = context;
    struct dl2_world *world = NULL;
    CHECK(dl2_local_join(member->local, member->rank, false, &world, NULL) == DL2_OK);
    CHECK(world->rank == member->rank && world->local_rank == member->rank);
    member->check(world);
    dl2_world_close(world);
    return NULL;
}

static void with_ranks(unsigned ranks, void (*check)(const struct dl2_world *world))
{
    struct dl2_local *local;
    pthread_t threads[8];
    struct member members[8];
    assert_int_equal(dl2_local_create(ranks, &local, NULL), DL2_OK);
    for (unsigned i = 0; i < ranks; i++) {
        members[i] = (struct member){local, i, check};
        assert_int_equal(pthread_create(&threads[i], NULL, be_rank, &members[i]), 0);
    }
    for (unsigned i = 0; i < ranks; i++)
        pthread_join(threads[i], NULL);
    dl2_local_destroy(local);
}

static void ranks_add_up_and_tell(void **state)
{
    static const unsigned sizes[] = {1, 2, 3, 7};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        with_ranks(sizes[i], check_world);
}

/* Rank 1 leaves after three rounds, with the others in the fourth, on both channels. */
static void leave_early(const struct dl2_world *world)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_reducer *reducer;
    float data[10] = {1};
    double one = 1;
    CHECK(dl2_reducer_start(world, &reducer, &error) == DL2_OK);
    for (int i = 0; i < 3; i++)
        CHECK(dl2_world_sum(world, &one, 1, &error) == DL2_OK);
    if (world->rank == 1) {
        world->ops->give_up(world);
    } else {
        dl2_reducer_add(reducer, data, 10);
        CHECK(dl2_world_sum(world, &one, 1, &error) == DL2_ERR_CANCELED);
        CHECK(strstr(error.message, "rank 1 "));
        dl2_error_clear(&error);
        CHECK(dl2_reducer_wait(reducer, &error) == DL2_ERR_CANCELED);
        dl2_reducer_add(reducer, data, 10);
        CHECK(dl2_reducer_wait(reducer, &error) == DL2_ERR_CANCELED);
        CHECK(dl2_world_agree(world, DL2_OK, NULL) == DL2_ERR_CANCELED);
    }
    dl2_reducer_stop(reducer);
}

static void nobody_waits_for_who_left(void **state)
{
    for (int i = 0; i < 50; i++)
        with_ranks(2 + (unsigned)i % 3, leave_early);
}

static void a_world_of_one_needs_none(void **state)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_world *world;
    int exit_status;
    double value = 3;
    char *text = NULL;
    const struct dl2_world_options alone = {NULL, 0}, wrong = {"carrier pigeons", 0},
                                   many = {"local", 100000};
    assert_int_equal(dl2_world_open(&alone, &world, &exit_status, &error), DL2_OK);
    assert_null(world);
    assert_int_equal(dl2_world_rank(NULL), 0);
    assert_int_equal(dl2_world_size(NULL), 1);
    assert_int_equal(dl2_world_sum(NULL, &value, 1, &error), DL2_OK);
    assert_true(value == 3);
    assert_int_equal(dl2_world_agree(NULL, DL2_ERR_LIMIT, &error), DL2_ERR_LIMIT);
    json_t *own = json_pack("{s:f}", "own", 0.1), *all;
    assert_int_equal(dl2_world_gather(NULL, own, &all, &error), DL2_OK);
    assert_int_equal(json_array_size(all), 1);
    assert_true(json_equal(json_array_get(all, 0), own));
    json_decref(all);
    json_decref(own);
    assert_int_equal(dl2_world_share(NULL, &text, &error), DL2_OK);
    dl2_world_close(NULL);
    assert_int_equal(dl2_world_open(&wrong, &world, &exit_status, &error), DL2_ERR_ARGUMENT);
    dl2_error_clear(&error);
    assert_int_equal(dl2_world_open(&many, &world, &exit_status, &error), DL2_ERR_ARGUMENT);
}

int main(void)
{
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_world *world = NULL;
    const struct dl2_world_options options = {NULL, 0};
    int exit_status;
    if (dl2_world_open(&options, &world, &exit_status, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (world) {
        check_world(world);
        printf("rank %u of %u over %s (%s): all well\n", world->rank, world->size, world->ops->name,
               world->ops->version());
        dl2_world_close(world);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_world_of_one_needs_none),
        cmocka_unit_test(ranks_add_up_and_tell),
        cmocka_unit_test(nobody_waits_for_who_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
