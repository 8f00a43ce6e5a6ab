/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of a loader, by name: one table, and one check of what they come to together. The
 * options of programs and the arguments of dl2.Loader are read and checked by it; they only
 * translate the names.
 *
 * This header is installed with loader/loader.h.
 */
#ifndef DL2_LOADER_LOADER_SETTINGS_H
#define DL2_LOADER_LOADER_SETTINGS_H

#include "loader/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

enum dl2_setting_kind {
    DL2_SETTING_UNSIGNED,
    DL2_SETTING_SIZE, /* three unsigned: height, width or 0, and depth or 0 */
    DL2_SETTING_UINT64,
    DL2_SETTING_BOOL,
    DL2_SETTING_NUMBER,   /* a double */
    DL2_SETTING_RANGE,    /* two doubles */
    DL2_SETTING_CHANNELS, /* a float for each channel */
    DL2_SETTING_SHARES,   /* a struct dl2_dataset_shares */
    DL2_SETTING_CHOICE,   /* an enum, the number of one of `words` */
    DL2_SETTING_TEXT,     /* a pointer to char; NULL: not set */
    DL2_SETTING_NAMES,    /* the same, with commas */
    DL2_SETTING_POINTER   /* to what no text describes; NULL: not set */
};

/* What a setting has an effect with. Without that it must not be given. */
enum dl2_setting_scope {
    DL2_SETTING_TRAINING = 1,
    DL2_SETTING_VALIDATION = 2,
    DL2_SETTING_FLOATS = 4,      /* a dtype other than uint8 */
    DL2_SETTING_AHEAD = 8,       /* an `io` that reads ahead */
    DL2_SETTING_DECODER = 16,    /* a batch decoder */
    DL2_SETTING_PROCESSORS = 32, /* no batch decoder */
    DL2_SETTING_IMAGES = 64,     /* images and clips */
    DL2_SETTING_VOLUMES = 128,   /* volumes */
};

struct dl2_loader_setting {
    /* As in struct dl2_loader_config; ranges without _min, and weights_file is weights, too. */
    const char *name;
    enum dl2_setting_kind kind;
    size_t offset;    /* in struct dl2_loader_config */
    const char *help; /* for users of dl2.Loader; NULL: it has no such argument */
    unsigned scope;
    const char *const *words; /* NULL ends them */
    double min, max;          /* both 0: no bounds beyond the type's and the words' */
    bool pixels;              /* decides what images hold, so that it belongs to a state */
    const char *also;         /* other libraries' names for it, with commas; or NULL */
};

/* The table; a row without a name ends it. */
const struct dl2_loader_setting *dl2_loader_settings(void);
/* The row of a name; NULL: there is none. */
const struct dl2_loader_setting *dl2_loader_setting(const char *name);

/* Does the value of a setting show that it was set? Never if its default is a value, too. */
bool dl2_loader_is_set(const struct dl2_loader_config *config,
                       const struct dl2_loader_setting *setting);

/* Gives settings that have no effect with config->train, or without it, their defaults. */
void dl2_loader_clear_idle(struct dl2_loader_config *config);

/* Where settings are from. All 0: from a caller of the library. */
struct dl2_loader_source {
    /* DL2_SETTING_TRAINING, DL2_SETTING_VALIDATION or both; 0: as config.train says. */
    unsigned modes;
    bool decodes_on_card; /* config.decoder is to be set later */
    /* Was a setting given? NULL: dl2_loader_is_set(). */
    bool (*given)(const void *context, const struct dl2_loader_setting *setting);
    /* Writes the name that users know a setting by, or by which they clear it. NULL: the table's.
     */
    void (*translate)(const void *context, const struct dl2_loader_setting *setting, bool cleared,
                      char text[64]);
    const void *context;
};

/* What dl2_loader_check() finds. */
struct dl2_loader_fault {
    const struct dl2_loader_setting *setting;
    /* That it breaks, "needs {train}": in braces the names of other settings, or its min or max. */
    const char *rule;
};

/* The first rule that settings break; DL2_OK, or DL2_ERR_ARGUMENT and the fault. */
int dl2_loader_check(const struct dl2_loader_config *config, const struct dl2_loader_source *source,
                     struct dl2_loader_fault *fault);
/* Sets an error that says so in the words of the source. Returns DL2_ERR_ARGUMENT. */
int dl2_loader_explain(const struct dl2_loader_fault *fault, const struct dl2_loader_source *source,
                       struct dl2_error *error);

#ifdef __cplusplus
}
#endif

#endif
