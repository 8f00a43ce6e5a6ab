/* SPDX-License-Identifier: BSD-2-Clause */
#include "study/paths.h"

#include "common/option.h"
#include "study/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *walk(const char *path, bool follows_links)
{
    char here[PATH_MAX];
    const char *at = "";
    if (*path != '/') {
        if (!getcwd(here, sizeof here))
            dl2_study_fail(DL2_EXIT_FAILED, "this folder is gone");
        at = strcmp(here, "/") == 0 ? "" : dl2_text("%s", here);
    }
    for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
        const size_t length = strcspn(path, "/");
        if (length == 2 && !strncmp(path, "..", 2)) {
            const char *last = strrchr(at, '/');
            at = dl2_text("%.*s", last ? (int)(last - at) : 0, at);
        } else if (length != 1 || *path != '.') {
            at = dl2_text("%s/%.*s", at, (int)length, path);
            char *real = follows_links ? realpath(at, NULL) : NULL;
            if (real)
                at = strcmp(real, "/") == 0 ? "" : dl2_text("%s", real);
            free(real);
        }
        path += length;
    }
    return *at ? at : "/";
}

const char *dl2_path_absolute(const char *path)
{
    return walk(path, false);
}

const char *dl2_path_canonical(const char *path)
{
    return walk(path, true);
}

bool dl2_path_is_within(const char *path, const char *folder)
{
    const size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

const char *dl2_path_folder(const char *path)
{
    return dl2_text("%.*s", (int)(strrchr(path, '/') - path), path);
}

const char *dl2_path_of_program(void)
{
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? dl2_text("%.*s", (int)length, path) : NULL;
}
