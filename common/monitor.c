/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/monitor.h"

#include "common/clock.h"
#include "common/machine.h"
#include "common/memory.h"
#include "common/nvml.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum column {
    SECONDS,
    IMAGES,
    DATA_WAIT,
    CPU,
    RSS,
    DISK_READ,
    DISK_WRITE,
    RECEIVED,
    SENT,
    MACHINE_CPU,
    MACHINE_READ,
    MACHINE_WRITE,
    SERVER_CPU,
    CARD,
    CARD_MEMORY,
    CARD_BYTES,
    CARD_WATTS,
    CARD_JOULES,
    CARD_SM_MHZ,
    CARD_MEMORY_MHZ,
    COLUMNS,
};

static const struct {
    const char *name;
    bool mean;       /* over the time since the sample before; else it stands at the sample's */
    unsigned digits; /* after the point; 0 makes integers */
} columns[COLUMNS] = {
    [SECONDS] = {"seconds", false, 3},
    [IMAGES] = {"images", false, 0},
    [DATA_WAIT] = {"data_wait_seconds", false, 3},
    [CPU] = {"cpu_percent", true, 0},
    [RSS] = {"rss_bytes", false, 0},
    [DISK_READ] = {"disk_read_bytes", false, 0},
    [DISK_WRITE] = {"disk_write_bytes", false, 0},
    [RECEIVED] = {"network_received_bytes", false, 0},
    [SENT] = {"network_sent_bytes", false, 0},
    [MACHINE_CPU] = {"machine_cpu_percent", true, 0},
    [MACHINE_READ] = {"machine_disk_read_bytes", false, 0},
    [MACHINE_WRITE] = {"machine_disk_write_bytes", false, 0},
    [SERVER_CPU] = {"server_cpu_percent", true, 0},
    [CARD] = {"card_percent", true, 0},
    [CARD_MEMORY] = {"card_memory_percent", true, 0},
    [CARD_BYTES] = {"card_memory_bytes", false, 0},
    [CARD_WATTS] = {"card_watts", true, 0},
    [CARD_JOULES] = {"card_joules", false, 1},
    [CARD_SM_MHZ] = {"card_sm_mhz", true, 0},
    [CARD_MEMORY_MHZ] = {"card_memory_mhz", true, 0},
};

struct sample {
    double values[COLUMNS]; /* NAN: unknown */
};

struct dl2_monitor {
    pthread_t thread;
    pthread_mutex_t turn;  /* of who takes a sample: readings are stored in their order */
    pthread_mutex_t mutex; /* of all that follows but `card`; taken after `turn` */
    pthread_cond_t stop_asked;
    bool stop;
    double period, started;
    uint64_t images;
    double waited;
    struct sample samples[DL2_MONITOR_SAMPLES];
    size_t count;
    const char *server; /* NULL: none is watched */
    struct dl2_nvml *card;
    bool counts_energy; /* the card does; else its power is summed up */
    double joules_base; /* its counter at the start */
    double joules;      /* up to the last sample */
    double watts, watts_at;
    /* At the sample before. */
    double last_wall, last_cpu;
    double last_host_cpu, last_server_cpu;
    struct dl2_process_usage base;
    struct dl2_host_usage host_base;
    struct dl2_network_usage network_base;
};

/* The sum of power up to now. The last reading holds until the next. */
static double summed_joules(const struct dl2_monitor *monitor, double now)
{
    return monitor->joules + monitor->watts * (now - monitor->watts_at);
}

static void set_card(struct dl2_monitor *monitor, const struct dl2_nvml_reading *reading,
                     double now, double values[COLUMNS])
{
    values[CARD] = reading->percent;
    values[CARD_MEMORY] = reading->memory_percent;
    values[CARD_BYTES] = reading->memory_bytes;
    values[CARD_WATTS] = reading->watts;
    values[CARD_SM_MHZ] = reading->sm_mhz;
    values[CARD_MEMORY_MHZ] = reading->memory_mhz;
    if (monitor->counts_energy) {
        if (isnan(reading->joules))
            return;
        monitor->joules = fmax(monitor->joules, reading->joules - monitor->joules_base);
        values[CARD_JOULES] = monitor->joules;
        return;
    }
    values[CARD_JOULES] = monitor->joules = summed_joules(monitor, now);
    monitor->watts_at = now;
    if (isfinite(reading->watts))
        monitor->watts = reading->watts;
}

