/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/accuracy_kind.h"

#include "common/json.h"
#include "common/keep.h"

#include <math.h>
#include <string.h>

const struct dl2_accuracy_kind dl2_accuracy_top1 = {
    "top1",
    "top-1",
    "top-1 accuracy",
    "top-1 accuracy, the share of validation images whose class the network found",
    .unit = "points",
    .is_percent = true};

/* Results of these two have top-1, too, of pixels and of voxels. */
const struct dl2_accuracy_kind dl2_accuracy_miou = {
    "miou",
    "mIoU",
    "mean IoU",
    "the mean over classes of the intersection over union of all pixels of the validation images",
    .unit = "points",
    .is_percent = true};
const struct dl2_accuracy_kind dl2_accuracy_dice = {
    "mean_dice",
    "mean Dice",
    "mean Dice",
    "the mean over classes but the background of the mean Dice of the validation volumes",
    .unit = "points",
    .is_percent = true};

double dl2_accuracy_most(const char *unit)
{
    return strcmp(unit, "fraction") == 0 ? 1 : strcmp(unit, "percent") == 0 ? 100 : INFINITY;
}

static double most_of(const json_t *metric)
{
    return dl2_accuracy_most(dl2_json_get_text(metric, "unit", ""));
}

const struct dl2_accuracy_kind *dl2_accuracy_kind_of(const json_t *result)
{
    const json_t *metric = json_object_get(result, "metric");
    if (!json_is_object(metric))
        return json_object_get(result, dl2_accuracy_miou.key)   ? &dl2_accuracy_miou
               : json_object_get(result, dl2_accuracy_dice.key) ? &dl2_accuracy_dice
                                                                : &dl2_accuracy_top1;
    struct dl2_accuracy_kind *kind = dl2_keep(1, sizeof *kind, "a metric");
    const char *name = dl2_text_copy(dl2_json_get_text(metric, "name", "?"));
    const bool is_percent = isfinite(most_of(metric));
    *kind = (struct dl2_accuracy_kind){
        .key = "value",
        .name = name,
        .title = name,
        .unit = is_percent ? "points" : dl2_text_copy(dl2_json_get_text(metric, "unit", "")),
        .is_foreign = true,
        .is_percent = is_percent,
        .is_lower_better = json_is_false(json_object_get(metric, "higher_is_better"))};
    kind->what = dl2_text("a metric that the trainer reports%s",
                          kind->is_lower_better ? "; lower is better" : "");
    return kind;
}

double dl2_accuracy_of_value(const json_t *result, double value)
{
    const json_t *metric = json_object_get(result, "metric");
    if (!json_is_object(metric))
        return value;
    const double share = most_of(metric) == 1 ? value : value / 100;
    return json_is_false(json_object_get(metric, "higher_is_better")) ? -share : share;
}

double dl2_accuracy_of(const json_t *result)
{
    const char *key = json_is_object(json_object_get(result, "metric"))
                          ? "value"
                          : dl2_accuracy_kind_of(result)->key;
    return dl2_accuracy_of_value(result, dl2_json_get_real(result, key, NAN));
}

bool dl2_accuracy_kinds_equal(const struct dl2_accuracy_kind *a, const struct dl2_accuracy_kind *b)
{
    return a == b || (a->is_foreign && b->is_foreign && strcmp(a->name, b->name) == 0 &&
                      strcmp(a->unit, b->unit) == 0 && a->is_percent == b->is_percent &&
                      a->is_lower_better == b->is_lower_better);
}

int dl2_accuracy_digits(double value)
{
    value = fabs(value);
    return value > 0 && isfinite(value) ? (int)fmin(6, fmax(0, 1 - floor(log10(value)))) : 0;
}

double dl2_accuracy_shown(const struct dl2_accuracy_kind *kind, double value)
{
    return kind->is_lower_better ? -value : value;
}

bool dl2_accuracy_name_is_plain(const char *name)
{
    if (strlen(name) > DL2_MAX_METRIC_NAME || strpbrk(name, DL2_ODD_IN_METRIC_NAMES))
        return false;
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return true;
}
