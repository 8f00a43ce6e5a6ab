/* SPDX-License-Identifier: BSD-2-Clause */
/* The shell scripts that lie beside study.mk. */
#ifndef DL2_STUDY_SCRIPTS_H
#define DL2_STUDY_SCRIPTS_H

/* The path of one; ends the program where it is not found. */
const char *dl2_study_script(const char *name);

#endif
