/* SPDX-License-Identifier: BSD-2-Clause */
#include "pixels/plugin.h"

#include "common/file.h"
#include "common/quote.h"
#include "common/scope.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Largest file that is read for its check sum, bytes. */
#define MAX_FILE_BYTES ((uint64_t)1 << 30)

enum { SUM_DIGITS = 16 };

struct dl2_plugin {
    char *name;       /* NAME@FILE */
    const char *file; /* within it */
    void *handle;
    const struct dl2_plugin_operation *operation;
    uint64_t sum;
};

static const struct dl2_operation_setting no_settings[] = {{NULL, 0, 0, 0, false}};

/* ---- opening ---- */

/* Cuts "#SUM" off the end of a name; false where there is none. */
static bool plugin_cut_sum(char *name, uint64_t *sum)
{
    char *mark = strrchr(name, '#'), *end;
    if (!mark || strlen(mark + 1) != SUM_DIGITS)
        return false;
    *sum = strtoull(mark + 1, &end, 16);
    if (*end)
        return false;
    *mark = '\0';
    return true;
}

static int plugin_refuse(const struct dl2_plugin *plugin, struct dl2_error *error,
                         const char *format, ...) DL2_PRINTF(3, 4);

static int plugin_refuse(const struct dl2_plugin *plugin, struct dl2_error *error,
                         const char *format, ...)
{
    char why[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return dl2_error_set(error, DL2_ERR_ARGUMENT, "plug-in %s: %s", plugin->file, why);
}

/* Letters and digits, so that a text of names and numbers can be taken apart again. */
static bool plugin_is_name(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

static int plugin_check_settings(const struct dl2_plugin *plugin, struct dl2_error *error)
{
    const struct dl2_plugin_operation *operation = plugin->operation;
    const struct dl2_operation_setting *settings = dl2_plugin_settings(plugin);
    if (!operation->run)
        return plugin_refuse(plugin, error, "the operation %s has no function", operation->name);
    size_t count = 0;
    for (; settings[count].name; count++) {
        const struct dl2_operation_setting *own = &settings[count];
        if (count == DL2_OPERATION_SETTINGS)
            return plugin_refuse(plugin, error, "%s has more than %d settings", operation->name,
                                 DL2_OPERATION_SETTINGS);
        if (!plugin_is_name(own->name) || !strcmp(own->name, "p"))
            return plugin_refuse(plugin, error,
                                 "%s has a setting '%s': a name has lower-case letters, digits and "
                                 "'-', and p is dl2's own",
                                 operation->name, own->name);
        for (size_t i = 0; i < count; i++)
            if (!strcmp(settings[i].name, own->name))
                return plugin_refuse(plugin, error, "%s has two settings '%s'", operation->name,
                                     own->name);
        if (!(isfinite(own->low) && own->low <= own->standard && own->standard <= own->high &&
              isfinite(own->high)) ||
            (own->whole && own->standard != floor(own->standard)))
            return plugin_refuse(plugin, error,
                                 "%s: the default of %s, %g, is no %snumber from %g to %g",
                                 operation->name, own->name, own->standard,
                                 own->whole ? "whole " : "", own->low, own->high);
    }
    return DL2_OK;
}

static int plugin_find(struct dl2_plugin *plugin, const struct dl2_operation_plugin *exported,
                       const char *name, struct dl2_error *error)
{
    char all[256] = "";
    for (const struct dl2_plugin_operation *one = exported->operations; one && one->name; one++) {
        if (!strcmp(one->name, name) && plugin_is_name(name)) {
            plugin->operation = one;
            return plugin_check_settings(plugin, error);
        }
        dl2_list_name(all, sizeof all, one->name);
    }
    return plugin_refuse(plugin, error, "has no operation '%s', only %s", name,
                         *all ? all : "none");
}

/* What was loaded, in memory and as a file. */
struct plugin_code {
    const struct link_map *map;
    const struct dl2_bytes *file;
};

/* memcmp() would stop at what AddressSanitizer puts between the constants of a plug-in. */
__attribute__((no_sanitize_address)) static bool plugin_is_same(const uint8_t *a, const uint8_t *b,
                                                                size_t size)
{
    while (size && *a == *b)
        a++, b++, size--;
    return size == 0;
}

/* For dl_iterate_phdr(): 1 where the constant parts of the object are not those of the file. */
static int plugin_differs(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct plugin_code *code = context;
    (void)size;
    if (info->dlpi_addr != code->map->l_addr || strcmp(info->dlpi_name, code->map->l_name) != 0)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || part->p_flags & PF_W)
            continue;
        if (part->p_filesz > code->file->size ||
            part->p_offset > code->file->size - part->p_filesz ||
            !plugin_is_same((const uint8_t *)(uintptr_t)(info->dlpi_addr + part->p_vaddr),
                            code->file->data + part->p_offset, part->p_filesz))
            return 1;
    }
    return 0;
}

/* The check sum of the file that was loaded, wherever dlopen() found it. dlopen() returns an object
 * of the same name that is there already, although another file may be in its place by now. */
