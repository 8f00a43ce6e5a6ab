/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packed datasets: samples in a few large files, called shards, with an index. The formats share
 * all that this header declares: listing shards, scanning them into an index, reading by the
 * index, and the writer. What a format adds is one struct dl2_shard_format. Only this room's files
 * include this header.
 */
#ifndef DL2_DATASET_PACKED_H
#define DL2_DATASET_PACKED_H

#include "dataset/container.h"
#include "dataset/packed/index.h"
#include "dataset/packed/label_field.h"
#include "dataset/packed/source.h"
#include "dataset/write/writer.h"

#include <pthread.h>
#include <stdio.h>

/* Lies in a folder while a container is written there, and still if the writer was killed. */
#define DL2_UNFINISHED_NAME ".dl2-unfinished"

/* Largest encoded sample, bytes. */
#define DL2_MAX_SAMPLE_BYTES ((uint64_t)INT32_MAX)

struct dl2_scan;

/* ---- What a format of shards supplies */

/* The role of a file in a format, by its name. */
enum dl2_file_role {
    DL2_FILE_OTHER,
    DL2_FILE_SHARD,
    DL2_FILE_COMPANION,  /* belongs to the shard that has the same number */
    DL2_FILE_COMPRESSED, /* a shard in gzip, which can be read from front to back */
    DL2_FILE_REFUSED     /* a shard that cannot be read: see `refusal` */
};

/* File names of a format: START, a number of at least `digits` digits, END. */
struct dl2_numbered_name {
    const char *start, *end; /* NULL: the format has no such files */
    int digits;
    const char *what; /* for messages: "meta file (.gmeta)" */
};

/* A shard to be scanned; what it points to stays the caller's. */
struct dl2_shard_input {
    struct dl2_shard_source source;
    uint64_t bytes;
    struct dl2_bytes companion;           /* the companion's contents, if the format has those */
    const char *key_start;                /* what its samples' keys start with: "", "train/"... */
    const struct dl2_class_list *classes; /* the list of classes beside it, or NULL */
};

/* What a format keeps of a shard between calls. */
struct dl2_shard_kept {
    pthread_mutex_t mutex;
    void *data;       /* NULL: nothing yet */
    bool has_nothing; /* it is known to have nothing beside its images but their classes */
};

/* Where a sample lies, to find what is beside it. */
struct dl2_shard_place {
    struct dl2_shard_source source; /* of its shard */
    const char *path;
    uint64_t shard_bytes;
    uint64_t start;  /* nothing of the sample comes before it: the end of an earlier image, or 0 */
    uint64_t offset; /* of its image */
    const char *key, *extension; /* of its image */
    size_t key_prefix;           /* of the key's last part: bytes that are the shard's name */
    struct dl2_shard_kept *kept;
};

/* A shard that is being written. */
struct dl2_shard_output {
    FILE *file;       /* NULL: none is open */
    const char *path; /* its final one, for messages */
    uint64_t bytes;   /* written so far */
    uint32_t samples;
    FILE *companion; /* of formats that have one; its errors are looked for when it is closed */
    const char *companion_path;
    struct dl2_bytes scratch; /* the format's own */
};

/* What a scan finds and does not load; it counts each, and names the first. */
enum dl2_finding {
    DL2_FOUND_UNLABELED, /* samples without a label in the field that labels come from */
    DL2_FOUND_JSON,      /* samples whose labels may be in their .json */
    DL2_FOUND_LABEL,     /* labels that are not in the sample's .cls */
    DL2_FOUND_IMAGE,     /* members that may be the image of a sample that has another */
    DL2_FOUND_NO_IMAGE,  /* members of samples that have no image */
    DL2_FOUND_LINK,      /* symbolic links */
    DL2_FINDINGS
};
struct dl2_findings {
    struct {
        size_t count;
        char *first;
    } of[DL2_FINDINGS];
};

