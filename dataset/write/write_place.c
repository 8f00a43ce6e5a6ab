/* SPDX-License-Identifier: BSD-2-Clause */
#include "dataset/write/write_place.h"

#include "common/file.h"
#include "common/memory.h"
#include "common/scope.h"
#include "dataset/packed/packed.h"
#include "dataset/write/store_place.h"
#include "dataset/write/variant_facts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- What is there from before */

/* "data_17.gulp": START, digits, END. */
static bool is_numbered(const char *name, const struct dl2_numbered_name *form)
{
    const size_t length = form->start ? strlen(form->start) : 0;
    if (!length || strncmp(name, form->start, length) != 0)
        return false;
    const size_t digits = strspn(name + length, "0123456789");
    return digits && !strcmp(name + length + digits, form->end);
}

static bool is_of_format(const char *name, const struct dl2_shard_format *format)
{
    return is_numbered(name, &format->shard) || is_numbered(name, &format->companion) ||
           !strcmp(name, format->classes_name);
}

/* Does a writer of this format, or of any where it is NULL, give a file this name? */
static bool is_written_here(const char *name, const struct dl2_shard_format *format)
{
    const struct dl2_container *container;
    if (!strcmp(name, DL2_INDEX_NAME) || (format && is_of_format(name, format)))
        return true;
    for (size_t i = 0; !format && (container = dl2_container_at(i)); i++)
        if (container->shards && is_of_format(name, container->shards))
            return true;
    return false;
}

/* Is it ".NAME.dl2-tmp" of such a name? */
static bool is_temporary(const char *name, const struct dl2_shard_format *format)
{
    const size_t length = strlen(name), tail = strlen(DL2_TEMPORARY_SUFFIX);
    char inner[64];
    if (name[0] != '.' || length <= tail + 1 || length - tail - 1 >= sizeof inner ||
        strcmp(name + length - tail, DL2_TEMPORARY_SUFFIX) != 0)
        return false;
    memcpy(inner, name + 1, length - tail - 1);
    inner[length - tail - 1] = '\0';
    return is_written_here(inner, format);
}

static bool is_facts(const char *name)
{
    return !strcmp(name, DL2_FACTS_SUMMARY_NAME) || !strcmp(name, DL2_FACTS_LINES_NAME);
}

static int refuse(const char *path, const char *what, struct dl2_error *error)
{
    return dl2_error_set(error, DL2_ERR_ARGUMENT,
                         "%s is in the way: a packed dataset needs a %s of its own, or one that "
                         "dl2-transcode has packed",
                         path, what);
}

/*
 * Goes through the place's folder, and its folders of splits: refuses what would be in the way, and
 * removes what a writer has left if `remove` says so. The facts go, too: the caller writes those of
 * the new dataset. What is hidden stays.
 */
static int clear_folder(const struct dl2_write_place *place, const char *path, bool own,
                        bool remove, struct dl2_error *error)
{
    const bool top = !strcmp(path, place->root);
    DL2_CLEANUP(dl2_close_folder) DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? DL2_OK : dl2_error_system(error, "%s: cannot be listed", path);
    const struct dirent *entry;
    while ((entry = readdir(folder))) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        DL2_AUTO_FREE char *inner = dl2_path_join(path, name);
        if (!inner)
            return dl2_error_memory(error, "a dataset");
        if (top && dl2_part_find(&place->folders, name, strlen(name)) && dl2_is_folder(inner)) {
            DL2_TRY(clear_folder(place, inner, own, remove, error));
            if (remove)
                rmdir(inner); /* unless something hidden is there */
        } else if (own && (is_written_here(name, place->format) ||
                           is_temporary(name, place->format) || (top && is_facts(name)))) {
            if (remove && unlink(inner) != 0 && errno != ENOENT)
                return dl2_error_system(error, "%s: cannot be removed", inner);
        } else if (name[0] != '.') {
            return refuse(inner, "folder", error);
        }
    }
    return DL2_OK;
}

/*
 * The same in a store. An object whose name ends with the slash of a folder stays, too.
 */
static int clear_objects(struct dl2_write_place *place, bool own, bool remove,
                         struct dl2_error *error)
{
    const char *name;
    for (size_t i = 0; (name = dl2_store_place_object(place->store, i)); i++) {
        const char *slash = strchr(name, '/');
        const bool top = !slash || !dl2_part_find(&place->folders, name, (size_t)(slash - name));
        const char *inner = top ? name : slash + 1;
        if (!*inner || *inner == '.')
            continue;
        if (!own || !(is_written_here(inner, place->format) || (top && is_facts(inner)))) {
            DL2_AUTO_FREE char *shown = dl2_store_place_shown(place->store, name);
            return refuse(shown ? shown : name, "prefix", error);
        }
        if (remove)
            DL2_TRY(dl2_store_place_remove(place->store, name, error));
    }
    return DL2_OK;
}

