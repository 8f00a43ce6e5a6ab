/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's standard streams: safe to open files beside, and checked at the end.
 *
 * Threads: main's, before there are others.
 */
#ifndef DL2_COMMON_STREAMS_H
#define DL2_COMMON_STREAMS_H

/*
 * Opens /dev/null on each of the descriptors 0 to 2 that is closed, so that no file gets its number
 * and takes what is written to the stream. When the process exits, by exit() or by returning from
 * main(), the standard output is flushed and closed; where that fails, or an earlier write did, the
 * process says so on stderr and ends with DL2_EXIT_FAILED, whatever its status was. `program` is
 * its name for that message, and must live on. Call once, before anything is opened.
 */
void dl2_streams_begin(const char *program);

#endif
