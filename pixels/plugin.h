/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations from shared objects, whose own side is pixels/operation_plugin.h. Opening one runs its
 * code: the text that names it must come from the user, never from a file or a server's client.
 *
 * Threads: any number at once may run one operation.
 */
#ifndef DL2_PIXELS_PLUGIN_H
#define DL2_PIXELS_PLUGIN_H

#include "common/random.h"
#include "pixels/operation_plugin.h"
#include "pixels/operations.h"

/* One operation of a shared object that is open. */
struct dl2_plugin;

/*
 * Opens "NAME@FILE" or "NAME@FILE#SUM", `length` bytes of a text. DL2_ERR_ARGUMENT for a file that
 * cannot be loaded, is no plug-in, is one of another ABI or of another check sum, has no such
 * operation or one that breaks the header's rules; the message names the file. Close *out in
 * either case; NULL is allowed.
 */
int dl2_plugin_open(const char *text, size_t length, struct dl2_plugin **out,
                    struct dl2_error *error);
void dl2_plugin_close(struct dl2_plugin *plugin);

/* NAME@FILE, as it was given. */
const char *dl2_plugin_name(const struct dl2_plugin *plugin);
/* Does it move pixels, so that masks have to follow? */
bool dl2_plugin_moves(const struct dl2_plugin *plugin);
/* XXH3, 64 bits, of the file's bytes. */
uint64_t dl2_plugin_sum(const struct dl2_plugin *plugin);

/* The settings, ended by one without a name; they live as long as the plug-in. */
const struct dl2_operation_setting *dl2_plugin_settings(const struct dl2_plugin *plugin);

/* Takes equally many numbers of `random` for every image and mask. DL2_ERR_FORMAT if it fails. */
int dl2_plugin_run(const struct dl2_plugin *plugin, const double *settings,
                   struct dl2_random *random, struct dl2_pixels *pixels, struct dl2_error *error);

#endif
