/* SPDX-License-Identifier: BSD-2-Clause */
#include "codec/ffmpeg_libraries.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dl2_ffmpeg dl2_ffmpeg;

#define MAJOR(library)         AV_STRINGIFY(library##_VERSION_MAJOR)
#define PACKAGE(name, library) name MAJOR(library)
#define PACKAGES                                                                                   \
    PACKAGE("libavformat", LIBAVFORMAT)                                                            \
    ", " PACKAGE("libavcodec", LIBAVCODEC) ", " PACKAGE("libswscale", LIBSWSCALE) ", " PACKAGE(    \
        "libavutil", LIBAVUTIL)

static void *load_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();
    if (!library && !*dl2_ffmpeg.missing)
        snprintf(dl2_ffmpeg.missing, sizeof dl2_ffmpeg.missing,
                 "FFmpeg's libraries, with which this build reads and makes videos, are not "
                 "installed (Debian: " PACKAGES "): %s",
                 why ? why : name);
    return library;
}

static void load_function(void *library, const char *name, void *function)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (library && !found && !*dl2_ffmpeg.missing)
        snprintf(dl2_ffmpeg.missing, sizeof dl2_ffmpeg.missing,
                 "FFmpeg's libraries are other ones than those that this build was made for: they "
                 "lack %s",
                 name);
    memcpy(function, &found, sizeof found);
}

static void load_libraries(void)
{
    void *const format = load_library("libavformat.so." MAJOR(LIBAVFORMAT));
    void *const codec = load_library("libavcodec.so." MAJOR(LIBAVCODEC));
    void *const sws = load_library("libswscale.so." MAJOR(LIBSWSCALE));
    void *const util = load_library("libavutil.so." MAJOR(LIBAVUTIL));
#define LOAD(library, name) load_function(library, #name, &dl2_ffmpeg.name);
    DL2_FFMPEG_FUNCTIONS(LOAD)
    if (*dl2_ffmpeg.missing)
        return;
#define PARTS(version)                                                                             \
    AV_VERSION_MAJOR(version), AV_VERSION_MINOR(version), AV_VERSION_MICRO(version)
    const unsigned of_format = dl2_ffmpeg.avformat_version(),
                   of_codec = dl2_ffmpeg.avcodec_version(), of_sws = dl2_ffmpeg.swscale_version();
    snprintf(dl2_ffmpeg.versions, sizeof dl2_ffmpeg.versions,
             "libavformat %u.%u.%u, libavcodec %u.%u.%u, libswscale %u.%u.%u", PARTS(of_format),
             PARTS(of_codec), PARTS(of_sws));
}

const char *dl2_ffmpeg_missing(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_libraries);
    return *dl2_ffmpeg.missing ? dl2_ffmpeg.missing : NULL;
}

const char *dl2_ffmpeg_version(void)
{
    dl2_ffmpeg_missing();
    return dl2_ffmpeg.versions;
}

void dl2_ffmpeg_be_quiet(void)
{
    if (dl2_ffmpeg.av_log_get_level() == AV_LOG_INFO)
        dl2_ffmpeg.av_log_set_level(AV_LOG_QUIET);
}

/* ---- Libraries that these have loaded */

struct search {
    const char *start;
    char *out;
    size_t size;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    const char *base = strrchr(info->dlpi_name, '/');
    if (!base || strncmp(base + 1, search->start, strlen(search->start)) != 0)
        return 0;
    char *path = realpath(info->dlpi_name, NULL); /* libaom.so.3 leads to libaom.so.3.6.0 */
    const char *name = path ? strrchr(path, '/') + 1 : base + 1;
    snprintf(search->out, search->size, "%s", name);
    free(path);
    return 1;
}

void dl2_ffmpeg_find_library(const char *start, char *out, size_t size)
{
    struct search search = {start, out, size};
    *out = '\0';
    dl_iterate_phdr(look_at, &search);
}
