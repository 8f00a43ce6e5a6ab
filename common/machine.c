/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/machine.h"

#include "common/simd.h"
#include "common/thread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The value behind "name ... : " in a /proc file, into `out`; false if it isn't there. */
static bool proc_field(const char *path, const char *name, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) != 0)
            continue;
        char *value = strchr(line, ':');
        if (!value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(out, size, "%s", value);
        found = true;
    }
    fclose(file);
    return found;
}

json_t *dl2_machine_describe(void)
{
    json_t *machine = json_object();
    char text[256];
    if (proc_field("/proc/cpuinfo", "model name", text, sizeof text))
        json_object_set_new(machine, "cpu", json_string(text));
    json_object_set_new(machine, "cores", json_integer(dl2_cpu_count()));
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        json_object_set_new(machine, "memory_bytes", json_integer((json_int_t)pages * page));
    struct utsname system;
    if (uname(&system) == 0) {
        snprintf(text, sizeof text, "%.60s %.100s %.60s", system.sysname, system.release,
                 system.machine);
        json_object_set_new(machine, "system", json_string(text));
    }
    json_object_set_new(machine, "simd", json_string(dl2_simd_name()));
    return machine;
}

void dl2_process_usage(struct dl2_process_usage *usage)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%*s %ld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    usage->rss = (long long)pages * sysconf(_SC_PAGESIZE);
    char text[64];
    usage->disk_read =
        proc_field("/proc/self/io", "read_bytes", text, sizeof text) ? atoll(text) : 0;
    usage->disk_write =
        proc_field("/proc/self/io", "write_bytes", text, sizeof text) ? atoll(text) : 0;
}

void dl2_network_usage(struct dl2_network_usage *usage)
{
    *usage = (struct dl2_network_usage){NAN, NAN};
    FILE *file = fopen("/proc/self/net/dev", "re");
    if (!file)
        return;
    *usage = (struct dl2_network_usage){0, 0};
    char line[512], name[64];
    unsigned long long received, sent;
    while (fgets(line, sizeof line, file)) /* the two of the heading have no such numbers */
        if (sscanf(line, " %63[^: ]: %llu %*u %*u %*u %*u %*u %*u %*u %llu", name, &received,
                   &sent) == 3 &&
            strcmp(name, "lo") != 0) {
            usage->received += (double)received;
            usage->sent += (double)sent;
        }
    fclose(file);
}

unsigned long long dl2_peak_rss(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (unsigned long long)usage.ru_maxrss * 1024;
}

unsigned long long dl2_memory_available(void)
{
    char text[64];
    return proc_field("/proc/meminfo", "MemAvailable", text, sizeof text)
               ? strtoull(text, NULL, 10) * 1024
               : 0;
}
