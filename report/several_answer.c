/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/several_answer.h"

#include "report/sentence.h"

/* "all 4 datasets", "at least 3 of 4 datasets" */
static void say_claim(struct dl2_sentence *writer, const struct dl2_shared_variant *variant)
{
    if (variant->within == variant->count)
        dl2_say(writer, "all %zu datasets", variant->count);
    else
        dl2_say(writer, "at least %zu of %zu datasets", variant->within, variant->count);
}

static void say_mean(struct dl2_sentence *writer, const struct dl2_random_effects *effects)
{
    char mean[32], interval[72];
    dl2_say(writer, "mean accuracy %s points (95%% interval %s)", dl2_signed(effects->mean, mean),
            dl2_interval(effects->mean, effects->half, 1, interval));
}

/* The smallest of the variants that are claimed on all datasets, or on more than half of them; or,
 * where `mean` is given, whose mean is above it. NULL: none. */
static const struct dl2_shared_variant *find_smallest(const struct dl2_shared_network *network,
                                                      bool all, const double *mean)
{
    const struct dl2_shared_variant *found = NULL;
    for (size_t v = 0; v < network->variant_count; v++) {
        const struct dl2_shared_variant *variant = &network->variants[v];
        const bool good = mean  ? variant->effects.mean >= *mean
                          : all ? variant->within == variant->count
                                : 2 * variant->within > variant->count;
        if (good && variant->ratio < 1 && (!found || variant->ratio < found->ratio))
            found = variant;
    }
    return found;
}

void dl2_several_answer_make(const struct dl2_several_studies *several,
                             const struct dl2_shared_network *network,
                             struct dl2_several_answer *answer)
{
    const double limit = -several->question.tolerance;
    const struct dl2_shared_variant *most = find_smallest(network, false, NULL);
    const struct dl2_shared_variant *all = find_smallest(network, true, NULL);
    const struct dl2_shared_variant *shown = most ? most : find_smallest(network, false, &limit);
    struct dl2_sentence headline = {answer->headline, sizeof answer->headline, 0};
    struct dl2_sentence details = {answer->details, sizeof answer->details, 0};
    char points[32], text[72];
    answer->details[0] = '\0';
    dl2_count_points(points, several->question.tolerance);
    if (most) {
        dl2_say(&headline, "%s is within %s on ", most->name, points);
        say_claim(&headline, most);
        dl2_say(&headline, ", %.3g times smaller.", 1 / most->ratio);
    } else {
        dl2_say(&headline, "No smaller variant is shown to be within %s on most datasets.", points);
    }
    if (!shown) {
        dl2_say(&details, "No smaller variant has a mean within.");
        return;
    }
    dl2_say(&details, "%s: ", shown->name);
    say_mean(&details, &shown->effects);
    dl2_say(&details, "; one more dataset would measure %s (95%% prediction interval).",
            dl2_interval(shown->effects.mean, shown->effects.half_new, 1, text));
    for (size_t i = 0; i < shown->count; i++)
        if (shown->differences[i] + shown->halves[i] < limit)
            dl2_say(&details, " On %s it loses more than %s.",
                    several->sources[shown->sources[i]].name, points);
    if (shown->count < 4)
        dl2_say(&details, " With %zu datasets these intervals are wide.", shown->count);
    if (!most)
        dl2_say(&details, " More seeds and validation images in each study would tell more.");
    if (all && all != most) {
        dl2_say(&details, " Within on ");
        say_claim(&details, all);
        dl2_say(&details, ": %s, %.3g times smaller, ", all->name, 1 / all->ratio);
        say_mean(&details, &all->effects);
        dl2_say(&details, ".");
    }
}
