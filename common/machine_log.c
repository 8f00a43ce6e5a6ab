/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/machine_log.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/json.h"
#include "common/machine.h"
#include "common/monitor.h"
#include "common/scope.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* This process's. The thread that saves and the main thread, which ends it, change nothing else. */
static struct {
    pid_t process; /* 0: there is none; another than this process: its parent's */
    char *path;
    json_t *head; /* what does not change */
    struct dl2_monitor *monitor;
    pthread_t saver;
    pthread_mutex_t mutex; /* of `stop` */
    pthread_cond_t stop_asked;
    bool stop;
} log_file;

static int save(bool complete, struct dl2_error *error)
{
    json_auto_t *json = json_copy(log_file.head);
    json_auto_t *timeline = dl2_monitor_timeline(log_file.monitor);
    json_object_del(timeline, "images"); /* which only dl2-train counts, in its own report */
    json_object_del(timeline, "data_wait_seconds");
    json_object_set_new(json, "complete", json_boolean(complete));
    json_object_set(json, "timeline", timeline);
    return dl2_json_save(log_file.path, json, error);
}

/* Saves at growing intervals, so that a long run writes little. */
static void *save_until_stopped(void *unused)
{
    const double began = dl2_clock_wall();
    (void)unused;
    pthread_mutex_lock(&log_file.mutex);
    while (!log_file.stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += (time_t)fmin(1 + (dl2_clock_wall() - began) / 4, 60);
        while (!log_file.stop &&
               pthread_cond_timedwait(&log_file.stop_asked, &log_file.mutex, &until) == 0)
            ;
        if (!log_file.stop)
            save(false, NULL); /* the end's failure is told */
    }
    pthread_mutex_unlock(&log_file.mutex);
    return NULL;
}

static void end(void)
{
    struct dl2_error error = DL2_ERROR_INIT;
    if (log_file.process != getpid())
        return;
    pthread_mutex_lock(&log_file.mutex);
    log_file.stop = true;
    pthread_cond_signal(&log_file.stop_asked);
    pthread_mutex_unlock(&log_file.mutex);
    pthread_join(log_file.saver, NULL);
    dl2_monitor_sample(log_file.monitor);
    if (save(true, &error) < 0)
        fprintf(stderr, "the timeline is incomplete: %s\n", error.message);
    dl2_monitor_stop(log_file.monitor);
    json_decref(log_file.head);
    free(log_file.path);
    log_file.process = 0;
}

static json_t *describe(const char *program, const char *command, const char *host)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double seconds = (double)now.tv_sec + (double)(now.tv_nsec / 1000000) / 1000;
    return json_pack("{s:s, s:s, s:o, s:o, s:f, s:o}", "schema", "dl2-timeline/1", "program",
                     program, "command", command ? dl2_json_text(command) : json_null(), "host",
                     dl2_json_text(host), "started", seconds, "machine", dl2_machine_describe());
}

/* Starts the threads, which leave signals to the others. */
static int start(struct dl2_error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = dl2_monitor_start(1, NULL, "postgres", &log_file.monitor, error);
    if (status == DL2_OK)
        status = save(false, error);
    if (status == DL2_OK && pthread_create(&log_file.saver, NULL, save_until_stopped, NULL) != 0)
        status = dl2_error_set(error, DL2_ERR_SYSTEM, "the timeline's thread can't start");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

int dl2_machine_log_begin(const char *folder, const char *program, const char *command,
                          struct dl2_error *error)
{
    static bool ends_at_exit;
    char host[64] = "";
    end();
    gethostname(host, sizeof host - 1);
    log_file.stop = false;
    pthread_mutex_init(&log_file.mutex, NULL);
    pthread_cond_init(&log_file.stop_asked, NULL);
    log_file.head = describe(program, command, host);
    if (!log_file.head)
        return dl2_error_memory(error, "the timeline");
    DL2_TRY(dl2_format(&log_file.path, error, "%s/%s-%s-%d.json", folder, program, host,
                       (int)getpid()));
    DL2_TRY(dl2_make_folders(folder, error));
    DL2_TRY(start(error));
    if (!ends_at_exit)
        atexit(end);
    ends_at_exit = true;
    log_file.process = getpid();
    return DL2_OK;
}
