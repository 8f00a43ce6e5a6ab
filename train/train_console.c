/* SPDX-License-Identifier: BSD-2-Clause */
#include "train/train_console.h"

#include "common/progress.h"
#include "common/quote.h"
#include "dataset/dataset.h"
#include "loader/loader.h"
#include "network/arch.h"
#include "ranks/world.h"

#include <math.h>
#include <stdio.h>

struct dl2_train_console dl2_train_console;

static struct dl2_progress progress;
static char bar_label[64];
static bool bar_open;
static unsigned long long bar_epoch;

void dl2_train_console_end_bar(void)
{
    if (bar_open && progress.terminal)
        dl2_progress_end(&progress);
    bar_open = false;
}

static void on_opened(void *context, const char *path, const struct dl2_dataset *dataset)
{
    (void)context;
    const char *text;
    bool matters;
    for (size_t i = 0; (text = dl2_dataset_message(dataset, i, &matters)); i++)
        if (matters || !dl2_train_console.quiet)
            fprintf(stderr, "%s: %s: %s\n", dl2_train_console.program, DL2_SHOWN(path),
                    DL2_SHOWN(text));
}

/* The model whose event it is: its line begins with its name, where there are several. */
static const struct dl2_train_config *begin_line(void *context)
{
    const struct dl2_train_model *model = context;
    if (dl2_train_console.several)
        printf("%s: ", DL2_SHOWN(model->config.run.name));
    return &model->config;
}

static void show_data(const struct dl2_train_config *own, const struct dl2_train_overview *run)
{
    printf("%s: %llu %s of %u classes at ", DL2_SHOWN(run->variant),
           (unsigned long long)run->images, dl2_train_samples(own, 0), run->classes);
    if (own->loader.frames)
        printf("%u frames of ", own->loader.frames);
    if (own->loader.volume_depth)
        printf("%ux%ux", own->loader.volume_depth, own->loader.height);
    else if (own->loader.width)
        printf("%ux", own->loader.height);
    printf("%u %s, batches of %u", dl2_loader_width(&own->loader),
           own->loader.volume_depth ? "voxels" : "pixels", own->loader.batch);
    if (own->loader.partitions)
        printf(", partitions: %u", own->loader.partitions);
    const unsigned ranks = dl2_world_size(own->world);
    if (own->world)
        printf(", ranks: %u (%s), %llu %s a step, peak learning rate %g", ranks,
               own->world->ops->name,
               (unsigned long long)own->loader.batch * own->optimizer.accumulate * ranks,
               dl2_train_samples(own, 0), own->optimizer.lr);
    const unsigned left_out = (unsigned)(run->images % ranks);
    if (left_out)
        printf("; each epoch leaves out %u %s, others each time, since all ranks train on equally "
               "many",
               left_out, dl2_train_samples(own, left_out));
    printf("\n");
}

static void on_begun(void *context, const struct dl2_train_overview *run)
{
    static bool data_shown;
    bar_epoch = run->epochs_done + 1;
    if (dl2_train_console.quiet)
        return;
    const struct dl2_train_config *own = begin_line(context);
    printf("%s, %.2f million parameters, on device %s (%s)\n", run->arch,
           (double)run->parameters / 1e6, run->device, run->device_version);
    if (own->run.evaluate)
        printf("trained on %s, seed %llu\n", DL2_SHOWN(run->variant),
               (unsigned long long)own->seed);
    else if (!data_shown && dl2_train_console.rank == 0)
        show_data(own, run);
    data_shown = true;
    fflush(stdout);
}

static void on_step(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)context;
    /* Elsewhere than on a terminal, a line an epoch is enough. */
    static const char *shown;
    if (!bar_open || shown != what || done < progress.done) {
        dl2_train_console_end_bar();
        snprintf(bar_label, sizeof bar_label, "epoch %llu, %s", bar_epoch, what);
        dl2_progress_begin(&progress, bar_label, "batches", (size_t)total, dl2_train_console.quiet);
        bar_open = true;
        shown = what;
    }
    if (progress.terminal)
        dl2_progress_update(&progress, (size_t)done, NULL);
    progress.done = (size_t)done;
}

static enum dl2_label_kind labels_of(const struct dl2_train_model *model)
{
    const struct dl2_arch *arch = dl2_arch_find(model->config.arch, NULL);
    return arch ? arch->labels : DL2_LABEL_CLASS;
}

/* The name of top1, which of networks that label pixels is a part of those. */
static const char *first_figure(const struct dl2_train_model *model)
{
    static const char *const names[] = {[DL2_LABEL_CLASS] = "top-1",
                                        [DL2_LABEL_MASK] = "pixel accuracy",
                                        [DL2_LABEL_VOLUME] = "voxel accuracy"};
    return names[labels_of(model)];
}

