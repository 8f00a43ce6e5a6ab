/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which validation images belong together: near duplicates, tiles of one photograph, images of one
 * patient. Trainings gain and lose such images together, so that the statistics count a group as
 * one draw (report/inference.h). A group comes from the image's key, by a regular expression or by
 * a list of keys (docs/formats/transcode.md, Groups of images).
 */
#ifndef DL2_REPORT_GROUPS_H
#define DL2_REPORT_GROUPS_H

#include "common/error.h"
#include "common/memory.h"
#include "report/study.h"

#include <regex.h>
#include <stddef.h>

/* Fewer groups are said to be few: a variance from so few draws is rough. */
enum { DL2_FEW_GROUPS = 10 };

struct dl2_grouping {
    char *name; /* what was asked for, without passwords */
    bool is_regex;
    regex_t regex;
    struct dl2_bytes text;        /* of the list; `lines` point into it */
    struct dl2_group_line *lines; /* [count], by key; none twice */
    size_t count;
};

/* All set *groups, to be freed also after an error; `name` is for messages. */

/* POSIX extended. The group of a key is what the first parenthesis of `regex` matches, or all of
 * the match if there is no parenthesis. DL2_ERR_ARGUMENT says what is wrong with it. */
int dl2_grouping_of_regex(const char *name, const char *regex, struct dl2_grouping *groups,
                          struct dl2_error *error);
/* Lines "KEY TAB GROUP". Takes `text` over. DL2_ERR_FORMAT names the first line that is none, or
 * whose key is there twice. */
int dl2_grouping_of_list(const char *name, struct dl2_bytes *text, struct dl2_grouping *groups,
                         struct dl2_error *error);
void dl2_grouping_free(struct dl2_grouping *groups);

/*
 * Sets `group` and `group_count` of the tables of all networks that have predictions, and
 * study->grouped. An image without a group is a group of its own. DL2_ERR_ARGUMENT where no image
 * has a group or all are in one.
 */
int dl2_study_group(struct dl2_study *study, const struct dl2_grouping *groups,
                    struct dl2_error *error);

#endif