static int plugin_read_sum(struct dl2_plugin *plugin, struct dl2_error *error)
{
    struct link_map *map;
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes bytes = DL2_BYTES_INIT;
    if (dlinfo(plugin->handle, RTLD_DI_LINKMAP, &map) != 0)
        return plugin_refuse(plugin, error, "%s", dlerror());
    struct plugin_code code = {.map = map, .file = &bytes};
    DL2_TRY(dl2_file_read(map->l_name, MAX_FILE_BYTES, &bytes, error));
    if (dl_iterate_phdr(plugin_differs, &code))
        return plugin_refuse(plugin, error,
                             "was replaced while the old one is in use: close the loaders that "
                             "have it, or start the program anew");
    plugin->sum = XXH3_64bits(bytes.data, bytes.size);
    return DL2_OK;
}

/* Nothing that is exported but the version may be read before the version is known. */
static int plugin_load(struct dl2_plugin *plugin, const char *name, struct dl2_error *error)
{
    plugin->handle = dlopen(plugin->file, RTLD_NOW | RTLD_LOCAL);
    if (!plugin->handle) {
        const char *why = dlerror(); /* mostly begins with the file's name */
        const size_t length = strlen(plugin->file);
        if (!strncmp(why, plugin->file, length) && !strncmp(why + length, ": ", 2))
            why += length + 2;
        return plugin_refuse(plugin, error, "%s%s", why,
                             strchr(plugin->file, '/')
                                 ? ""
                                 : "; a name without '/' is looked for where libraries lie: for a "
                                   "file of this folder, put './' in front");
    }
    const struct dl2_operation_plugin *exported = dlsym(plugin->handle, "dl2_operation_plugin");
    if (!exported)
        return plugin_refuse(plugin, error,
                             "exports no dl2_operation_plugin: see pixels/operation_plugin.h");
    if (exported->abi != DL2_OPERATION_PLUGIN_ABI)
        return plugin_refuse(plugin, error,
                             "is of plug-in ABI %" PRIu32
                             ", and this dl2 takes %d: compile it with "
                             "this dl2's pixels/operation_plugin.h",
                             exported->abi, DL2_OPERATION_PLUGIN_ABI);
    DL2_TRY(plugin_find(plugin, exported, name, error));
    return plugin_read_sum(plugin, error);
}

int dl2_plugin_open(const char *text, size_t length, struct dl2_plugin **out,
                    struct dl2_error *error)
{
    uint64_t wanted = 0;
    struct dl2_plugin *plugin = *out = dl2_calloc(1, sizeof *plugin);
    char *name = strndup(text, length);
    if (plugin)
        plugin->name = strndup(text, length);
    if (!plugin || !plugin->name || !name) {
        free(name);
        return dl2_error_memory(error, "a plug-in");
    }
    const bool summed = plugin_cut_sum(plugin->name, &wanted);
    plugin->file = strchr(plugin->name, '@') + 1;
    *strchr(name, '@') = '\0';
    int status = *plugin->file
                     ? plugin_load(plugin, name, error)
                     : dl2_error_set(error, DL2_ERR_ARGUMENT,
                                     "'%s' lacks the plug-in's file: NAME@FILE", plugin->name);
    if (status == DL2_OK && summed && plugin->sum != wanted)
        status = plugin_refuse(plugin, error,
                               "its check sum is %016" PRIx64 ", not %016" PRIx64
                               ": it is another file than the one that was named",
                               plugin->sum, wanted);
    free(name);
    return status;
}

void dl2_plugin_close(struct dl2_plugin *plugin)
{
    if (!plugin)
        return;
    if (plugin->handle)
        dlclose(plugin->handle);
    free(plugin->name);
    free(plugin);
}

/* ---- using ---- */

const char *dl2_plugin_name(const struct dl2_plugin *plugin)
{
    return plugin->name;
}

bool dl2_plugin_moves(const struct dl2_plugin *plugin)
{
    return plugin->operation->moves;
}

uint64_t dl2_plugin_sum(const struct dl2_plugin *plugin)
{
    return plugin->sum;
}

const struct dl2_operation_setting *dl2_plugin_settings(const struct dl2_plugin *plugin)
{
    return plugin->operation->settings ? plugin->operation->settings : no_settings;
}

int dl2_plugin_run(const struct dl2_plugin *plugin, const double *settings,
                   struct dl2_random *random, struct dl2_pixels *pixels, struct dl2_error *error)
{
    char reason[256] = "";
    const uint64_t high = dl2_random_u32(random);
    uint64_t seed = high << 32 | dl2_random_u32(random);
    const struct dl2_operation_image image = {
        .data = pixels->data,
        .stride = (size_t)pixels->width * pixels->channels,
        .width = pixels->width,
        .height = pixels->height,
        .channels = pixels->channels,
        .is_mask = pixels->is_mask,
        .fill = pixels->mask_fill,
    };
    if (pixels->is_mask && !plugin->operation->moves)
        return DL2_OK;
    if (plugin->operation->run(settings, &seed, &image, reason, sizeof reason) == 0)
        return DL2_OK;
    reason[sizeof reason - 1] = '\0';
    return dl2_error_set(error, DL2_ERR_FORMAT, "%s: %s", plugin->name,
                         *reason ? reason : "failed without a reason");
}
