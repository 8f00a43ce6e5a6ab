/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of dl2-transcode, and the variants that they ask for. */
#ifndef DL2_TRANSCODE_SELECT_TARGETS_H
#define DL2_TRANSCODE_SELECT_TARGETS_H

#include "codec/external.h"
#include "codec/settings.h"
#include "codec/video.h"
#include "common/option.h"
#include "ranks/share_options.h"
#include "transcode/preprocess.h"
#include "transcode/survey.h"
#include "transcode/transcode.h"

/* Number of an option that was not given: the encoder's own choice. */
enum { DL2_ENCODERS_OWN = 100 };

/* What --list prints. */
enum { DL2_LIST_CODECS, DL2_LIST_CONTAINERS, DL2_LIST_SETTINGS, DL2_LIST_VARIANTS, DL2_NO_LIST };

/* The options that limit the sides of images. */
enum dl2_size_option { DL2_SHORT, DL2_MAX_SIDE, DL2_FIT, DL2_SIZE_OPTIONS };

struct dl2_transcode_arguments {
    struct dl2_transcode_options run; /* what options say of it as it is */
    const char *codecs, *qualities, *efforts, *targets, *range;
    struct dl2_quality_target each;      /* what all of --target have in common */
    const char *sizes[DL2_SIZE_OPTIONS]; /* NULL: not given */
    unsigned filter;                     /* the number of a word of dl2_filter_words */
    unsigned subsampling, restart;       /* numbers of words, or DL2_ENCODERS_OWN */
    uint64_t memory_mib;
    struct dl2_external_decoders external; /* to read sources */
    unsigned container;                    /* a number for dl2_container_name() */
    unsigned shard_mib;
    const char *json, *facts;
    struct dl2_survey_files files;
    const char *sensitivity;
    struct dl2_frame_rate frame_rate; /* of frames; 0: not given */
    struct dl2_preprocess_options preprocess;
    uint64_t shuffle; /* a seed, if it was given */
    struct dl2_share share;
    double crop_area[2];
    unsigned list;
};

/* The words of --filter, NULL-ended. */
extern const char *const dl2_filter_words[];

enum { DL2_MAX_CODECS = 32, DL2_MAX_RESOLUTIONS = 64, DL2_MAX_GOALS = 64 };

/* Zeroed but for the first three; free it, on failure, too. */
struct dl2_selection {
    const struct dl2_program *program;
    const struct dl2_common_options *common; /* of its command line */
    const struct dl2_transcode_arguments *arguments;
    struct dl2_settings items[DL2_MAX_CODECS]; /* the codecs to encode with */
    size_t count;
    struct dl2_external *external; /* the one of them that is external, or NULL */
    struct dl2_resolution resolutions[DL2_MAX_RESOLUTIONS];
    size_t resolution_count;
    struct dl2_quality_target goals[DL2_MAX_GOALS]; /* of --target */
    size_t goal_count;
    struct dl2_transcode_target *targets; /* all of that, combined */
    size_t target_count;
};

/* Selects the resolutions: each once, in the order given; full alone if none is. The messages of
 * these functions name the options. DL2_ERR_ARGUMENT. */
int dl2_select_resolutions(struct dl2_selection *selection, struct dl2_error *error);

/* Selects everything, and makes a target for every lossy codec at every quality and every lossless
 * one, at each resolution. */
int dl2_select_targets(struct dl2_selection *selection, struct dl2_error *error);

void dl2_selection_free(struct dl2_selection *selection);

#endif
