/* SPDX-License-Identifier: BSD-2-Clause */
/* dl2-study: plans a study, has its steps done, and shows the answer. */
#include "common/file.h"
#include "common/json.h"
#include "common/nearest.h"
#include "study/child.h"
#include "study/decide.h"
#include "study/engine.h"
#include "study/goals.h"
#include "study/paths.h"
#include "study/progress.h"
#include "study/trainer.h"
#include "study/work.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum command { RUN, PLAN, STATUS, DO };
enum { PLANS = 1 << RUN | 1 << PLAN };
static const struct dl2_command commands[] = {
    [RUN] = {"run", 1 << RUN, "[GOAL...]", 0, 0, "Do the steps of the goals, and show the answer",
             NULL},
    [PLAN] = {"plan", 1 << PLAN, "[GOAL...]", 0, 0, "Print the steps that are to be done", NULL},
    [STATUS] = {"status", 1 << STATUS, "FOLDER", 1, 1, "Say how far the study in FOLDER is", NULL},
    [DO] = {"do", 1 << DO, "FOLDER STEP", 2, 2,
            "Do a step of FOLDER/study-plan.json: the jobs of Slurm call it", NULL},
    {0},
};

static struct dl2_study_settings study;
static const char *self = "dl2-study";
static bool quiet;
static unsigned at_once;

/* The folder of the scripts that come with this program. */
static void find_scripts(void)
{
    const char *beside = dl2_text("%.*s", (int)(dl2_path_base(self) - self), self);
    const char *folders[] = {
        study.options.checkout ? dl2_text("%s/study", study.options.checkout) : "",
        dl2_text("%s../share/dl2", beside), dl2_text("%s../study", beside), PKGDATADIR};
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !study.scripts; i++)
        if (dl2_is_file(dl2_text("%s/packages.sh", folders[i])))
            study.scripts = folders[i];
}

/* How many trainings run at once: TRAINERS, but no more than `make -jN` allows. Behind a word "--"
 * are variables. */
static unsigned find_at_once(void)
{
    const char *flags = getenv("MAKEFLAGS");
    const struct dl2_words words = dl2_words_split(flags ? flags : "");
    unsigned jobs = 0;
    for (size_t i = 0; i < words.count && strcmp(words.at[i], "--") != 0; i++)
        if (strncmp(words.at[i], "-j", 2) == 0)
            jobs = (unsigned)strtoul(words.at[i] + 2, NULL, 10);
    if (!jobs || jobs >= study.trainers || strcmp(study.options.engine, "local") != 0)
        return study.trainers;
    if (!quiet)
        fprintf(stderr, "dl2-study: make -j%u lets %u of %u trainings run at once\n", jobs, jobs,
                study.trainers);
    return jobs;
}

/* ---- One run at a time */

/* Two runs at once would take each other's unfinished files for their own. The lock is the run's
 * and that of whatever it has started, so a run that was killed blocks nobody once that has ended.
 */
