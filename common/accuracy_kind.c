/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/accuracy_kind.h"

#include "common/json.h"

#include <math.h>

const struct dl2_accuracy_kind dl2_accuracy_top1 = {
    "top1", "top-1", "top-1 accuracy",
    "top-1 accuracy, the share of validation images whose class the network found"};

/* Results of these two have top-1, too, of pixels and of voxels. */
const struct dl2_accuracy_kind dl2_accuracy_miou = {
    "miou", "mIoU", "mean IoU",
    "the mean over classes of the intersection over union of all pixels of the validation images"};
const struct dl2_accuracy_kind dl2_accuracy_dice = {
    "mean_dice", "mean Dice", "mean Dice",
    "the mean over classes but the background of the mean Dice of the validation volumes"};

const struct dl2_accuracy_kind *dl2_accuracy_kind_of(const json_t *result)
{
    return json_object_get(result, dl2_accuracy_miou.key)   ? &dl2_accuracy_miou
           : json_object_get(result, dl2_accuracy_dice.key) ? &dl2_accuracy_dice
                                                            : &dl2_accuracy_top1;
}

double dl2_accuracy_of(const json_t *result)
{
    return dl2_json_get_real(result, dl2_accuracy_kind_of(result)->key, NAN);
}
