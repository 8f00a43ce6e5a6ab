/* The words of the loader's enums, for options (DL2_OPTION_CHOICE) and reports; NULL ends each. */
#ifndef DL2_LOADER_WORDS_H
#define DL2_LOADER_WORDS_H

extern const char *const dl2_split_words[];         /* enum dl2_split: "all", "train"... */
extern const char *const dl2_dtype_words[];         /* enum dl2_dtype: "uint8"... */
extern const char *const dl2_layout_words[];        /* enum dl2_layout: "nhwc"... */
extern const char *const dl2_batching_words[];      /* enum dl2_batching: "strict"... */
extern const char *const dl2_io_words[];            /* enum dl2_io: "auto"... */
extern const char *const dl2_on_bad_words[];        /* stop_on_bad: "skip", "stop" */
extern const char *const dl2_decode_mode_words[];   /* enum dl2_decode_mode: "cpu"... */
extern const char *const dl2_decode_input_words[];  /* enum dl2_decode_input: "plain"... */
extern const char *const dl2_decode_engine_words[]; /* enum dl2_decode_engine: "auto"... */

#endif
