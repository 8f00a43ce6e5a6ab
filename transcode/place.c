#include "transcode/place.h"

#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_NAME ".dl2-transcode.lock"

char *dl2_place_resolve(const char *path)
{
    char *real = realpath(path, NULL);
    if (!real)
        return NULL;
    size_t length = strlen(real);
    char *with_slash = dl2_calloc(length + 2, 1);
    if (with_slash) {
        memcpy(with_slash, real, length);
        if (length == 0 || real[length - 1] != '/')
            with_slash[length] = '/';
    } else {
        errno = ENOMEM;
    }
    free(real);
    return with_slash;
}

static void say_so(const char *dest, void (*tell)(void *context, const char *text), void *context)
{
    char *text = NULL;
    if (!tell ||
        asprintf(&text, "%s: another dl2-transcode is writing here; waiting for it", dest) < 0)
        return;
    tell(context, text);
    free(text);
}

int dl2_place_lock(const char *dest, void (*tell)(void *context, const char *text), void *context,
                   int *lock, struct dl2_error *error)
{
    char *path = dl2_path_join(dest, LOCK_NAME);
    if (!path)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory");
    int status = DL2_OK;
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*lock < 0) {
        status = dl2_error_system(error, "%s: can't be written", path);
    } else if (flock(*lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            say_so(dest, tell, context);
        while (flock(*lock, LOCK_EX) != 0 && status == DL2_OK) {
            if (errno != EINTR)
                status = dl2_error_system(error, "%s: can't be locked", path);
        }
    }
    free(path);
    return status;
}
