/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/clip_speeds.h"

#include "common/scope.h"
#include "report/accuracy_text.h"
#include "report/rounds.h"
#include "report/study.h"
#include "report/text_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One storage and number of frames. */
struct setup {
    const char *storage;
    unsigned frames;
    struct dl2_rounds rounds;
};

struct setups {
    struct setup *at;
    size_t count;
};

static bool visit(void *context, const char *path, const char *const *names, size_t depth)
{
    struct setups *setups = context;
    unsigned frames;
    if (depth == 0)
        return true;
    if (sscanf(names[1], "frames-%u", &frames) != 1)
        return false;
    setups->at = dl2_keep_more(setups->at, setups->count, sizeof *setups->at);
    setups->at[setups->count++] =
        (struct setup){dl2_text_copy(names[0]), frames, dl2_rounds_read(path)};
    return false;
}

/* "1234 ±56 (1.2x, 1.1 to 1.3)": frames a second of the loader, or of the training of a network,
 * and how many times the first container's rate. */
static const char *rate_cell(const struct setup *setup, const char *network, const char *name,
                             const char *base)
{
    DL2_AUTO_FREE double *scratch = dl2_room(setup->rounds.count + 1, sizeof *scratch, "the clips");
    const size_t rate = offsetof(struct dl2_round, rate);
    const struct dl2_estimate own =
        dl2_rounds_mean(&setup->rounds, network, name, rate, setup->frames, scratch);
    const struct dl2_ratio ratio = dl2_rounds_ratio(&setup->rounds, network, name, base, rate);
    if (!own.count)
        return NULL;
    const char *text = dl2_text_estimate(&own, 0);
    if (strcmp(name, base) == 0 || !ratio.rounds)
        return text;
    return dl2_text("%s (%sx%s)", text, dl2_number("%.2f", ratio.ratio),
                    ratio.rounds > 1
                        ? dl2_text(", %s to %s", dl2_number("%.2f", dl2_ratio_low(&ratio)),
                                   dl2_number("%.2f", dl2_ratio_high(&ratio)))
                        : "");
}

static const struct setup *find(const struct setups *setups, const char *storage, unsigned frames)
{
    for (size_t i = 0; i < setups->count; i++)
        if (setups->at[i].frames == frames && strcmp(setups->at[i].storage, storage) == 0)
            return &setups->at[i];
    return NULL;
}

/* The first network that training was measured with; NULL: none. */
static const char *network_of(const struct setup *setup)
{
    for (size_t i = 0; i < setup->rounds.count; i++)
        if (setup->rounds.items[i].network)
            return setup->rounds.items[i].network;
    return NULL;
}

/* A row for each container that was measured with so many frames. The dataset as it is, "raw", has
 * the files, or the videos that they were made of. */
static void add_rows(struct dl2_text_table *table, const struct setups *setups,
                     const struct setup *warm)
{
    static const char *const containers[] = {"files", "raw", "gulp", "tar"};
    const struct setup *cold = find(setups, "disk", warm->frames);
    const bool of_videos = dl2_rounds_first(&warm->rounds, NULL, containers[0]);
    const char *base = containers[!of_videos];
    for (size_t c = 0; c < sizeof containers / sizeof *containers; c++) {
        const char *rate = rate_cell(warm, NULL, containers[c], base);
        if (!rate)
            continue;
        const char **cells = dl2_text_row(table);
        cells[0] = dl2_text("%u", warm->frames);
        cells[1] = strcmp(containers[c], "raw") != 0 ? containers[c]
                   : of_videos                       ? "videos"
                                                     : "files";
        cells[2] = rate;
        cells[3] = cold ? rate_cell(cold, NULL, containers[c], base) : NULL;
        const char *network = network_of(warm);
        if (!network)
            continue;
        cells[4] = rate_cell(warm, network, containers[c], base);
        cells[5] = cold ? rate_cell(cold, network, containers[c], base) : NULL;
    }
}

struct dl2_words dl2_clips_lines(const char *folder)
{
    static const char *const heads[DL2_TEXT_HEADS][6] = {
        {"frames", "", "loads warm,", "cold,", "trains warm,", "cold,"},
        {"of a clip", "container", "frames/s", "frames/s", "frames/s", "frames/s"}};
    struct setups setups = {0};
    struct dl2_words lines = {0};
    struct dl2_text_table table = {0};
    dl2_walk(dl2_text("%s/clips", folder), visit, &setups);
    for (size_t h = 0; h < DL2_TEXT_HEADS; h++)
        memcpy(dl2_text_row(&table), heads[h], sizeof heads[h]);
    for (size_t i = 0; i < setups.count; i++)
        if (strcmp(setups.at[i].storage, "memory") == 0)
            add_rows(&table, &setups, &setups.at[i]);
    for (size_t i = 0; i < setups.count; i++)
        for (size_t b = 0; b < setups.at[i].rounds.broken.count; b++)
            dl2_words_add(&lines, setups.at[i].rounds.broken.at[b]);
    if (table.count == DL2_TEXT_HEADS)
        return lines;
    const char **texts = dl2_text_lines(&table);
    for (size_t i = 0; i < table.count; i++)
        dl2_words_add(&lines, texts[i]);
    dl2_words_add(&lines, "Means over rounds, ± half a 95% interval; in brackets how many times as "
                          "fast as files in the same rounds. Cold: evicted from Linux's page cache "
                          "before each epoch.");
    return lines;
}
