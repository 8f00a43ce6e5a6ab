/* Where dl2-transcode writes: whose place it is, and that nobody else writes there meanwhile. */
#ifndef DL2_TRANSCODE_PLACE_H
#define DL2_TRANSCODE_PLACE_H

#include "common/error.h"

/* `path` with links resolved, and "/" at its end. A string to free, or NULL with errno. */
char *dl2_place_resolve(const char *path);

/* The same of a folder that need not be there yet: what its path will lead to once it is made. */
char *dl2_place_resolve_new(const char *path);

/*
 * Waits until no other run writes to `dest`, a folder that is there; tell() (may be NULL) says so
 * where it has to. Closing *lock ends it; the lock file stays, since another run may be waiting.
 */
int dl2_place_lock(const char *dest, void (*tell)(void *context, const char *text), void *context,
                   int *lock, struct dl2_error *error);

#endif
