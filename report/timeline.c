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

double dl2_timeline_value(const struct dl2_study_run *run, const json_t *timeline,
                          enum dl2_timeline_figure figure, size_t i)
{
    const json_t *machine = json_object_get(run->report, "machine");
    const double card = dl2_study_run_shared(run) ? NAN : 1;
    switch (figure) {
    case DL2_TIMELINE_IMAGES_RATE:
        return slope_at(timeline, "images", i);
    case DL2_TIMELINE_WAIT: /* a long wait is counted when it is over */
        return fmin(100, 100 * slope_at(timeline, "data_wait_seconds", i));
    case DL2_TIMELINE_CPU:
        return value_at(timeline, "cpu_percent", i) / dl2_json_get_real(machine, "cores", NAN);
    case DL2_TIMELINE_CARD:
        return card * value_at(timeline, "card_percent", i);
    case DL2_TIMELINE_PROCESS_GB:
        return value_at(timeline, "rss_bytes", i) / 1e9;
    case DL2_TIMELINE_CARD_GB:
        return card * value_at(timeline, "card_memory_bytes", i) / 1e9;
    case DL2_TIMELINE_RECEIVED:
        return slope_at(timeline, "network_received_bytes", i) / 1e6;
    case DL2_TIMELINE_SENT:
        return slope_at(timeline, "network_sent_bytes", i) / 1e6;
    default:
        return card * value_at(timeline, "card_watts", i);
    }
}
