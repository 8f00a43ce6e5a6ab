/* SPDX-License-Identifier: BSD-2-Clause */
#include "ranks/share_options.h"

#define AT(member) offsetof(struct dl2_share, member)

const struct dl2_option dl2_share_options[] = {
    {DL2_OPTION_PARSE, "part", 0, "I/N",
     "Do part I of N, for example 2/4: about every Nth image, by bytes. Any number of parts run at "
     "once, on any machine that sees the same files, and the one that ends last completes what one "
     "process would make",
     AT(part), .parse = dl2_work_part_parse, .unset = "all images"},
    {DL2_OPTION_UINT, "ranks", 0, "N",
     "Start N processes on this machine that divide the images; mpirun and srun start them on "
     "several",
     AT(ranks), .min = 1, .max = 256, .unset = "one, or those of mpirun"},
    {DL2_OPTION_END},
};

const char *dl2_share_find_conflict(const struct dl2_share *share)
{
    return share->part.count && share->ranks ? "--part and --ranks exclude one another" : NULL;
}

int dl2_share_open(const struct dl2_share *share, const char *program, struct dl2_world **world,
                   int *exit_status)
{
    const struct dl2_world_options options = {.ranks = share->ranks};
    struct dl2_error error = DL2_ERROR_INIT;
    int status = DL2_OK;
    *world = NULL;
    if (!share->part.count)
        status = dl2_world_open(&options, world, exit_status, &error);
    if (error.status)
        fprintf(stderr, "%s: %s\n", program, error.message);
    return status;
}

unsigned dl2_share_jobs(const struct dl2_common_options *common, const struct dl2_world *world)
{
    return world && !common->jobs_given ? (common->jobs + world->sharers - 1) / world->sharers
                                        : common->jobs;
}

void dl2_share_print_end(const struct dl2_work_part *part, unsigned missing, unsigned first,
                         const char *rest)
{
    printf("part %u/%u has ended", part->number, part->count);
    if (missing)
        printf("; %u of %u parts are missing, the first is %u/%u\n", missing, part->count, first,
               part->count);
    else
        printf("%s\n", rest);
}