/* Makes one of every two samples. */
static void thin(struct dl2_monitor *monitor)
{
    for (size_t i = 0; i < DL2_MONITOR_SAMPLES / 2; i++) {
        const struct sample a = monitor->samples[2 * i], b = monitor->samples[2 * i + 1];
        struct sample *to = &monitor->samples[i];
        *to = b;
        for (int k = 0; k < COLUMNS; k++)
            if (isnan(b.values[k]))
                to->values[k] = a.values[k];
            else if (columns[k].mean && !isnan(a.values[k]))
                to->values[k] = (a.values[k] + b.values[k]) / 2;
    }
    monitor->count = DL2_MONITOR_SAMPLES / 2;
    monitor->period *= 2;
}

void dl2_monitor_sample(struct dl2_monitor *monitor)
{
    struct sample sample;
    double *values = sample.values;
    struct dl2_process_usage usage;
    struct dl2_host_usage host;
    struct dl2_network_usage network;
    struct dl2_nvml_reading reading;
    for (int i = 0; i < COLUMNS; i++)
        values[i] = NAN;
    pthread_mutex_lock(&monitor->turn);
    dl2_process_usage(&usage);
    dl2_host_usage(&host);
    dl2_network_usage(&network);
    const double server = monitor->server ? dl2_named_cpu(monitor->server) : NAN;
    if (monitor->card)
        dl2_nvml_read(monitor->card, &reading);
    pthread_mutex_lock(&monitor->mutex);
    const double wall = dl2_clock_wall(), cpu = dl2_clock_process_cpu();
    values[SECONDS] = wall - monitor->started;
    values[IMAGES] = (double)monitor->images;
    values[DATA_WAIT] = monitor->waited;
    if (wall > monitor->last_wall) {
        const double whole = (wall - monitor->last_wall) / 100;
        values[CPU] = (cpu - monitor->last_cpu) / whole;
        values[MACHINE_CPU] = (host.cpu - monitor->last_host_cpu) / whole;
        values[SERVER_CPU] = (server - monitor->last_server_cpu) / whole;
        if (values[MACHINE_CPU] < 0) /* counters of some kernels step back */
            values[MACHINE_CPU] = 0;
        if (values[SERVER_CPU] < 0) /* processes of it have ended */
            values[SERVER_CPU] = 0;
    }
    values[RSS] = (double)usage.rss;
    values[DISK_READ] = (double)(usage.disk_read - monitor->base.disk_read);
    values[DISK_WRITE] = (double)(usage.disk_write - monitor->base.disk_write);
    values[RECEIVED] = network.received - monitor->network_base.received;
    values[SENT] = network.sent - monitor->network_base.sent;
    values[MACHINE_READ] = host.disk_read - monitor->host_base.disk_read;
    values[MACHINE_WRITE] = host.disk_write - monitor->host_base.disk_write;
    monitor->last_wall = wall;
    monitor->last_cpu = cpu;
    monitor->last_host_cpu = host.cpu;
    monitor->last_server_cpu = server;
    if (monitor->card)
        set_card(monitor, &reading, wall, values);
    if (monitor->count == DL2_MONITOR_SAMPLES)
        thin(monitor);
    monitor->samples[monitor->count++] = sample;
    pthread_mutex_unlock(&monitor->mutex);
    pthread_mutex_unlock(&monitor->turn);
}

static void *monitor_main(void *argument)
{
    struct dl2_monitor *monitor = argument;
    bool stop;
    do {
        pthread_mutex_lock(&monitor->mutex);
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
        pthread_mutex_unlock(&monitor->mutex);
        dl2_monitor_sample(monitor);
    } while (!stop);
    return NULL;
}

static void open_card(struct dl2_monitor *monitor, const char *card)
{
    const char *other = getenv("DL2_CARD");
    card = other ? other : card;
    monitor->card = card ? dl2_nvml_open(card) : NULL;
    if (!monitor->card)
        return;
    struct dl2_nvml_reading reading;
    dl2_nvml_read(monitor->card, &reading);
    monitor->counts_energy = isfinite(reading.joules);
    monitor->joules_base = reading.joules;
    monitor->watts = reading.watts;
    monitor->watts_at = monitor->started;
}