static int clear(struct dl2_write_place *place, bool own, bool remove, struct dl2_error *error)
{
    return place->store ? clear_objects(place, own, remove, error)
                        : clear_folder(place, place->root, own, remove, error);
}

static bool lists_shard(const struct dl2_index *index, const char *name)
{
    uint32_t n = 0;
    while (n < index->shard_count && strcmp(dl2_index_shard(index, n).name, name) != 0)
        n++;
    return n < index->shard_count;
}

/* Does the index list all shards that are there? Other programs may have added some, and the first
 * of these is in the way. */
static int check_objects(const struct dl2_index *index, const struct dl2_store_place *store,
                         struct dl2_error *error)
{
    const char *name;
    for (size_t i = 0; (name = dl2_store_place_object(store, i)); i++) {
        if (!is_numbered(dl2_path_base(name), &index->container->shards->shard) ||
            lists_shard(index, name))
            continue;
        DL2_AUTO_FREE char *shown = dl2_store_place_shown(store, name);
        return refuse(shown ? shown : name, "prefix", error);
    }
    return DL2_OK;
}

static int check_shards(const struct dl2_index *index, const char *root, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_shards_free) struct dl2_shard_files list = {0};
    DL2_TRY(dl2_shards_list(index->container, root, false, &list, error));
    for (size_t i = 0; i < list.count; i++) {
        if (lists_shard(index, list.files[i].name))
            continue;
        DL2_AUTO_FREE char *path = dl2_path_join(root, list.files[i].name);
        return refuse(path ? path : list.files[i].name, "folder", error);
    }
    return DL2_OK;
}

/* The mark: this text, in a store the run, and, each behind a zero byte, the names of
 * place->folders. */
static const char mark_text[] = "A packed dataset is being written here, or was when that was cut "
                                "short. Run the same dl2-transcode again to complete it.\n";
enum { MAX_MARK_BYTES = 1 << 17 };

static int note_folder(struct dl2_write_place *place, const char *name, struct dl2_error *error)
{
    uint8_t part;
    return dl2_part_add(&place->folders, name, strlen(name), &part, error);
}

/* Takes the folders that a mark names. */
static int read_mark(struct dl2_write_place *place, const char *path, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_TRY(dl2_file_read(path, MAX_MARK_BYTES, &text, error));
    DL2_TRY(dl2_bytes_append(&text, "", 1, error));
    size_t at = 0;
    while ((at += strlen((char *)text.data + at) + 1) < text.size)
        DL2_TRY(note_folder(place, (char *)text.data + at, error));
    return DL2_OK;
}

/* Is there an index of our own, or the mark that one was being written? Notes the folders of either
 * in *own. */
static int find_own_container(struct dl2_write_place *place, bool *own, struct dl2_error *error)
{
    DL2_AUTO_FREE char *mark = dl2_path_join(place->root, DL2_UNFINISHED_NAME);
    DL2_AUTO_FREE char *file = dl2_path_join(place->root, DL2_INDEX_NAME);
    DL2_CLEANUP(dl2_index_unmap) struct dl2_index index = {.map = NULL};
    if (!mark || !file)
        return dl2_error_memory(error, "a dataset");
    *own = dl2_is_file(mark);
    if (*own)
        return read_mark(place, mark, error);
    if (!dl2_is_file(file) || dl2_index_map(file, &index, NULL) < 0)
        return DL2_OK;
    *own = index.is_own;
    if (*own)
        DL2_TRY(place->store ? check_objects(&index, place->store, error)
                             : check_shards(&index, place->root, error));
    place->format = *own ? index.container->shards : NULL;
    for (uint32_t i = 0; *own && i < index.part_count; i++)
        DL2_TRY(note_folder(place, dl2_index_part(&index, i), error));
    return DL2_OK;
}

static int write_mark(const struct dl2_write_place *place, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_AUTO_FREE char *path = dl2_path_join(place->root, DL2_UNFINISHED_NAME);
    if (!path)
        return dl2_error_memory(error, "a dataset");
    DL2_TRY(dl2_bytes_append(&text, mark_text, strlen(mark_text), error));
    if (place->store)
        DL2_TRY(dl2_bytes_append(&text, place->run, strlen(place->run), error));
    for (unsigned i = 0; i < place->folders.count; i++) {
        const char *name = place->folders.names[i];
        DL2_TRY(dl2_bytes_append(&text, "", 1, error));
        DL2_TRY(dl2_bytes_append(&text, name, strlen(name), error));
    }
    DL2_TRY(dl2_file_write(path, text.data, text.size, error));
    return place->store ? dl2_store_place_send(place->store, path, DL2_UNFINISHED_NAME, error)
                        : DL2_OK;
}