static void begin_at_work(void)
{
    const char *path = dl2_text("%s/.make/at-work", study.out);
    dl2_work_make_folder_of(path);
    const int fd = open(path, O_RDWR | O_CREAT, 0666);
    if (fd < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be written: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        const char *process = dl2_text_of_file(path);
        dl2_study_fail(DL2_EXIT_USAGE,
                       "another run, process %.*s, is at work in %s: wait until it ends, or name "
                       "another folder with OUT=",
                       process ? (int)strcspn(process, " \n") : 0, process ? process : "",
                       study.options.out);
    }
    const char *own = dl2_text("%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, own, strlen(own), 0) < 0)
        dl2_study_fail(DL2_EXIT_FAILED, "%s: can't be written: %s", path, strerror(errno));
}

/* ---- Plans */

static void begin_plan(struct dl2_study_plan *plan, struct dl2_words goals)
{
    dl2_plan_begin(plan, &study, goals);
    plan->command = dl2_study_command(&study, goals);
    plan->quiet = quiet;
}

static void plan_goals(struct dl2_study_plan *plan, struct dl2_words asked,
                       const struct dl2_words *runs, bool remakes)
{
    const struct dl2_words goals = dl2_goals_asked(asked);
    begin_plan(plan, asked);
    plan->remakes = remakes;
    if (runs) {
        plan->runs = *runs;
        plan->interim = dl2_decide_interim(&study);
    }
    for (size_t i = 0; i < goals.count; i++) {
        const struct dl2_goal *goal = dl2_goal_find(goals.at[i]);
        const struct dl2_words made = goal->plan(plan);
        if (goal->question)
            dl2_plan_report(plan, made);
        else
            dl2_words_add_all(&plan->targets, made);
    }
    dl2_plan_end(plan);
}

/* Makes a plan for the goals, of those trainings that DECIDE has named so far; NULL: of all. Images
 * that were removed are made again for steps that are to be done, and more are to be done then. */
static void make_plan(struct dl2_study_plan *plan, struct dl2_words asked,
                      const struct dl2_words *runs)
{
    plan_goals(plan, asked, runs, false);
    if (dl2_plan_misses(plan))
        plan_goals(plan, asked, runs, true);
}

/* Has what the plan needs done. */
static int run_plan(const struct dl2_study_plan *plan)
{
    dl2_plan_save(plan);
    return !dl2_plan_needed(plan)                       ? DL2_EXIT_OK
           : strcmp(study.options.engine, "slurm") == 0 ? dl2_slurm_run(plan, self)
                                                        : dl2_local_run(plan, at_once);
}

/* One round of DECIDE. */
static int run_round(const struct dl2_words *runs, bool forecasts)
{
    struct dl2_words goals = {0};
    struct dl2_study_plan plan;
    dl2_words_add(&goals, "train");
    if (forecasts) {
        begin_plan(&plan, goals);
        plan.runs = *runs;
        dl2_words_add_all(&plan.targets, dl2_plan_forecast(&plan));
        dl2_plan_end(&plan);
    } else {
        make_plan(&plan, goals, runs);
    }
    const int status = run_plan(&plan);
    fflush(stdout);
    return status;
}

/* ---- Goals that make nothing */

/* Others' files stay. */
static int clean(void)
{
    if (!dl2_is_file(dl2_text("%s/.make/owner", study.out))) {
        if (access(study.out, F_OK) == 0)
            dl2_study_fail(DL2_EXIT_USAGE, "%s is not a study: left alone", study.out);
        return DL2_EXIT_OK;
    }
    struct dl2_words names = {0};
    const char *owner = dl2_text_of_file(dl2_text("%s/.make/owner", study.out));
    dl2_words_more(&names, "study-plan.json", "jobs", "timelines", NULL);
    for (size_t g = 0; dl2_goal_at(g); g++)
        if (dl2_goal_at(g)->folders)
            dl2_words_add_all(&names, dl2_words_split(dl2_goal_at(g)->folders));
    if (owner && (strncmp(owner, "demo", 4) == 0 || strcmp(owner, "imagenette\n") == 0))
        dl2_words_more(&names, "data", "data.tmp", "data.parts", "imagenette2-160.tgz",
                       "imagenette2-160.tgz.part", NULL);
    dl2_words_add(&names, ".make"); /* the last, since it says whose this is */
    for (size_t i = 0; i < names.count; i++) {
        const char *path = dl2_text("%s/%s", study.out, names.at[i]);
        if (dl2_is_folder(path))
            dl2_remove_tree(path);
        else
            unlink(path);
    }
    if (rmdir(study.out) < 0 && errno != ENOENT)
        printf("%s holds other files, too: left there\n", study.out);
    return DL2_EXIT_OK;
}

/* Gives up the plan that a report wrote: the next one is the first look of another. */
static int give_up_plan(void)
{
    const struct timespec old[2] = {{0, 0}, {0, 0}};
    const int status =
        dl2_child_run(dl2_study_words(&study, "dl2-report", "new-plan", study.out, NULL), -1, -1);
    utimensat(AT_FDCWD, dl2_text("%s/report/report.html", study.out), old, 0);
    return status;
}

/* ---- */

static int show_answers(const struct dl2_study_plan *plan)
{
    for (size_t i = 0; i < plan->shown.count; i++)
        dl2_work_show(plan->shown.at[i], STDOUT_FILENO);
    if (!plan->has_report)
        return DL2_EXIT_OK;
    if (dl2_child_run(dl2_study_words(&study, "dl2-report", "answer", study.out, NULL), -1, -1))
        return DL2_EXIT_FAILED;
    printf("The report: %s\n", dl2_path_absolute(dl2_text("%s/report/report.html", study.out)));
    return DL2_EXIT_OK;
}

/* Is there a goal whose trainings DECIDE names? */
static bool can_decide(struct dl2_words goals)
{
    static const char *const decided[] = {"train", "matrix", "report", "study", "study-tables"};
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
        if (dl2_words_have(goals, decided[i]))
            return true;
    return false;
}

/* Checks the goals' own variables, which have an effect on these goals alone. */
static void check_goals(struct dl2_words asked)
{
    if (study.trainer && study.trainer->evaluates && !dl2_words_have(asked, "inference"))
        dl2_setting_refuse(study.trainer->variable, study.trainer->text,
                           "it has an effect on inference only, which is not asked for");
    for (size_t g = 0; dl2_goal_at(g); g++) {
        const struct dl2_goal *goal = dl2_goal_at(g);
        const bool is_asked = dl2_words_have(asked, goal->name);
        /* DECIDE makes the forecast, too. */
        const bool has_effect =
            is_asked || (strcmp(goal->name, "forecast") == 0 && *study.options.forecast);
        if (is_asked && study.trainer && goal->by_dl2_train)
            dl2_setting_refuse(study.trainer->variable, study.trainer->text,
                               "it cannot work with %s, %s", goal->name, goal->by_dl2_train);
        if (goal->check)
            goal->check(&study, is_asked);
        for (size_t v = 0; !has_effect && goal->variables && goal->variables[v].name; v++) {
            const char *value = study.options.of_goals[g].at[v];
            if (value && *value)
                dl2_setting_refuse(dl2_setting_variable(goal->variables[v].name), value,
                                   "it has an effect on %s only, which is not asked for",
                                   goal->name);
        }
    }
}

_Noreturn static void refuse_goal(const char *name)
{
    struct dl2_nearest nearest = {.given = name};
    for (size_t g = 0; dl2_goal_at(g); g++)
        dl2_nearest_try(&nearest, dl2_goal_at(g)->name, NULL);
    dl2_study_fail(DL2_EXIT_USAGE, "there is no goal %s; %s%s", name,
                   nearest.name ? "did you mean " : "--help lists the goals",
                   nearest.name ? dl2_text("%s?", nearest.name) : "");
}

/* With ENCODE_LIMIT, the variants come first: what is not whole then is left out of all else. */
static void encode_first(struct dl2_words asked)
{
    struct dl2_study_plan plan;
    struct dl2_words goals = {0};
    bool encodes = false;
    make_plan(&plan, asked, NULL);
    for (size_t i = 0; i < plan.count; i++)
        encodes |= plan.steps[i]->needed && strcmp(plan.steps[i]->name, "variants-external") == 0;
    if (!encodes)
        return;
    dl2_words_add(&goals, "variants");
    make_plan(&plan, goals, NULL);
    run_plan(&plan); /* a step that fails does so again */
    fflush(stdout);
    dl2_settings_leave_out_late(&study);
}

static int run_goals(struct dl2_words asked, bool only_plans)
{
    struct dl2_words runs = {0};
    for (size_t i = 0; i < asked.count; i++)
        if (!dl2_goal_find(asked.at[i]))
            refuse_goal(asked.at[i]);
    for (size_t i = 0; i < asked.count; i++)
        if (dl2_goal_find(asked.at[i])->defaults)
            dl2_goal_find(asked.at[i])->defaults(&study.options);
    /* The demo's, and the seeds that go with it, are of the goals that decide. */
    const bool without = !study.options.decide && !can_decide(asked);
    if (without)
        study.options.decide = "";
    find_scripts();
    dl2_study_locate(&study, dl2_study_options());
    if (without)
        study.given.decide = NULL;
    dl2_study_resolve(&study);
    dl2_settings_name_variants(&study);
    check_goals(dl2_goals_asked(asked));
    dl2_settings_check(&study);
    begin_at_work();
    dl2_progress_reset(study.out);
    const bool decides = *study.options.decide && can_decide(asked);
    struct dl2_study_plan plan;
    if (only_plans) {
        if (decides)
            dl2_decide_first(&study, &runs);
        make_plan(&plan, asked, decides ? &runs : NULL);
        dl2_plan_save(&plan);
        dl2_plan_print(&plan);
        if (decides)
            printf("DECIDE: the plan is of the first round; later ones depend on its verdicts\n");
        return DL2_EXIT_OK;
    }
    at_once = find_at_once();
    if (study.options.encode_limit)
        encode_first(asked);
    int status = decides ? dl2_decide(&study, run_round, &runs) : DL2_EXIT_OK;
    fflush(stdout);
    if (status == DL2_EXIT_OK) {
        make_plan(&plan, asked, decides ? &runs : NULL);
        for (size_t i = 0; i < asked.count; i++)
            if (dl2_goal_find(asked.at[i])->begin)
                dl2_goal_find(asked.at[i])->begin(&plan);
        status = run_plan(&plan);
        fflush(stdout);
        for (size_t i = 0; i < asked.count; i++)
            if (dl2_goal_find(asked.at[i])->finish)
                status = dl2_goal_find(asked.at[i])->finish(&plan, status);
    }
    return status == DL2_EXIT_OK ? show_answers(&plan) : status;
}

static int show_status(const char *out)
{
    struct dl2_study_plan plan;
    dl2_plan_read(&plan, out);
    const int fd = open(dl2_text("%s/.make/at-work", out), O_RDWR | O_CLOEXEC);
    const bool at_work = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
    printf("%s: %s%s\n", out, dl2_progress_text(&plan), at_work ? "" : "; no run is at work");
    return DL2_EXIT_OK;
}

/* A name, and what is said of it, in lines of a terminal. */
static const char *describe_one(const char *name, const char *text)
{
    enum { NAME_WIDTH = 15, TEXT_WIDTH = 60 };
    const struct dl2_words words = dl2_words_split(text);
    const char *lines = dl2_text("  %-*s", NAME_WIDTH, name);
    size_t width = 0;
    for (size_t i = 0; i < words.count; i++) {
        const size_t length = strlen(words.at[i]);
        const bool fits = width + 1 + length <= TEXT_WIDTH;
        lines = fits ? dl2_text("%s %s", lines, words.at[i])
                     : dl2_text("%s\n%*s %s", lines, NAME_WIDTH + 2, "", words.at[i]);
        width = fits ? width + 1 + length : length;
    }
    return dl2_text("%s\n", lines);
}

/* The goals, for --help. */
static const char *describe_goals(void)
{
    const char *text = "Goals, each with what it needs:\n";
    for (int further = 0; further < 2; further++) {
        if (further)
            text = dl2_text("%s\nFurther questions, with the hypotheses of (DL)2 (ICDE 2023); none "
                            "is a part of `study`, and each ends with a "
                            "report of all that is there:\n",
                            text);
        for (size_t g = 0; dl2_goal_at(g); g++) {
            const struct dl2_goal *goal = dl2_goal_at(g);
            if ((goal->question != NULL) == further)
                text = dl2_text(
                    "%s%s", text,
                    describe_one(goal->name,
                                 dl2_text("%s%s%s%s%s", goal->question ? goal->question : "",
                                          goal->hypothesis ? " (" : "",
                                          goal->hypothesis ? goal->hypothesis : "",
                                          goal->hypothesis ? "): "
                                          : goal->question ? " "
                                                           : "",
                                          goal->summary)));
        }
    }
    return dl2_text(
        "%s\nAnd:\n"
        "%s%s",
        text,
        describe_one("new-plan",
                     "gives up the plan that a report wrote (OUT/report/plan.json): the "
                     "next one is the first look of another, and says that a plan was "
                     "given up"),
        describe_one("clean-study", "deletes what a study made in OUT, also its plan"));
}

static const char details[] =
    "Files are what counts: what is there and up to date isn't made again, whatever was "
    "interrupted is gone on with, and a changed setting redoes what depends on it. Images that "
    "are deleted from DATASET are deleted from the variants. OUT belongs to one dataset, and "
    "to one run at a time; neither OUT nor DATASET may lie in the other. All settings are checked "
    "before anything is made. V=1 in the environment shows the commands. SIGINT, SIGTERM and "
    "SIGHUP end what runs.\n\n"
    "Exit status: 0 success, 1 a step failed, 2 wrong settings.";

int main(int argc, char **argv)
{
    struct dl2_common_options common = {0};
    char **arguments;
    size_t count;
    const char *path = dl2_path_of_program();
    if (path)
        self = path;
    const struct dl2_option options[] = {
        {DL2_OPTION_TABLE, .table = dl2_study_options(), .commands = PLANS},
        {DL2_OPTION_END},
    };
    const struct dl2_program program = {
        .name = "dl2-study",
        .summary = "Find out how far a dataset can be compressed, and what it costs.",
        .details = details,
        .topics = describe_goals(),
        .examples = "  $ dl2-study run --dataset photos --out photos-study --epochs 2\n"
                    "  $ dl2-study plan survey --dataset photos --out photos-study\n"
                    "  $ dl2-study status photos-study",
        .options = options,
        .values = &study.options,
        .commands = commands,
    };
    dl2_program_parse(&program, argc, argv, &common, &arguments, &count);
    struct dl2_words words = {0};
    for (size_t i = 0; i < count; i++)
        dl2_words_add(&words, arguments[i]);
    free(arguments);
    if (common.command == DO)
        return dl2_slurm_do(words.at[0], words.at[1]);
    if (common.command == STATUS)
        return show_status(words.at[0]);
    quiet = common.quiet;
    study.options.jobs = common.jobs_given ? common.jobs : 0;
    dl2_study_read_environment(&study.options);
    if (!words.count)
        dl2_words_add(&words, "study");
    if (dl2_words_have(words, "clean-study") || dl2_words_have(words, "new-plan")) {
        const bool cleans = dl2_words_have(words, "clean-study");
        if (words.count > 1)
            return dl2_program_usage_error(&program, "%s goes alone",
                                           cleans ? "clean-study" : "new-plan");
        dl2_study_locate(&study, dl2_study_options());
        if (dl2_is_folder(dl2_text("%s/.make", study.out)))
            begin_at_work();
        return cleans ? clean() : give_up_plan();
    }
    return run_goals(words, common.command == PLAN);
}
