/* SPDX-License-Identifier: BSD-2-Clause */
#include "remote/remote_options.h"

#define AT(member) offsetof(struct dl2_remote_options, member)

const struct dl2_option dl2_remote_options[] = {
    {DL2_OPTION_TEXT, "cache-dir", 0, "DIR",
     "Keep in this folder what is read of datasets at http://, https:// and s3://; several "
     "processes may share it",
     AT(cache_dir), .unset = "none"},
    {DL2_OPTION_SIZE, "cache-dir-size", 0, "SIZE",
     "Limit of --cache-dir; what was used least recently makes room", AT(cache_bytes),
     .unset = "10G"},
    {DL2_OPTION_UINT, "requests", 0, "N", "Requests to a server that are under way at once",
     AT(requests), .min = 1, .max = 1024, .unset = "64"},
    {DL2_OPTION_REAL, "request-limit", 0, "SECONDS",
     "Time for one request; one that fails is sent again for twice as long, 10 s at least",
     AT(time_limit), .min = 0.001, .max = 86400, .unset = "30"},
    {DL2_OPTION_END},
};

struct dl2_remote_options dl2_remote_options_of(const struct dl2_remote_options *given,
                                                const char *path, bool another_is_remote)
{
    const struct dl2_remote_options none = {NULL, 0, 0, 0};
    return another_is_remote && !dl2_is_address(path) ? none : *given;
}
