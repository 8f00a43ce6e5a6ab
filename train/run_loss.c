/* SPDX-License-Identifier: BSD-2-Clause */
/* The sums of losses of a run, over all ranks, and whether they and the weights are numbers. */
#include "ranks/world.h"
#include "train/run.h"

#include <math.h>
#include <stdlib.h>

/* Sums of losses stay on the device up to the pass' end, so that they are added in one order,
 * wherever a run stops. A log's steps have sums of their own, which are the same in all runs. */
bool dl2_run_adds_up_on_device(const struct dl2_run *run)
{
    return !run->config->run.log_steps;
}

/* Counts are exact up to 2^53. */
int dl2_run_add_up(const struct dl2_run *run, struct dl2_loss_sums *sums, struct dl2_error *error)
{
    double all[] = {sums->loss, (double)sums->counted, (double)sums->top1, (double)sums->top5};
    DL2_TRY(dl2_world_sum(run->config->world, all, 4, error));
    *sums = (struct dl2_loss_sums){all[0], (uint64_t)all[1], (uint64_t)all[2], (uint64_t)all[3]};
    return DL2_OK;
}

int dl2_run_sums(struct dl2_run *run, struct dl2_loss_sums *sums, struct dl2_error *error)
{
    DL2_TRY(dl2_network_take_sums(run->network, sums, error));
    return dl2_run_add_up(run, sums, error);
}

/* The same on all ranks. */
static int diverged(struct dl2_run *run, const char *what, struct dl2_error *error)
{
    run->phase = DL2_RUN_DIVERGED;
    run->stream->common = true;
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         DL2_DIVERGED_TEXT
                         " in epoch %llu: %s became NaN or infinite. A lower --lr "
                         "(it was %g) or a longer --warmup helps",
                         (unsigned long long)run->state.pass + 1, what, run->state.lr);
}

/* A loss may stay finite where weights do not: behind a ReLU that makes NaN 0, or when the last
 * update was too large. */
int dl2_run_check_weights(struct dl2_run *run, struct dl2_error *error)
{
    struct dl2_network_tensor tensor;
    char what[160];
    for (size_t i = 0; i < dl2_network_tensor_count(run->network); i++) {
        dl2_network_tensor(run->network, i, &tensor);
        if (!tensor.parameter)
            continue;
        float *values = dl2_calloc(tensor.count, sizeof *values);
        if (!values)
            return dl2_error_memory(error, "weights");
        const int status = dl2_network_get(run->network, i, DL2_NETWORK_VALUE, values, error);
        size_t good = 0;
        while (status == DL2_OK && good < tensor.count && isfinite(values[good]))
            good++;
        free(values);
        DL2_TRY(status);
        if (good < tensor.count) {
            snprintf(what, sizeof what, "a value of %s", tensor.name);
            return diverged(run, what, error);
        }
    }
    return DL2_OK;
}

int dl2_run_take_losses(struct dl2_run *run, bool last, double *loss, struct dl2_error *error)
{
    struct dl2_loss_sums sums;
    const bool on_device = dl2_run_adds_up_on_device(run);
    DL2_TRY((last || !on_device ? dl2_network_take_sums : dl2_network_get_sums)(run->network, &sums,
                                                                                error));
    run->own_sums = sums;
    DL2_TRY(dl2_run_add_up(run, &sums, error));
    *loss = sums.counted ? sums.loss / (double)sums.counted : NAN;
    if (!isfinite(sums.loss))
        return diverged(run, "the loss", error);
    if (on_device) {
        run->state.sums = sums;
        return DL2_OK;
    }
    run->state.sums.loss += sums.loss;
    run->state.sums.counted += sums.counted;
    run->state.sums.top1 += sums.top1;
    run->state.sums.top5 += sums.top5;
    return DL2_OK;
}
