/*
 * Packed datasets: samples in a few large files, "shards". What the formats share: the shards on
 * disk, a scan of them that ends in an index, and the source that reads by an index. Only this
 * room's files include it.
 */
#ifndef DL2_DATASET_PACKED_H
#define DL2_DATASET_PACKED_H

#include "dataset/index.h"
#include "dataset/tree.h"

/* Lies where a container is being written, or was when its writer was killed. */
#define DL2_UNFINISHED_NAME ".dl2-unfinished"

/* Largest encoded sample, bytes. */
#define DL2_MAX_SAMPLE_BYTES ((uint64_t)INT32_MAX)

/* ---- shards.c */

struct dl2_scan;

/* The shards that lie at a path and in its folders of splits, in the order of their samples. */
struct dl2_shard_files {
    enum dl2_index_kind kind;
    char *root;
    struct dl2_shard_file {
        char *name;           /* path from the root */
        char *meta;           /* gulp: of the chunk's meta file, the same */
        const char *key_part; /* "", "train/"...: what its samples' keys start with */
        uint64_t number;      /* gulp: the chunk's */
    } * files;
    size_t count;
    char **folders; /* where shards were looked for: "", "train/", ... */
    size_t folder_count;
};

/* Lists the shards; what can't be read at random (compressed tar) is refused by name. */
int dl2_shard_files_list(const char *path, struct dl2_shard_files *list, struct dl2_error *error);
/* Size and time of a shard; of a chunk's two files the later time counts. */
int dl2_shard_file_stat(const struct dl2_shard_files *list, const struct dl2_shard_file *file,
                        uint64_t *bytes, int64_t *mtime_ns, struct dl2_error *error);
/* Reads all shards into a scan, and finishes it. */
int dl2_shard_files_scan(const struct dl2_shard_files *list, struct dl2_scan *scan,
                         struct dl2_error *error);
void dl2_shard_files_free(struct dl2_shard_files *list);

/* ---- scan.c */

/* What a scan gathers. Zeroed at first. */
struct dl2_scan {
    struct dl2_index_draft draft;
    struct dl2_bytes label_of; /* int32_t an entry: number of its label's text, or -1 */
    char **labels;             /* the texts, each once */
    uint32_t *slots;           /* a hash table of them, numbers + 1 */
    uint32_t label_count, slot_count;
    /* The lists of classes beside the shards, with the folder that each is for. */
    struct dl2_class_list {
        char *folder;
        char **names; /* NULL: what was there is no list in order */
        uint32_t count;
    } * lists;
    size_t list_count;
};

/* Adds a sample of the draft's last shard. `label` is its class's name as the shard has it, or
 * NULL. */
int dl2_scan_add(struct dl2_scan *scan, const struct dl2_index_entry *entry, const char *label,
                 struct dl2_error *error);
/* Takes `names` (a block of `count` strings, all to be freed). */
int dl2_scan_add_classes(struct dl2_scan *scan, const char *folder, char **names, uint32_t count,
                         struct dl2_error *error);
/* The list for a folder ("", "train/"; so many bytes of it), or NULL. */
const struct dl2_class_list *dl2_scan_classes(const struct dl2_scan *scan, const char *folder,
                                              size_t length);
/* Drops all samples from number `count` on. */
void dl2_scan_cut(struct dl2_scan *scan, size_t count);
/*
 * Labels and parts. Classes are in the order of the lists beside the shards, where there are and
 * all say the same; else, where labels are numbers, these numbers; else sorted by name. Without any
 * labels names are read like those of a folder.
 */
int dl2_scan_finish(struct dl2_scan *scan, struct dl2_error *error);
void dl2_scan_free(struct dl2_scan *scan);

/* ---- gulp.c, tar.c */

/*
 * The formats. Each reads the one shard `file`, which is open as `fd` and is the draft's last, and
 * may look for a list of classes beside it. Messages name what is wrong, not the shard.
 */
int dl2_gulp_scan(struct dl2_scan *scan, const struct dl2_shard_files *list,
                  const struct dl2_shard_file *file, uint64_t bytes, struct dl2_error *error);
int dl2_tar_scan(struct dl2_scan *scan, int fd, uint64_t bytes, const char *key_part,
                 const struct dl2_class_list *classes, struct dl2_error *error);
int dl2_gulp_read_classes(struct dl2_scan *scan, const char *root, const char *folder,
                          struct dl2_error *error);
int dl2_tar_read_classes(struct dl2_scan *scan, const char *root, const char *folder,
                         struct dl2_error *error);

/* A chunk's meta file: its bytes, of a data file of `data_bytes`. */
int dl2_gulp_parse(struct dl2_scan *scan, const void *text, size_t size, uint64_t data_bytes,
                   const char *key_part, struct dl2_error *error);

#endif
