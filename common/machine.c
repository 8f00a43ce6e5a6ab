#include "common/machine.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/simd.h"
#include "common/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
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

#define MAX_SAMPLES 1000

struct usage {
    double seconds, cpu_percent;
    long long rss, disk_read, disk_write;
};

struct dl2_monitor {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stop_asked;
    bool stop;
    double period, started;
    struct usage samples[MAX_SAMPLES];
    size_t count;
};

/* RSS now and bytes moved from and to disk; 0 where /proc does not tell. */
static void read_usage(struct usage *usage)
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

static void *monitor_main(void *argument)
{
    struct dl2_monitor *monitor = argument;
    struct usage base;
    read_usage(&base);
    double last_wall = monitor->started, last_cpu = dl2_clock_process_cpu();
    pthread_mutex_lock(&monitor->mutex);
    bool stop;
    do {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        /* The first one soon, so that a short run has one, too. */
        double wait = monitor->count ? monitor->period : monitor->period / 10;
        double wake = (double)until.tv_sec + (double)until.tv_nsec * 1e-9 + wait;
        until.tv_sec = (time_t)wake;
        until.tv_nsec = (long)((wake - (double)until.tv_sec) * 1e9);
        while (!monitor->stop &&
               pthread_cond_timedwait(&monitor->stop_asked, &monitor->mutex, &until) == 0)
            ;
        stop = monitor->stop;
        struct usage now;
        read_usage(&now);
        double wall = dl2_clock_wall(), cpu = dl2_clock_process_cpu();
        now.seconds = wall - monitor->started;
        now.cpu_percent = wall > last_wall ? 100 * (cpu - last_cpu) / (wall - last_wall) : 0;
        now.disk_read -= base.disk_read;
        now.disk_write -= base.disk_write;
        last_wall = wall;
        last_cpu = cpu;
        if (monitor->count == MAX_SAMPLES) {
            for (size_t i = 0; i < MAX_SAMPLES / 2; i++) {
                const struct usage *pair = &monitor->samples[2 * i];
                double mean = (pair[0].cpu_percent + pair[1].cpu_percent) / 2;
                monitor->samples[i] = pair[1];
                monitor->samples[i].cpu_percent = mean;
            }
            monitor->count = MAX_SAMPLES / 2;
            monitor->period *= 2;
        }
        monitor->samples[monitor->count++] = now;
    } while (!stop);
    pthread_mutex_unlock(&monitor->mutex);
    return NULL;
}

int dl2_monitor_start(double period_seconds, struct dl2_monitor **out, struct dl2_error *error)
{
    struct dl2_monitor *monitor = dl2_calloc(1, sizeof *monitor);
    if (!monitor)
        return dl2_error_set(error, DL2_ERR_MEMORY, "out of memory for the resource monitor");
    monitor->period = period_seconds;
    monitor->started = dl2_clock_wall();
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monitor->stop_asked, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&monitor->mutex, NULL);
    if (pthread_create(&monitor->thread, NULL, monitor_main, monitor) != 0) {
        pthread_cond_destroy(&monitor->stop_asked);
        pthread_mutex_destroy(&monitor->mutex);
        free(monitor);
        return dl2_error_set(error, DL2_ERR_SYSTEM, "the resource monitor's thread can't start");
    }
    *out = monitor;
    return DL2_OK;
}

json_t *dl2_monitor_samples(struct dl2_monitor *monitor)
{
    json_t *samples = json_array();
    pthread_mutex_lock(&monitor->mutex);
    for (size_t i = 0; i < monitor->count; i++) {
        const struct usage *usage = &monitor->samples[i];
        json_array_append_new(samples,
                              json_pack("{s:f, s:f, s:I, s:I, s:I}", "seconds", usage->seconds,
                                        "cpu_percent", usage->cpu_percent, "rss_bytes",
                                        (json_int_t)usage->rss, "disk_read_bytes",
                                        (json_int_t)usage->disk_read, "disk_write_bytes",
                                        (json_int_t)usage->disk_write));
    }
    pthread_mutex_unlock(&monitor->mutex);
    return samples;
}

json_t *dl2_monitor_stop(struct dl2_monitor *monitor)
{
    pthread_mutex_lock(&monitor->mutex);
    monitor->stop = true;
    pthread_cond_signal(&monitor->stop_asked);
    pthread_mutex_unlock(&monitor->mutex);
    pthread_join(monitor->thread, NULL);
    json_t *samples = dl2_monitor_samples(monitor);
    pthread_cond_destroy(&monitor->stop_asked);
    pthread_mutex_destroy(&monitor->mutex);
    free(monitor);
    return samples;
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
