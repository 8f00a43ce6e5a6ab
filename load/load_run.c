/* SPDX-License-Identifier: BSD-2-Clause */
/* One measured run of the loader, and messages that the commands share. */
#include "common/clock.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/quote.h"
#include "dataset/subset_options.h"
#include "load/load.h"
#include "remote/remote_options.h"

int dl2_load_run(struct dl2_loader *loader, const struct dl2_load_pass *pass,
                 struct dl2_load_run *run, struct dl2_error *error)
{
    struct dl2_loader_stats before, after;
    struct dl2_process_usage usage_before, usage_after;
    dl2_process_usage(&usage_before);
    dl2_loader_get_stats(loader, &before);
    const double start = dl2_clock_wall(), cpu = dl2_clock_process_cpu();
    DL2_TRY(dl2_loader_start_epoch(loader, pass->epoch, 0, error));
    struct dl2_batch *batch;
    int status = 0;
    for (uint64_t step = 0; !pass->steps || step < pass->steps; step++) {
        /* One batch in any case: where starting alone takes so long, a rate of 0 would be wrong. */
        if (step > 0 && pass->seconds > 0 && dl2_clock_wall() - start > pass->seconds)
            break;
        status = dl2_loader_next(loader, &batch, error);
        if (status != 1)
            break;
        if (pass->batch)
            pass->batch(pass->context, batch);
        run->delivered += batch->count;
        dl2_loader_release(loader, batch);
    }
    run->seconds += dl2_clock_wall() - start;
    run->cpu_seconds += dl2_clock_process_cpu() - cpu;
    dl2_loader_get_stats(loader, &after);
    dl2_process_usage(&usage_after);
    run->images += after.images - before.images;
    run->bytes_read += after.bytes_read - before.bytes_read;
    if (usage_after.disk_read > usage_before.disk_read)
        run->disk_bytes += (uint64_t)(usage_after.disk_read - usage_before.disk_read);
    DL2_TRY(status);
    /* Ends the epoch, or workers would go on filling the ring during the next measurement. */
    return status == 1
               ? dl2_loader_start_epoch(loader, pass->epoch, dl2_loader_steps(loader), error)
               : DL2_OK;
}

double dl2_load_rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : 0;
}

const char *dl2_load_bytes(char text[16], double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (bytes >= 999.95 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, 16, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return text;
}

static void print_messages(const struct dl2_load_options *options, const char *path,
                           const struct dl2_dataset *dataset)
{
    const char *text;
    bool matters;
    for (size_t i = 0; (text = dl2_dataset_message(dataset, i, &matters)); i++)
        if (matters || !options->quiet)
            fprintf(stderr, "dl2-load: %s: %s\n", DL2_SHOWN(path), DL2_SHOWN(text));
}

struct opening {
    const struct dl2_load_options *options;
    bool any_remote, any_members; /* among the paths */
};

static int open_one(void *context, const char *path, struct dl2_dataset **out,
                    struct dl2_error *error)
{
    const struct opening *opening = context;
    struct dl2_dataset_options own = opening->options->dataset;
    own.remote = dl2_remote_options_of(&own.remote, path, opening->any_remote);
    own.members = dl2_members_of(&own.members, path, opening->any_members);
    DL2_TRY(dl2_dataset_open(path, &own, out, error));
    print_messages(opening->options, path, *out);
    return DL2_OK;
}

int dl2_load_open(const struct dl2_load_options *options, const char *const *paths, size_t count,
                  struct dl2_dataset_union *data, struct dl2_error *error)
{
    struct opening opening = {.options = options};
    for (size_t i = 0; i < count; i++) {
        opening.any_remote |= dl2_is_address(paths[i]);
        opening.any_members |= dl2_dataset_has_members(paths[i]);
    }
    DL2_TRY(dl2_dataset_union_open(paths, count, open_one, &opening, data, error));
    if (count > 1)
        print_messages(options, data->path, data->dataset);
    return DL2_OK;
}

int dl2_load_name_bad(const struct dl2_loader *loader, size_t images, json_t *list)
{
    size_t count;
    const char *const *bad = dl2_loader_bad(loader, &count);
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "dl2-load: %s\n", DL2_SHOWN(bad[i]));
        if (list)
            json_array_append_new(list, dl2_json_text(bad[i]));
    }
    struct dl2_loader_stats stats;
    dl2_loader_get_stats(loader, &stats);
    if (count)
        fprintf(stderr, "dl2-load: %zu of %zu %s could not be used; they are named above\n", count,
                images, stats.frames ? "clips" : "images");
    return count > INT32_MAX ? INT32_MAX : (int)count;
}

json_t *dl2_load_unusual(const struct dl2_loader_stats *stats)
{
    json_t *json = json_object();
    for (const struct dl2_unusual *row = dl2_unusual_rows(); row->name; row++)
        json_object_set_new(json, row->name,
                            json_integer((json_int_t)dl2_unusual_count(stats, row)));
    return json;
}
