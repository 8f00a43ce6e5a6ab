/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/machine.h"

#include "common/simd.h"
#include "common/thread.h"

#include <ctype.h>
#include <dirent.h>
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

static double seconds_of(unsigned long long ticks)
{
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Is it a disk, and neither a part of one nor made of others? Blanks and slashes are in no name. */
static bool is_disk(const char *name)
{
    static const char *const others[] = {"loop", "ram", "zram", "dm-", "md", NULL};
    char path[128];
    for (size_t i = 0; others[i]; i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return false;
    snprintf(path, sizeof path, "/sys/block/%s", name);
    return access(path, F_OK) == 0;
}

void dl2_host_usage(struct dl2_host_usage *usage)
{
    enum { SECTOR = 512 }; /* of /proc/diskstats, whatever the disk's */
    unsigned long long ticks[8], read, written;
    char line[512], name[64];
    *usage = (struct dl2_host_usage){NAN, NAN, NAN};
    FILE *file = fopen("/proc/stat", "re");
    /* user, nice, system, idle, iowait, irq, softirq, steal; guests are in the first two */
    if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1],
                       &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) == 8)
        usage->cpu = seconds_of(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]);
    if (file)
        fclose(file);
    file = fopen("/proc/diskstats", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, " %*u %*u %63s %*u %*u %llu %*u %*u %*u %llu", name, &read, &written) ==
                3 &&
            is_disk(name)) {
            usage->disk_read =
                (isnan(usage->disk_read) ? 0 : usage->disk_read) + (double)read * SECTOR;
            usage->disk_write =
                (isnan(usage->disk_write) ? 0 : usage->disk_write) + (double)written * SECTOR;
        }
    if (file)
        fclose(file);
}

/* The processor seconds of a process, 0 where it is gone or has another name. */
static double cpu_of(const char *process, const char *name)
{
    char path[300], line[1024], start[64];
    unsigned long long user, system;
    double cpu = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const int length = snprintf(start, sizeof start, "(%s) ", name);
    const char *at = fgets(line, sizeof line, file) ? strchr(line, '(') : NULL;
    if (at && strncmp(at, start, (size_t)length) == 0 &&
        sscanf(at + length, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
               &system) == 2)
        cpu = seconds_of(user + system);
    fclose(file);
    return cpu;
}

double dl2_named_cpu(const char *name)
{
    double cpu = 0;
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]))
            cpu += cpu_of(entry->d_name, name);
    if (folder)
        closedir(folder);
    return cpu;
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
