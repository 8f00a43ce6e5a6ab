/* SPDX-License-Identifier: BSD-2-Clause */
/* What a script that does not load by dl2 would read in another way, said before hours are spent.
 * docs/your-network.md has what was tried. */
#include "study/trainer.h"

#include <stdio.h>
#include <string.h>

/* Codecs that not every decoder reads. */
static const struct {
    const char *codec, *readers;
} readers[] = {
    {"avif", "Pillow 11.3 or later and OpenCV read it, torchvision's ImageFolder does not"},
    {"jp2", "Pillow and OpenCV read it, torchvision's ImageFolder does not"},
    {"jxl", "Pillow reads it with a plugin, pillow-jxl-plugin; ImageFolder and OpenCV do not"},
    {"jxl_lossless",
     "Pillow reads it with a plugin, pillow-jxl-plugin; ImageFolder and OpenCV do not"},
};

static void say(const char *variable, const char *value, const char *what)
{
    fprintf(stderr, "dl2-study: %s is \"%s\": %s\n", variable, value, what);
}

void dl2_trainer_say_readers(const struct dl2_study_settings *study)
{
    const struct dl2_study_options *o = &study->options;
    const struct dl2_words codecs = dl2_words_split(o->codecs);
    if (*o->weights || dl2_trainer_names(study->trainer, "dl2.torch") ||
        dl2_trainer_names(study->trainer, "dl2.Loader") ||
        dl2_trainer_names(study->trainer, "dl2.Dataset"))
        return;
    for (size_t i = 0; i < codecs.count; i++) {
        for (size_t r = 0; r < sizeof readers / sizeof *readers; r++)
            if (strcspn(codecs.at[i], ":") == strlen(readers[r].codec) &&
                strncmp(codecs.at[i], readers[r].codec, strlen(readers[r].codec)) == 0)
                say("CODECS", codecs.at[i],
                    dl2_text("%s. Make sure that %s reads such files", readers[r].readers,
                             study->trainer->variable));
        if (strstr(codecs.at[i], ":turn=yes"))
            say("CODECS", codecs.at[i],
                "images that are wider than high lie on their side, to programs that ignore EXIF "
                "orientations: Pillow without ImageOps.exif_transpose, and so torchvision's "
                "ImageFolder");
    }
    if (study->external)
        say("EXTERNAL", study->external, "only dl2 reads files of external codecs");
    if (study->elsewhere)
        say("VARIANTS", o->variants, "only dl2 reads variants that are there");
    else if (study->container && strcmp(study->container, "folder") != 0 &&
             !dl2_flags_value(o->transcode_flags, "--container"))
        say("DATASET", o->dataset,
            dl2_text(
                "it is of the form \"%s\", and its variants are folders of classes: `dl2-transcode "
                "copy` makes a folder of it, for scripts that read one form alone",
                study->container));
}