static void free_monitor(struct dl2_monitor *monitor)
{
    dl2_nvml_close(monitor->card);
    pthread_cond_destroy(&monitor->stop_asked);
    pthread_mutex_destroy(&monitor->mutex);
    pthread_mutex_destroy(&monitor->turn);
    free(monitor);
}

int dl2_monitor_start(double period_seconds, const char *card, const char *server,
                      struct dl2_monitor **out, struct dl2_error *error)
{
    struct dl2_monitor *monitor;
    DL2_TRY(DL2_NEW(&monitor, 1, "the resource monitor", error));
    monitor->period = period_seconds;
    monitor->started = monitor->last_wall = dl2_clock_wall();
    monitor->last_cpu = dl2_clock_process_cpu();
    dl2_process_usage(&monitor->base);
    dl2_network_usage(&monitor->network_base);
    dl2_host_usage(&monitor->host_base);
    monitor->last_host_cpu = monitor->host_base.cpu;
    monitor->server = server;
    monitor->last_server_cpu = server ? dl2_named_cpu(server) : NAN;
    open_card(monitor, card);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monitor->stop_asked, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&monitor->mutex, NULL);
    pthread_mutex_init(&monitor->turn, NULL);
    if (pthread_create(&monitor->thread, NULL, monitor_main, monitor) != 0) {
        free_monitor(monitor);
        return dl2_error_set(error, DL2_ERR_SYSTEM, "the resource monitor's thread can't start");
    }
    *out = monitor;
    return DL2_OK;
}

void dl2_monitor_stop(struct dl2_monitor *monitor)
{
    if (!monitor)
        return;
    pthread_mutex_lock(&monitor->mutex);
    monitor->stop = true;
    pthread_cond_signal(&monitor->stop_asked);
    pthread_mutex_unlock(&monitor->mutex);
    pthread_join(monitor->thread, NULL);
    free_monitor(monitor);
}

void dl2_monitor_count(struct dl2_monitor *monitor, uint64_t images, double waited)
{
    pthread_mutex_lock(&monitor->mutex);
    monitor->images += images;
    monitor->waited += waited;
    pthread_mutex_unlock(&monitor->mutex);
}

static json_t *number(double value, unsigned digits)
{
    if (!isfinite(value))
        return json_null();
    if (digits == 0)
        return json_integer((json_int_t)llround(value));
    const double scale = pow(10, digits);
    return json_real(round(value * scale) / scale);
}

json_t *dl2_monitor_timeline(struct dl2_monitor *monitor)
{
    json_t *timeline = json_object();
    pthread_mutex_lock(&monitor->mutex);
    json_object_set_new(timeline, "period_seconds", json_real(monitor->period));
    for (int k = 0; k < COLUMNS; k++) {
        json_t *column = json_array();
        bool known = false;
        for (size_t i = 0; i < monitor->count; i++) {
            const double value = monitor->samples[i].values[k];
            known |= isfinite(value);
            json_array_append_new(column, number(value, columns[k].digits));
        }
        if (known || k < SERVER_CPU)
            json_object_set(timeline, columns[k].name, column);
        json_decref(column);
    }
    pthread_mutex_unlock(&monitor->mutex);
    return timeline;
}

json_t *dl2_monitor_card(const struct dl2_monitor *monitor)
{
    if (!monitor->card)
        return NULL;
    json_t *card = dl2_nvml_describe(monitor->card);
    if (monitor->counts_energy || isfinite(monitor->watts))
        json_object_set_new(card, "energy",
                            json_string(monitor->counts_energy ? "counter" : "power"));
    return card;
}

double dl2_monitor_joules(struct dl2_monitor *monitor)
{
    if (!monitor || !monitor->card)
        return NAN;
    struct dl2_nvml_reading reading;
    if (monitor->counts_energy) {
        dl2_nvml_read(monitor->card, &reading);
        return reading.joules - monitor->joules_base;
    }
    pthread_mutex_lock(&monitor->mutex);
    const double joules = summed_joules(monitor, dl2_clock_wall());
    pthread_mutex_unlock(&monitor->mutex);
    return joules;
}