/* ---- Runs that write to one prefix */

/* Names this run: host names and process numbers alone may be the same in two containers. */
static int name_run(struct dl2_write_place *place, struct dl2_error *error)
{
    char host[256] = "?", when[32] = "";
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &parts))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &parts);
    gethostname(host, sizeof host - 1);
    return dl2_format(&place->run, error, "host %s, process %ld, since %s.%09ldZ", host,
                      (long)getpid(), when, now.tv_nsec);
}

static int check_run(const struct dl2_write_place *place, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes mark = DL2_BYTES_INIT;
    const int found =
        dl2_store_place_load(place->store, DL2_UNFINISHED_NAME, MAX_MARK_BYTES, &mark, error);
    DL2_TRY(found);
    DL2_TRY(dl2_bytes_append(&mark, "", 1, error));
    const size_t length = strlen(mark_text);
    const char *text = (const char *)mark.data;
    const char *run = found && !strncmp(text, mark_text, length) ? text + length : "";
    if (!strcmp(run, place->run))
        return DL2_OK;
    DL2_AUTO_FREE char *shown = dl2_store_place_shown(place->store, "");
    return dl2_error_set(error, DL2_ERR_CANCELED,
                         "%s: another run has written there since this one began%s%s%s; let one of "
                         "them end alone",
                         shown ? shown : "the store", *run ? " (" : "", run, *run ? ")" : "");
}

int dl2_write_place_send(const struct dl2_write_place *place, const char *path, const char *name,
                         struct dl2_error *error)
{
    if (!place->store)
        return DL2_OK;
    DL2_TRY(check_run(place, error));
    return dl2_store_place_send(place->store, path, name, error);
}

/* ---- The place */

int dl2_write_place_unmark(const struct dl2_write_place *place, struct dl2_error *error)
{
    if (place->store)
        return dl2_store_place_remove(place->store, DL2_UNFINISHED_NAME, error);
    DL2_AUTO_FREE char *path = dl2_path_join(place->root, DL2_UNFINISHED_NAME);
    if (!path)
        return dl2_error_memory(error, "a dataset");
    return unlink(path) == 0 || errno == ENOENT
               ? DL2_OK
               : dl2_error_system(error, "%s: cannot be removed", path);
}

/* Makes the folder of a place in a store the root, with what tells whose the objects there are. */
static int open_store(struct dl2_write_place *place, struct dl2_error *error)
{
    DL2_TRY(dl2_store_place_open(place->root, &place->store, error));
    DL2_TRY(name_run(place, error));
    free(place->root);
    DL2_TRY(dl2_format(&place->root, error, "%s", dl2_store_place_folder(place->store)));
    DL2_TRY(dl2_store_place_fetch(place->store, DL2_UNFINISHED_NAME, error));
    return dl2_store_place_fetch(place->store, DL2_INDEX_NAME, error);
}

int dl2_write_place_open(const char *path, struct dl2_write_place *place, struct dl2_error *error)
{
    bool own;
    *place = (struct dl2_write_place){0};
    DL2_TRY(dl2_format(&place->root, error, "%s", path));
    if (dl2_is_address(path))
        DL2_TRY(open_store(place, error));
    DL2_TRY(find_own_container(place, &own, error));
    DL2_TRY(clear(place, own, false, error));
    DL2_TRY(dl2_make_folders(place->root, error));
    DL2_TRY(write_mark(place, error));
    if (own)
        DL2_TRY(clear(place, true, true, error));
    place->format = NULL; /* what lies here from now on is this writer's */
    return DL2_OK;
}

int dl2_write_place_add_folder(struct dl2_write_place *place, const char *name,
                               struct dl2_error *error)
{
    DL2_TRY(note_folder(place, name, error));
    if (place->store)
        DL2_TRY(check_run(place, error));
    return write_mark(place, error);
}

void dl2_write_place_undo(struct dl2_write_place *place)
{
    if (place->store &&
        (check_run(place, NULL) < 0 || dl2_store_place_list(place->store, NULL) < 0))
        return;
    if (clear(place, true, true, NULL) == DL2_OK)
        dl2_write_place_unmark(place, NULL);
}

void dl2_write_place_close(struct dl2_write_place *place)
{
    dl2_store_place_close(place->store);
    dl2_part_list_free(&place->folders);
    free(place->root);
    free(place->run);
    *place = (struct dl2_write_place){0};
}