struct dl2_shard_format {
    uint32_t index_kind;  /* its number in dl2-index.bin; 0 is no format's */
    uint32_t max_samples; /* of a shard, if the writer is not asked for another; 0: no limit */
    bool is_alone;        /* one shard by itself is a dataset, too */
    bool among_folders;   /* shards count even if folders of other files lie beside them */
    bool holds_clips;     /* a clip is one item */
    bool has_members;     /* a sample's label and image can be chosen: struct dl2_member_choice */
    bool keys_are_paths;  /* without labels, a key's folders are its class, as in a folder */
    bool keys_are_shards; /* two shards may have the same keys */
    struct dl2_numbered_name shard, companion; /* shards with companions are in numerical order */
    const char *classes_name;                  /* of the list of classes beside the shards */
    /* Why DL2_FILE_REFUSED is, and what to do; the same of DL2_FILE_COMPRESSED where samples are
     * read in any order. */
    const char *refusal, *compressed_refusal;

    enum dl2_file_role (*role)(const char *name);
    /* Adds all samples of a shard, which is the draft's last. Messages need not name the file. */
    int (*scan)(struct dl2_scan *scan, const struct dl2_shard_input *input,
                struct dl2_error *error);
    /*
     * Reads the list of classes: 1 and names in one block to be freed, in label order (NULL: the
     * list has no order), or 0 if the file holds no list.
     */
    int (*read_classes)(const struct dl2_bytes *text, char ***names, uint32_t *count,
                        struct dl2_error *error);
    /* DL2_ERR_UNSUPPORTED for a sample that the format cannot hold. NULL: it holds any. */
    int (*check)(const struct dl2_new_sample *sample, struct dl2_error *error);
    /* Reads what a sample has beside its image: 1, or 0 if it has none of this extension. Messages
     * need not name the sample. Any number of threads at once. */
    int (*read_sidecar)(const struct dl2_shard_place *place, const char *extension,
                        struct dl2_bytes *out, struct dl2_error *error);
    /* As dl2_dataset_read_sidecars(), in any order. Any number of threads at once. */
    int (*read_sidecars)(const struct dl2_shard_place *place, struct dl2_sidecars *out,
                         struct dl2_error *error);
    /* Can the format hold this beside the sample's image? */
    bool (*holds_sidecars)(const struct dl2_new_sample *sample, const struct dl2_sidecar *item);
    /* Frees what read_sidecar() has kept of a shard. NULL: it keeps nothing. */
    void (*forget)(void *kept);
    /* Appends a sample and what it has beside its image; *offset is set to where its bytes begin,
     * of a clip an array of as many as it has frames. */
    int (*write_add)(struct dl2_shard_output *output, const struct dl2_new_sample *sample,
                     uint64_t *offset, struct dl2_error *error);
    /* Writes what stands after the last sample. */
    int (*write_end)(struct dl2_shard_output *output, struct dl2_error *error);
    /* Prints the list of classes; nothing if the format cannot hold these names. */
    void (*write_classes)(const char *const *names, uint32_t count, FILE *out);
};

/* packed.c: the reader of every packed container. */
extern const struct dl2_reader dl2_packed_reader;
/* DL2_ERR_ARGUMENT where members cannot be chosen so. */
int dl2_packed_check_members(const struct dl2_container *container, const char *path,
                             const struct dl2_member_choice *members, struct dl2_error *error);

/* ---- shards.c: the shards at a path */

/* The shards that lie at a path and in its folders of splits, in the order of their samples. */
struct dl2_shard_files {
    const struct dl2_container *container;
    char *root;
    bool in_order; /* samples are read from front to back, so shards may be compressed */
    struct dl2_shard_file {
        enum dl2_file_role role;
        char *name;            /* path from the root */
        char *companion;       /* the same, or NULL */
        const char *folder;    /* one of `folders` */
        const char *key_start; /* what its samples' keys start with */
        uint64_t number;       /* the first in the name, of formats with companions */
    } * files;
    size_t count;
    char **folders; /* where shards were looked for: "", "train/", ... */
    size_t folder_count;
};