static void on_epoch(void *context, const struct dl2_train_epoch *epoch)
{
    dl2_train_console_end_bar();
    bar_epoch = epoch->number + 1;
    if (dl2_train_console.quiet)
        return;
    const struct dl2_train_config *own = begin_line(context);
    const enum dl2_label_kind labels = labels_of(context);
    printf("epoch %3llu  lr %-8.3g train loss %.3f %s %5.1f%%", (unsigned long long)epoch->number,
           epoch->lr, epoch->loss, first_figure(context), 100 * epoch->top1);
    for (size_t i = 0; i < epoch->val_count; i++) {
        const struct dl2_train_val *val = &epoch->val[i];
        printf("  %s loss %.3f %s %5.1f%%", DL2_SHOWN(val->name), val->loss, first_figure(context),
               100 * val->top1);
        if (labels == DL2_LABEL_CLASS)
            printf(" top-5 %.1f%%", 100 * val->top5);
        else
            printf(" %s %.3f", dl2_val_accuracies[labels]->name, val->score);
    }
    const bool timed = epoch->seconds > 0;
    printf("  %.1f s, %.0f %s/s, %.0f%% waiting\n", epoch->seconds,
           timed ? epoch->images_per_second : 0,
           own->loader.volume_depth ? "volumes"
           : own->loader.frames     ? "clips"
                                    : "img",
           timed ? 100 * epoch->data_wait / epoch->seconds : 0);
    fflush(stdout);
}

static void on_measured(void *context, const struct dl2_train_rate *rate)
{
    const struct dl2_train_model *model = context;
    dl2_train_console_end_bar();
    printf("%.0f %s/s, %.1f%% of the time waiting for data; measured for %.1f s\n",
           rate->images / rate->seconds, dl2_train_samples(&model->config, 0),
           100 * rate->data_wait / rate->seconds, rate->seconds);
}

static void on_ended(void *context, const struct dl2_train_summary *summary)
{
    dl2_train_console_end_bar();
    if (dl2_train_console.searching) /* says at its end what it has found */
        return;
    const enum dl2_label_kind labels = labels_of(context);
    for (size_t i = 0; i < summary->val_count; i++) {
        const struct dl2_train_val *val = &summary->val[i];
        begin_line(context);
        printf("%s: %s %.2f%%", DL2_SHOWN(val->name), first_figure(context), 100 * val->top1);
        if (labels == DL2_LABEL_CLASS)
            printf(", top-5 %.2f%%", 100 * val->top5);
        else
            printf(", %s %.4f", dl2_val_accuracies[labels]->name, val->score);
        if (i == 0 && summary->best_epoch && labels != DL2_LABEL_CLASS)
            printf(" (best %s: %.4f, in epoch %llu)", dl2_val_accuracies[labels]->name,
                   summary->best_score, (unsigned long long)summary->best_epoch);
        else if (i == 0 && summary->best_epoch)
            printf(" (best top-1: %.2f%%, in epoch %llu)", 100 * summary->best_score,
                   (unsigned long long)summary->best_epoch);
        printf("\n");
    }
    if (summary->until) {
        begin_line(context);
        printf("%s after %g epoch%s\n", summary->until, summary->epochs,
               summary->epochs == 1 ? "" : "s");
    }
    begin_line(context);
    printf("report: %s\n", DL2_SHOWN(summary->report));
}

static void on_note(void *context, const char *text)
{
    const struct dl2_train_model *model = context;
    dl2_train_console_end_bar();
    if (dl2_train_console.several)
        fprintf(stderr, "%s: %s: %s\n", dl2_train_console.program,
                DL2_SHOWN(model->config.run.name), DL2_SHOWN(text));
    else
        fprintf(stderr, "%s: %s\n", dl2_train_console.program, DL2_SHOWN(text));
}

static void on_resumed(void *context, const char *checkpoint, bool found, uint64_t epoch,
                       uint64_t batch)
{
    char text[4400];
    if (dl2_train_console.quiet)
        return;
    if (found)
        snprintf(text, sizeof text, "going on from %s: epoch %llu, batch %llu", checkpoint,
                 (unsigned long long)epoch + 1, (unsigned long long)batch);
    else
        snprintf(text, sizeof text, "there is no checkpoint %s yet: beginning anew", checkpoint);
    on_note(context, text);
}

void dl2_train_console_failed(const struct dl2_error *error)
{
    dl2_train_console_end_bar();
    fprintf(stderr, "%s: rank %u: %s\n", dl2_train_console.program, dl2_train_console.rank,
            error->message);
}

static void on_failed(void *context, const struct dl2_error *error)
{
    (void)context;
    dl2_train_console_failed(error);
}

struct dl2_train_events dl2_train_console_events(struct dl2_train_model *model)
{
    return (struct dl2_train_events){.context = model,
                                     .opened = on_opened,
                                     .begun = on_begun,
                                     .stepped = on_step,
                                     .epoch_ended = on_epoch,
                                     .measured = on_measured,
                                     .ended = on_ended,
                                     .resumed = on_resumed,
                                     .note = on_note,
                                     .failed = on_failed};
}
