/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/timeline.h"

#include "common/json.h"

#include <math.h>

static double value_at(const json_t *timeline, const char *column, size_t i)
{
    const json_t *value = json_array_get(json_object_get(timeline, column), i);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* How fast a column rises from the sample before to this one; from zero to the first. */
static double slope_at(const json_t *timeline, const char *column, size_t i)
{
    const double dt =
        value_at(timeline, "seconds", i) - (i ? value_at(timeline, "seconds", i - 1) : 0);
    const double d = value_at(timeline, column, i) - (i ? value_at(timeline, column, i - 1) : 0);
    return dt > 0 ? d / dt : NAN;
}

const json_t *dl2_timeline_of(const struct dl2_study_run *run, size_t rank)
{
    return rank ? json_array_get(json_object_get(run->report, "rank_timelines"), rank)
                : json_object_get(run->report, "timeline");
}

size_t dl2_timeline_samples(const json_t *timeline)
{
    return json_array_size(json_object_get(timeline, "seconds"));
}

double dl2_timeline_seconds(const json_t *timeline, size_t i)
{
    return value_at(timeline, "seconds", i);
}

double dl2_timeline_value(const json_t *report, const json_t *timeline,
                          const struct dl2_timeline_figure *figure, size_t i)
{
    const json_t *machine = json_object_get(report, "machine");
    const double unit = figure->unit > 0 ? figure->unit : dl2_json_get_real(machine, "cores", NAN);
    const double value = (figure->is_rate ? slope_at : value_at)(timeline, figure->column, i);
    /* A long wait is counted when it is over. */
    return figure->is_share ? fmin(100, 100 * value) : value / unit;
}
