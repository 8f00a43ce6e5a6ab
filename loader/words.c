#include "loader/words.h"

#include "loader/batch_decoder.h"
#include "loader/loader.h"

#include <stddef.h>

const char *const dl2_split_words[] = {[DL2_SPLIT_ALL] = "all",
                                       [DL2_SPLIT_TRAIN] = "train",
                                       [DL2_SPLIT_VAL] = "val",
                                       [DL2_SPLIT_TEST] = "test",
                                       NULL};

const char *const dl2_dtype_words[] = {
    [DL2_UINT8] = "uint8", [DL2_FLOAT32] = "float32", [DL2_BFLOAT16] = "bfloat16", NULL};

const char *const dl2_layout_words[] = {[DL2_NHWC] = "nhwc", [DL2_NCHW] = "nchw", NULL};

const char *const dl2_batching_words[] = {[DL2_BATCHING_STRICT] = "strict",
                                          [DL2_BATCHING_COMPLETION] = "completion",
                                          [DL2_BATCHING_AWARE] = "aware",
                                          NULL};

const char *const dl2_io_words[] = {[DL2_IO_AUTO] = "auto",
                                    [DL2_IO_DIRECT] = "direct",
                                    [DL2_IO_THREADS] = "threads",
                                    [DL2_IO_URING] = "uring",
                                    NULL};

const char *const dl2_on_bad_words[] = {[false] = "skip", [true] = "stop", NULL};

const char *const dl2_decode_mode_words[] = {
    [DL2_DECODE_CPU] = "cpu", [DL2_DECODE_GPU] = "gpu", [DL2_DECODE_HYBRID] = "hybrid", NULL};

const char *const dl2_decode_input_words[] = {[DL2_DECODE_PLAIN] = "plain",
                                              [DL2_DECODE_REGION] = "region",
                                              [DL2_DECODE_SPLICED] = "spliced",
                                              NULL};

const char *const dl2_decode_engine_words[] = {[DL2_DECODE_AUTO] = "auto",
                                               [DL2_DECODE_ENGINES] = "engines",
                                               [DL2_DECODE_CORES] = "cores",
                                               NULL};
