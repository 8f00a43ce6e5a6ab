/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Training on several ranks, in threads: with synchronized batch norm, N of them with batches of b
 * learn what one does with batches of N * b, and all have the same weights, bit for bit.
 */
#include "network/network.h"
#include "ranks/world_local.h"
#include "tests/unit.h"

#include <math.h>
#include <pthread.h>

enum { PIXELS = 8, IMAGE = PIXELS * PIXELS * 3, STEPS = 6, PARTS = 2, BATCH = 4, RANKS = 3 };

/* A failure in a rank's thread ends the process. */
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct rank {
    const char *device;
    struct dl2_local *local; /* NULL: alone */
    unsigned number, ranks, batch;
    bool synchronized;
    double losses[STEPS * PARTS];
    float *weights;
    size_t count;
};

static uint8_t images[STEPS * PARTS][RANKS * BATCH * IMAGE];
static int32_t labels[STEPS * PARTS][RANKS * BATCH];

static void make_images(void)
{
    uint32_t state = 1;
    for (int k = 0; k < STEPS * PARTS; k++)
        for (int n = 0; n < RANKS * BATCH; n++) {
            labels[k][n] = (n + k) % 3;
            for (int i = 0; i < IMAGE; i++) {
                state = state * 1664525 + 1013904223;
                /* Samples of unlike contrast: unsynchronized statistics are off. */
                images[k][n * IMAGE + i] =
                    (uint8_t)(60 * labels[k][n] + (state >> 24) * (unsigned)(n + 1) / 20);
            }
        }
}

static void keep_weights(struct rank *rank, struct dl2_network *net)
{
    for (size_t i = 0; i < dl2_network_tensor_count(net); i++) {
        struct dl2_network_tensor tensor;
        dl2_network_tensor(net, i, &tensor);
        rank->weights = realloc(rank->weights, (rank->count + tensor.count) * sizeof(float));
        CHECK(rank->weights);
        CHECK(dl2_network_get(net, i, DL2_NETWORK_VALUE, rank->weights + rank->count, NULL) ==
              DL2_OK);
        rank->count += tensor.count;
    }
}

/* Two batches a step, whose gradients are averaged. */
static void *train(void *context)
{
    struct rank *rank = context;
    struct dl2_error error = DL2_ERROR_INIT;
    struct dl2_world *world = NULL;
    struct dl2_device *device;
    struct dl2_network *net;
    if (rank->local)
        CHECK(dl2_local_join(rank->local, rank->number, false, &world, &error) == DL2_OK);
    const struct dl2_device_options options = {.threads = 1, .world = world};
    CHECK(dl2_device_open(rank->device, &options, &device, &error) == DL2_OK);
    struct dl2_network_config config = DL2_NETWORK_DEFAULTS;
    config.arch = "convnet";
    config.batch = rank->batch;
    config.height = config.width = PIXELS;
    config.classes = 3;
    config.seed = 8; /* with 7, how a sum is rounded decides on which side of 0 an output lies */
    config.sync_norm = rank->synchronized;
    CHECK(dl2_network_create(device, &config, &net, &error) == DL2_OK);
    for (int k = 0; k < STEPS * PARTS; k++) {
        const unsigned first = rank->number * rank->batch;
        const struct dl2_network_input input = {images[k] + (size_t)first * IMAGE,
                                                labels[k] + first, rank->batch, NULL, 1};
        const struct dl2_network_step step = {(uint64_t)k, 1.0f / PARTS, k % PARTS > 0,
                                              k % PARTS + 1 < PARTS};
        const struct dl2_update update = {0.01f, 0.9f, 1e-3f, true};
        struct dl2_loss_sums sums;
        CHECK(dl2_network_train(net, &input, &step, &error) == DL2_OK);
        CHECK(dl2_network_take_sums(net, &sums, &error) == DL2_OK);
        double totals[2] = {sums.loss, (double)sums.counted};
        CHECK(dl2_world_sum(world, totals, 2, &error) == DL2_OK);
        rank->losses[k] = totals[0] / totals[1];
        if (k % PARTS == PARTS - 1)
            CHECK(dl2_network_update(net, &update, &error) == DL2_OK);
    }
    keep_weights(rank, net);
    dl2_network_destroy(net);
    dl2_device_close(device);
    dl2_world_close(world);
    return NULL;
}

static void train_together(struct rank *ranks, unsigned count, const char *device, unsigned batch,
                           bool synchronized)
{
    struct dl2_local *local;
    pthread_t threads[RANKS];
    assert_int_equal(dl2_local_create(count, &local, NULL), DL2_OK);
    for (unsigned i = 0; i < count; i++) {
        ranks[i] = (struct rank){device, local, i, count, batch, synchronized, {0}, NULL, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, train, &ranks[i]), 0);
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    dl2_local_destroy(local);
    for (unsigned i = 1; i < count; i++) /* running statistics are each one's own otherwise */
        if (synchronized)
            assert_memory_equal(ranks[i].weights, ranks[0].weights, ranks[0].count * sizeof(float));
}

static void free_weights(struct rank *ranks, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        free(ranks[i].weights);
}

/* The largest difference of losses and of weights, by the largest of them. */
static double difference(const struct rank *a, const struct rank *b)
{
    double worst = 0, most = 0;
    for (int k = 0; k < STEPS * PARTS; k++)
        worst = fmax(worst, fabs(a->losses[k] - b->losses[k]) / b->losses[k]);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < b->count; i++)
        most = fmax(most, fabs(b->weights[i]));
    for (size_t i = 0; i < b->count; i++)
        worst = fmax(worst, fabs((double)a->weights[i] - b->weights[i]) / most);
    return worst;
}

static void compare(const char *device, unsigned count, double limit)
{
    struct rank ranks[RANKS], alone = {device, NULL, 0, 1, count * BATCH, false, {0}, NULL, 0};
    train(&alone);
    train_together(ranks, count, device, BATCH, true);
    const double together = difference(&ranks[0], &alone);
    print_message("%s, %u ranks: %.2g with synchronized batch norm", device, count, together);
    free_weights(ranks, count);
    train_together(ranks, count, device, BATCH, false);
    const double apart = difference(&ranks[0], &alone);
    print_message(", %.2g without\n", apart);
    free_weights(ranks, count);
    free(alone.weights);
    assert_true(together < limit);
    assert_true(apart > 100 * limit); /* or the test would see nothing */
}

static void ranks_are_one_large_batch(void **state)
{
    make_images();
    for (size_t i = 0; dl2_device_at(i); i++)
        for (unsigned count = 2; count <= RANKS; count++) {
            const struct dl2_device_class *ops = dl2_device_at(i);
            if (!ops->is_card) /* a card has one process each: test_gpus.sh */
                compare(ops->name, count, 1e-5);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_are_one_large_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