/* The packed container that lies at `path`, whole or not, by names alone; NULL: none. */
const struct dl2_container *dl2_shards_probe(const char *path);
/* Lists the shards of a container. A shard that cannot be read is refused by name, and so is a
 * compressed one unless samples are read in order. */
int dl2_shards_list(const struct dl2_container *container, const char *path, bool in_order,
                    struct dl2_shard_files *list, struct dl2_error *error);
/* Size and time of a shard: the later time of the shard and its companion. */
int dl2_shard_stat(const struct dl2_shard_files *list, const struct dl2_shard_file *file,
                   uint64_t *bytes, int64_t *mtime_ns, struct dl2_error *error);
/* Reads all shards into a zeroed scan, and finishes it. */
int dl2_shards_scan(const struct dl2_shard_files *list, const struct dl2_member_choice *members,
                    struct dl2_scan *scan, struct dl2_error *error);
void dl2_shards_free(struct dl2_shard_files *list);

/* ---- scan.c: what a scan of shards gathers */

/* Zeroed at first, but for draft.container. */
struct dl2_scan {
    struct dl2_index_draft draft;
    struct dl2_bytes label_of; /* int32_t a sample: the number of its label's text, or -1 */
    struct dl2_bytes labels;   /* pointers to the texts, each once, by number */
    void *tree;                /* of the same (search.h), by text */
    uint32_t label_count;
    /* Where labels are values in JSON: of draft.label_field numbers or names. */
    enum dl2_field_kind label_kind;
    struct dl2_findings findings; /* of whole shards */
    /* The lists of classes beside the shards. */
    struct dl2_class_list {
        const char *folder; /* that it is for: "", "train/"... */
        char **names;       /* NULL: the file is no list in order */
        uint32_t count;
    } * lists;
    size_t list_count;
};

/* Adds a sample of the draft's last shard. `label` is what the shard says of its class, a number or
 * a name (dl2_label_number()), or NULL. */
int dl2_scan_add(struct dl2_scan *scan, const struct dl2_index_entry *entry, const char *label,
                 struct dl2_error *error);
/* Takes `names`, `count` of them in one block; `folder` must outlive the scan. */
int dl2_scan_add_classes(struct dl2_scan *scan, const char *folder, char **names, uint32_t count,
                         struct dl2_error *error);
/* Counts `count` of a kind; `name`, and the shard that is being read, are for the message. */
int dl2_scan_find(const struct dl2_scan *scan, struct dl2_findings *findings, enum dl2_finding kind,
                  size_t count, const char *name, struct dl2_error *error);
/* Adds the findings to those of the scan. */
void dl2_scan_add_findings(struct dl2_scan *scan, struct dl2_findings *findings);
void dl2_findings_free(struct dl2_findings *findings);
/* Drops all samples from number `count` on. */
void dl2_scan_cut(struct dl2_scan *scan, size_t count);
/*
 * Sets labels and parts. Classes are those of the lists beside the shards, if all of them agree and
 * hold every label by its name or its number. Without lists, labels that are all numbers are the
 * classes' numbers. Else classes are sorted by name, those in train first. A label below 0 is no
 * class. Without any labels, names are read like those of a folder. The draft's remarks say where
 * sorted names may not be meant, how many labels are below 0, and what was found.
 */
int dl2_scan_finish(struct dl2_scan *scan, struct dl2_error *error);
void dl2_scan_free(struct dl2_scan *scan);

/* ---- writer.c: for the formats */

int dl2_shard_put(struct dl2_shard_output *output, const void *data, size_t size,
                  struct dl2_error *error);
/* At most 1024 zeros. */
int dl2_shard_put_zeros(struct dl2_shard_output *output, size_t size, struct dl2_error *error);

#endif
