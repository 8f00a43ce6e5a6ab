/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that need not exist. */
#ifndef DL2_STUDY_PATHS_H
#define DL2_STUDY_PATHS_H

#include <stdbool.h>

/* From the root, without "." and "..", links left as they are. */
const char *dl2_path_absolute(const char *path);
/* The same with links followed as far as the path exists. */
const char *dl2_path_canonical(const char *path);
/* The folder of a file, whose path has a slash. */
const char *dl2_path_folder(const char *path);
/* The running program's file; NULL: not known. */
const char *dl2_path_of_program(void);
/* Whether a canonical path is a folder or below it. */
bool dl2_path_is_within(const char *path, const char *folder);

#endif
