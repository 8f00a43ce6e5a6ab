/* SPDX-License-Identifier: BSD-2-Clause */
#include "transcode/variant/server_parts.h"

#include "common/file.h"
#include "common/scope.h"
#include "transcode/variant/variant_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A variant's files: their names in a folder, and on the server. */
static const struct {
    const char *here, *there;
} files[] = {{DL2_VARIANT_JOURNAL, "journal"}, {DL2_STAGED_IMAGES, "images"}};
enum { FILES = sizeof files / sizeof *files };

int dl2_server_parts_begin(struct dl2_server_parts *parts, struct dl2_error *error)
{
    const char *parent = getenv("TMPDIR");
    DL2_TRY(dl2_format(&parts->folder, error, "%s/dl2-parts-XXXXXX",
                       parent && *parent ? parent : "/tmp"));
    if (mkdtemp(parts->folder))
        return DL2_OK;
    const int status =
        dl2_error_system(error, "%s: cannot be made; TMPDIR names another folder", parts->folder);
    free(parts->folder);
    parts->folder = NULL;
    return status;
}

int dl2_server_parts_meet(struct dl2_server_parts *parts, const char *digest,
                          struct dl2_error *error)
{
    return dl2_parts_place_open(parts->options->dest, digest, &parts->part, &parts->place, error);
}

/* "part-2-of-4" */
static void name_part(unsigned number, unsigned count, char out[DL2_WORK_PART_NAME + 4])
{
    memcpy(out, "part", sizeof "part");
    dl2_work_part_name(&(struct dl2_work_part){number, count}, out + strlen(out));
}

/* A variant's file of a part, here and on the server: two strings to free. */
static int name_file(const struct dl2_server_parts *parts, size_t target, size_t file,
                     unsigned number, const char *run, char **here, char **there,
                     struct dl2_error *error)
{
    char part[DL2_WORK_PART_NAME];
    DL2_AUTO_FREE char *variant = dl2_variant_name(&parts->options->targets[target]);
    *here = *there = NULL;
    dl2_work_part_name(&(struct dl2_work_part){number, parts->part.count}, part);
    if (!variant)
        return dl2_error_memory(error, "a variant");
    DL2_TRY(dl2_format(here, error, "%s/%s/%s%s", parts->folder, variant, files[file].here, part));
    return dl2_format(there, error, "%s/%s.%s", run, variant, files[file].there);
}

static int send_file(const struct dl2_server_parts *parts, size_t target, size_t file,
                     const char *run, struct dl2_error *error)
{
    DL2_AUTO_FREE char *here = NULL, *there = NULL;
    DL2_TRY(name_file(parts, target, file, parts->part.number, run, &here, &there, error));
    return dl2_is_file(here) ? dl2_parts_place_send(parts->place, there, here, error) : DL2_OK;
}

int dl2_server_parts_send(struct dl2_server_parts *parts, struct dl2_error *error)
{
    char run[DL2_PARTS_RUN_SIZE], name[DL2_WORK_PART_NAME + 4];
    DL2_AUTO_FREE char *path = dl2_path_join(parts->folder, "part");
    if (!path)
        return dl2_error_memory(error, "parts");
    dl2_parts_name_run(run);
    for (size_t i = 0; i < parts->options->target_count * FILES; i++)
        DL2_TRY(send_file(parts, i / FILES, i % FILES, run, error));
    DL2_TRY(dl2_file_write(path, run, strlen(run), error));
    name_part(parts->part.number, parts->part.count, name);
    return dl2_parts_place_send(parts->place, name, path, error);
}

int dl2_server_parts_count(struct dl2_server_parts *parts, unsigned *missing, unsigned *first,
                           bool *completed, bool *elected, struct dl2_error *error)
{
    char name[DL2_WORK_PART_NAME + 4];
    *elected = false;
    DL2_TRY(dl2_parts_place_claim(parts->place, error));
    DL2_TRY(dl2_parts_place_list(parts->place, error));
    *missing = 0;
    for (unsigned i = parts->part.count; i > 0; i--) {
        name_part(i, parts->part.count, name);
        if (dl2_parts_place_has(parts->place, name))
            continue;
        ++*missing;
        *first = i;
    }
    name_part(parts->part.number, parts->part.count, name);
    *completed = !dl2_parts_place_has(parts->place, name);
    if (*completed)
        *missing = 0;
    return *completed || *missing ? DL2_OK : dl2_parts_place_elect(parts->place, elected, error);
}

static int read_run(const struct dl2_server_parts *parts, unsigned number,
                    char run[DL2_PARTS_RUN_SIZE], struct dl2_error *error)
{
    char name[DL2_WORK_PART_NAME + 4];
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_AUTO_FREE char *path = dl2_path_join(parts->folder, "part");
    if (!path)
        return dl2_error_memory(error, "parts");
    name_part(number, parts->part.count, name);
    DL2_TRY(dl2_parts_place_fetch(parts->place, name, path, error));
    DL2_TRY(dl2_file_read(path, 1024, &text, error));
    DL2_TRY(dl2_bytes_append(&text, "", 1, error));
    if (strspn((char *)text.data, "0123456789abcdef") != DL2_PARTS_RUN_SIZE - 1 ||
        text.size != DL2_PARTS_RUN_SIZE)
        return dl2_error_set(error, DL2_ERR_FORMAT,
                             "%s: what lies there of part %u/%u is damaged; make the part again",
                             parts->options->dest, number, parts->part.count);
    memcpy(run, text.data, DL2_PARTS_RUN_SIZE);
    return DL2_OK;
}

static int take_file(const struct dl2_server_parts *parts, size_t target, size_t file,
                     unsigned number, const char *run, struct dl2_error *error)
{
    DL2_AUTO_FREE char *here = NULL, *there = NULL;
    DL2_TRY(name_file(parts, target, file, number, run, &here, &there, error));
    if (!dl2_parts_place_has(parts->place, there))
        return DL2_OK; /* nothing was to be made of the variant */
    DL2_TRY(dl2_make_folder_of(here, error));
    return dl2_parts_place_fetch(parts->place, there, here, error);
}

int dl2_server_parts_take(struct dl2_server_parts *parts, struct dl2_error *error)
{
    char run[DL2_PARTS_RUN_SIZE];
    for (unsigned number = 1; number <= parts->part.count; number++) {
        if (number == parts->part.number)
            continue; /* it is here */
        DL2_TRY(read_run(parts, number, run, error));
        for (size_t i = 0; i < parts->options->target_count * FILES; i++)
            DL2_TRY(take_file(parts, i / FILES, i % FILES, number, run, error));
    }
    return DL2_OK;
}

int dl2_server_parts_clear(struct dl2_server_parts *parts, struct dl2_error *error)
{
    return dl2_parts_place_clear(parts->place, error);
}

void dl2_server_parts_close(struct dl2_server_parts *parts)
{
    dl2_parts_place_close(parts->place);
    if (parts->folder)
        dl2_remove_tree(parts->folder);
    free(parts->folder);
    *parts = (struct dl2_server_parts){0};
}
