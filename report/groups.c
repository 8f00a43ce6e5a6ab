/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/groups.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"
#include "report/sentence.h"

#include <stdlib.h>
#include <string.h>

struct dl2_group_line {
    const char *key, *group;
    size_t number; /* of the line, from 1 */
};

int dl2_grouping_of_regex(const char *name, const char *regex, struct dl2_grouping *groups,
                          struct dl2_error *error)
{
    *groups = (struct dl2_grouping){.name = dl2_keep_block(dl2_hide_passwords(name))};
    const int code = regcomp(&groups->regex, regex, REG_EXTENDED);
    groups->is_regex = code == 0;
    if (groups->is_regex)
        return DL2_OK;
    char why[256];
    regerror(code, &groups->regex, why, sizeof why);
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "\"%s\" is not a valid extended regular expression: %s", regex, why);
}

/* ---- Lists */

static int compare_keys(const void *a, const void *b)
{
    const struct dl2_group_line *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static int compare_lines(const void *a, const void *b)
{
    const struct dl2_group_line *x = a, *y = b;
    const int order = compare_keys(a, b);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* Cuts one line, whose end is a zero, at its last tab: keys may have tabs. */
static int read_line(char *line, size_t length, struct dl2_grouping *groups,
                     struct dl2_error *error)
{
    struct dl2_group_line *out = &groups->lines[groups->count++];
    char *tab = strrchr(line, '\t');
    out->number = groups->count;
    if (strlen(line) != length || !tab || tab == line || !tab[1])
        return dl2_error_set(error, DL2_ERR_FORMAT, "%s: line %zu is not a key, a tab and a group",
                             groups->name, out->number);
    *tab = '\0';
    out->key = line;
    out->group = tab + 1;
    return DL2_OK;
}

int dl2_grouping_of_list(const char *name, struct dl2_bytes *text, struct dl2_grouping *groups,
                         struct dl2_error *error)
{
    *groups =
        (struct dl2_grouping){.name = dl2_keep_block(dl2_hide_passwords(name)), .text = *text};
    *text = (struct dl2_bytes)DL2_BYTES_INIT;
    const int status = dl2_text_begin(&groups->text, error);
    dl2_error_prefix(error, "%s", groups->name);
    DL2_TRY(status);
    const bool ended = groups->text.size && groups->text.data[groups->text.size - 1] == '\n';
    if (!ended)
        DL2_TRY(dl2_bytes_append(&groups->text, "\n", 1, error));
    char *at = (char *)groups->text.data, *const end = at + groups->text.size;
    size_t lines = 0;
    for (const char *byte = at; byte < end; byte++)
        lines += *byte == '\n';
    groups->lines = dl2_keep(lines, sizeof *groups->lines, "%s: %zu lines", groups->name, lines);
    for (char *next; at < end; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        *next = '\0';
        DL2_TRY(read_line(at, (size_t)(next - at), groups, error));
    }
    qsort(groups->lines, groups->count, sizeof *groups->lines, compare_lines);
    for (size_t i = 1; i < groups->count; i++)
        if (strcmp(groups->lines[i - 1].key, groups->lines[i].key) == 0)
            return dl2_error_set(error, DL2_ERR_FORMAT,
                                 "%s: line %zu has the key of line %zu again: %s", groups->name,
                                 groups->lines[i].number, groups->lines[i - 1].number,
                                 groups->lines[i].key);
    return DL2_OK;
}

void dl2_grouping_free(struct dl2_grouping *groups)
{
    if (groups->is_regex)
        regfree(&groups->regex);
    dl2_bytes_free(&groups->text);
    *groups = (struct dl2_grouping){0};
}

/* ---- The groups of a network's images */

/* An image with its group's name, of `length` bytes; NULL: it has none. */
struct member {
    const char *group;
    size_t length, row;
};

static struct member find_group(const struct dl2_grouping *groups, const char *key, size_t row)
{
    if (groups->is_regex) {
        regmatch_t matches[2];
        const bool part = groups->regex.re_nsub > 0;
        const bool found = regexec(&groups->regex, key, 2, matches, 0) == 0;
        const regmatch_t *match = &matches[part];
        if (!found || match->rm_so < 0)
            return (struct member){NULL, 0, row};
        return (struct member){key + match->rm_so, (size_t)(match->rm_eo - match->rm_so), row};
    }
    const struct dl2_group_line wanted = {.key = key};
    const struct dl2_group_line *found =
        bsearch(&wanted, groups->lines, groups->count, sizeof wanted, compare_keys);
    return (struct member){found ? found->group : NULL, found ? strlen(found->group) : 0, row};
}

/* Groups by name; images without one last. */
static int compare_groups(const struct member *x, const struct member *y)
{
    if (!x->group || !y->group)
        return !x->group - !y->group;
    const int order = memcmp(x->group, y->group, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    const int order = compare_groups(x, y);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* Numbers the groups of one table; *alone is how many images have none. */
static int number_groups(const struct dl2_grouping *groups, struct dl2_prediction_table *table,
                         size_t *alone, struct dl2_error *error)
{
    DL2_AUTO_FREE struct member *members =
        dl2_room(table->count, sizeof *members, "the groups of images");
    table->group = dl2_keep(table->count, sizeof *table->group, "the groups of images");
    *alone = 0;
    for (size_t i = 0; i < table->count; i++) {
        members[i] = find_group(groups, table->keys + i * table->key_size, i);
        *alone += !members[i].group;
    }
    qsort(members, table->count, sizeof *members, compare_members);
    table->group_count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const bool same =
            i && members[i].group && compare_groups(&members[i - 1], &members[i]) == 0;
        table->group_count += !same;
        table->group[members[i].row] = (uint32_t)(table->group_count - 1);
    }
    if (*alone == table->count && groups->is_regex)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--group %s matches the key of no validation image; they are like %s",
                             groups->name, table->keys);
    if (*alone == table->count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--group %s names no validation image: its keys are like %s, and "
                             "those of the predictions like %s",
                             groups->name, groups->lines[0].key, table->keys);
    if (table->group_count < 2)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--group %s puts all %zu validation images into one group, which says "
                             "nothing of others: at least two are needed",
                             groups->name, table->count);
    return DL2_OK;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* Adds what became of one network's images to study->grouped, once if several have the same. */
static void describe(struct dl2_study *study, size_t arch, const struct dl2_grouping *groups,
                     size_t alone)
{
    const struct dl2_prediction_table *table = &study->images[arch];
    char text[2048] = "";
    struct dl2_sentence sentence = {text, sizeof text, 0};
    dl2_say(&sentence,
            "The %zu validation images count as %zu groups (%.512s), whose images are "
            "gained and lost together.",
            table->count, table->group_count, groups->name);
    if (alone)
        dl2_say(&sentence, " %zu image%s without a group %s.", alone, plural(alone),
                alone == 1 ? "is a group of its own" : "are groups of their own");
    const size_t unused = groups->is_regex ? 0 : groups->count - (table->count - alone);
    if (unused)
        dl2_say(&sentence, " %zu key%s of the list %s of no validation image.", unused,
                plural(unused), unused == 1 ? "is" : "are");
    if (table->group_count < DL2_FEW_GROUPS)
        dl2_say(&sentence, " So few groups make the intervals rough.");
    if (!study->grouped)
        study->grouped = dl2_text_copy(text);
    else if (!strstr(study->grouped, text))
        study->grouped = dl2_text("%s %s", study->grouped, text);
}

int dl2_study_group(struct dl2_study *study, const struct dl2_grouping *groups,
                    struct dl2_error *error)
{
    for (size_t a = 0; a < study->arch_count; a++) {
        size_t alone = 0;
        if (!study->images[a].count)
            continue;
        DL2_TRY(number_groups(groups, &study->images[a], &alone, error));
        describe(study, a, groups, alone);
    }
    return DL2_OK;
}
