/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/subset_options.h"

#include "dataset/dataset.h"

#include <stdlib.h>
#include <string.h>

static const char *const by_words[] = {
    [DL2_SUBSET_DRAW] = "draw", [DL2_SUBSET_NAME] = "name", NULL};

/* "30%" */
static int parse_percent(const char *text, void *value, struct dl2_error *error)
{
    char *end;
    const double percent = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !(percent > 0 && percent <= 100))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is not a percentage above 0%% and up to 100%%", text);
    *(double *)value = percent / 100;
    return DL2_OK;
}

/* As it is written; null for all. */
static json_t *show_percent(const void *value)
{
    const double fraction = *(const double *)value;
    return fraction > 0 ? json_sprintf("%.15g%%", 100 * fraction) : json_null();
}

enum { RUN = DL2_OPTION_FIXED | DL2_OPTION_COMPARED };

#define AT(member) offsetof(struct dl2_subset, member)

const struct dl2_option dl2_subset_options[] = {
    {DL2_OPTION_PARSE, "subset", 0, "N%",
     "Take only N percent of each class's training images, one at least; other splits stay whole",
     AT(fraction), .parse = parse_percent, .show = show_percent, .unset = "all", .roles = RUN},
    {DL2_OPTION_CHOICE, "subset-by", 0, "RULE",
     "Which images --subset takes: draw: drawn by a hash of seed and name, so that a smaller "
     "subset lies in a "
     "larger one; name: the first by name",
     AT(by), .words = by_words, .roles = RUN},
    {DL2_OPTION_UINT64, "subset-seed", 0, "N", "Seed of --subset's draw", AT(seed), .roles = RUN},
    {DL2_OPTION_END},
};

int dl2_subset_options_check(const struct dl2_program *program,
                             const struct dl2_common_options *common,
                             const struct dl2_subset *subset)
{
    const struct dl2_option_rule rules[] = {
        {subset->fraction == 0, "subset-by,subset-seed", "needs --subset"},
        {subset->by == DL2_SUBSET_NAME, "subset-seed",
         "has no effect with --subset-by name, which draws nothing"},
    };
    return dl2_program_refuse(program, common, rules, sizeof rules / sizeof *rules);
}

const char *const dl2_samples_words[] = {[DL2_SAMPLES_AUTO] = "auto",
                                         [DL2_SAMPLES_IMAGES] = "images",
                                         [DL2_SAMPLES_CLIPS] = "clips",
                                         NULL};

const struct dl2_option dl2_samples_options[] = {
    {DL2_OPTION_CHOICE, "samples", 0, "KIND",
     "What the samples are: images; clips: GulpIO's items, or folders CLASS/CLIP of frames whose "
     "names end in numbers; auto: clips where frames are certain to be frames",
     0, .words = dl2_samples_words, .roles = RUN},
    {DL2_OPTION_END},
};

const struct dl2_option dl2_labels_options[] = {
    {DL2_OPTION_TEXT, "labels", 0, "[SPLIT=]FILE,...",
     "Lists of the labels of videos or of folders of frames, instead of class folders: lines "
     "id;label (Jester, Something-Something), or Kinetics' columns label, youtube_id, "
     "time_start, time_end and split",
     0, .unset = "none", .roles = DL2_OPTION_FIXED},
    {DL2_OPTION_END},
};

#define MEMBER(member) offsetof(struct dl2_member_choice, member)

const struct dl2_option dl2_member_options[] = {
    {DL2_OPTION_TEXT, "label-field", 0, "PATH",
     "Field of the .json beside each sample of tar shards that holds its class, as label, "
     "meta.class or labels.0: a whole number is that of a class, any other text its name",
     MEMBER(label_field), .unset = "classes of .cls, or of the index", .roles = DL2_OPTION_FIXED},
    {DL2_OPTION_TEXT, "image-extension", 0, "EXT,...",
     "Which member of each sample of tar shards is its image: jpg, or jpg,png for the first of "
     "them that a sample has",
     MEMBER(image_extension), .unset = "the first image whose extension has no further dot",
     .roles = DL2_OPTION_FIXED},
    {DL2_OPTION_END},
};

struct dl2_member_choice dl2_members_of(const struct dl2_member_choice *members, const char *path,
                                        bool another_has)
{
    const bool none =
        dl2_members_are_chosen(members) && another_has && !dl2_dataset_has_members(path);
    return none ? (struct dl2_member_choice){NULL, NULL} : *members;
}
