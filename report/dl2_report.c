/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/error.h"
#include "common/file.h"
#include "common/json.h"
#include "common/option.h"
#include "common/quote.h"
#include "common/scope.h"
#include "dataset/group_column.h"
#include "dataset/write/variant_facts.h"
#include "report/analysis.h"
#include "report/clip_speeds.h"
#include "report/detectable.h"
#include "report/forecast.h"
#include "report/groups.h"
#include "report/hypotheses.h"
#include "report/loaders.h"
#include "report/page/answer.h"
#include "report/page/page.h"
#include "report/page/plot.h"
#include "report/plan.h"
#include "report/result_files.h"
#include "report/search_results.h"
#include "report/speed.h"
#include "report/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum command { PAGE, ANSWER, DETECTABLE, DECIDE, FORECAST, NEW_PLAN, HYPOTHESES, LOADERS, CLIPS };

static struct {
    const char *output, *title, *about, *command, *gnuplot, *latex, *variants, *trainings;
    struct dl2_question question;
    struct dl2_codec_choice codecs;
    double accuracy;
    enum command task;
} arguments = {
    .output = "report.html", .gnuplot = "gnuplot", .question.tolerance = NAN, .accuracy = NAN};

enum {
    PAGES = 1 << PAGE,
    DETECTS = 1 << DETECTABLE,
    DECIDES = 1 << DECIDE,
    FORECASTS = 1 << FORECAST,
    TESTS = 1 << HYPOTHESES,
    SEVERAL_STUDIES = 1 << 9, /* which is no command's */
    STUDIES = PAGES | SEVERAL_STUDIES,
};

static const struct dl2_command commands[] = {
    [PAGE] = {"page", PAGES, "FOLDER...", 1, 0, "Write the page, and print the answer",
              "A variant is recommended if its accuracy (top-1, of masks the mean IoU, of volumes "
              "the mean Dice, or the metric of another trainer) is within the tolerance of the "
              "original's. Each codec's "
              "variants are tested from the largest file to the smallest, so that the probability "
              "of any wrong recommendation, of any network, is at most 2.5%. The tests count the "
              "chance of training and, where trainings kept their predictions, the choice of "
              "validation images. FOLDER/report/plan.json keeps what was asked whenever a page in "
              "FOLDER/report showed a verdict: a later page there, of other trainings or with "
              "another tolerance, is a further look, which shares the 2.5% with those before it, "
              "and says what was changed after results were seen. A page in another folder takes "
              "the tolerance, groups and looks of the study's own page unless options name others, "
              "and does not count as a look. Only comparable results count: a network's trainings "
              "that differ in data and seed alone, and loading that was measured as the "
              "original's. The rest is left out, and named with what differs.\n\n"
              "The page needs no network and no other file. The plots are also written to plots/ "
              "beside it, as SVG with their data and gnuplot scripts, what the page shows to "
              "report.json, and the answer of one study to answer.json and answer.csv, for "
              "scripts. Without gnuplot the page has only the tables.\n\n"
              "Several FOLDERs are summarized: studies with like settings, each of another "
              "dataset. For each variant that two of them have the page tells on how many datasets "
              "it is within the tolerance, with an error of 2.5% over all of the page, the mean "
              "difference, and what one more dataset would measure."},
    [ANSWER] = {"answer", 1 << ANSWER, "FOLDER", 1, 1,
                "Print the answer of FOLDER/report/report.html again", NULL},
    [DETECTABLE] =
        {"detectable", DETECTS, "FOLDER", 1, 1, "Print how small a change the images can show",
         "That depends on the number of validation images, and of their groups, which "
         "are known as soon as variants are made. FOLDER may also be a variant's, or its "
         "address in a database or store."},
    [DECIDE] = {"decide", DECIDES, "FOLDER", 1, 1, "Print which trainings verdicts still want",
                "Prints the state of each network and variant, and the number of seeds that it "
                "wants, as JSON. States: within, beyond, open, undecided (more seeds would hardly "
                "decide it), waits (a larger file of its codec is open), behind (one is beyond or "
                "undecided)."},
    [FORECAST] = {"forecast", FORECASTS, "FOLDER", 1, 1, "Print what tuning on each variant loses",
                  "Prints for each network and variant of make forecast the points of accuracy "
                  "that tuning the original's networks on the variant loses, with the 95% "
                  "interval, as JSON."},
    [NEW_PLAN] = {"new-plan", 1 << NEW_PLAN, "FOLDER", 1, 1,
                  "Give up the plan of the looks at a study",
                  "Gives up the plan in FOLDER/report/plan.json, so that the next report is the "
                  "first look of another. The pages of that say that a plan was given up."},
    [HYPOTHESES] =
        {"hypotheses", TESTS, "FOLDER", 1, 1, "Answer the hypotheses of (DL)2 (ICDE 2023)",
         "Prints an answer to each hypothesis, as far as it was measured (make "
         "hypotheses measures all), beside what the paper found, as Markdown. With -o it "
         "also writes the file, and beside it one of the same name with .json."},
    [LOADERS] = {"loaders", 1 << LOADERS, "FOLDER", 1, 1,
                 "Print how fast other loaders are (make study-loading LOADERS=...)", NULL},
    [CLIPS] = {"clips", 1 << CLIPS, "FOLDER", 1, 1,
               "Print how fast clips load, by container (make study-clips)", NULL},
    {0},
};

#define AT(member) offsetof(__typeof__(arguments), member)

/* "2,3,5" into a struct dl2_looks. */
static int parse_looks(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_looks *looks = value;
    DL2_AUTO_FREE unsigned *seeds = NULL;
    DL2_TRY(dl2_parse_uint_list(text, 2, 1000, &seeds, &looks->count, error));
    if (looks->count >= DL2_MAX_LOOKS)
        return dl2_error_set(error, DL2_ERR_LIMIT, "at most %d numbers", DL2_MAX_LOOKS - 1);
    for (size_t i = 0; i < looks->count; i++) {
        if (i && seeds[i] <= seeds[i - 1])
            return dl2_error_set(error, DL2_ERR_ARGUMENT, "%u comes after %u: they must grow",
                                 seeds[i], seeds[i - 1]);
        looks->seeds[i] = seeds[i];
    }
    return DL2_OK;
}

/* "psnr_rgb=30:40" into a struct dl2_codec_choice's metric and range. */
static int parse_range(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_codec_choice *choice = value;
    static char name[32];
    int end = 0;
    if (sscanf(text, "%31[^=]=%lf:%lf%n", name, &choice->range.low, &choice->range.high, &end) !=
            3 ||
        text[end] || !(choice->range.high > choice->range.low))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is not METRIC=LOW:HIGH with LOW below HIGH, such as "
                             "psnr_rgb=30:40",
                             text);
    choice->metric = name;
    return DL2_OK;
}

/* The study has the codec and the metric that the options name. */
static int check_codecs(const struct dl2_study *study, struct dl2_error *error)
{
    const struct dl2_codec_choice *choice = &arguments.codecs;
    struct dl2_metric_names metrics;
    char known[512] = "";
    if (!choice->anchor && !choice->metric)
        return DL2_OK;
    size_t codecs = 0;
    for (size_t v = 0; v < study->variant_count; v++)
        codecs += dl2_study_starts_codec(study, v);
    if (codecs < 2)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--anchor and --range compare codecs: the study has variants of %s",
                             codecs ? "one alone" : "none");
    if (choice->anchor && dl2_codec_anchor(study, choice) == study->variant_count) {
        for (size_t v = 0; v < study->variant_count; v++)
            if (dl2_study_starts_codec(study, v))
                dl2_list_name(known, sizeof known, study->variants[v].codec);
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--anchor: the study has no codec '%s'; it has %s", choice->anchor,
                             *known ? known : "none");
    }
    dl2_metric_names_find(study, &metrics);
    bool found = !choice->metric;
    for (size_t m = 0; m < metrics.count; m++) {
        found = found || strcmp(metrics.names[m], choice->metric) == 0;
        dl2_list_name(known, sizeof known, metrics.names[m]);
    }
    return found ? DL2_OK
                 : dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "--range: the study has no scores by '%s'; it has %s",
                                 choice->metric, *known ? known : "none");
}

/* "1", in the metric's unit, or "2%" of the original's, into a struct dl2_question. */
static int parse_tolerance(const char *text, void *value, struct dl2_error *error)
{
    struct dl2_question *question = value;
    char *end;
    const double parsed = strtod(text, &end);
    const bool percent = *end == '%';
    if (end == text || end[percent] || !(parsed >= 0 && parsed <= (percent ? 50 : 1e12)) ||
        (percent && !(parsed > 0)))
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "'%s' is neither a number, 0 or more, nor a part of the original's "
                             "accuracy above 0%% and up to 50%%",
                             text);
    question->percent = percent ? parsed : 0;
    question->tolerance = percent ? 0 : parsed;
    return DL2_OK;
}

static const char by_regex[] = "regex:", no_groups[] = "none";

/* By an expression, a table's column, or a file. */
static int read_groups(const char *name, struct dl2_grouping *groups, struct dl2_error *error)
{
    *groups = (struct dl2_grouping){0};
    if (strncmp(name, by_regex, sizeof by_regex - 1) == 0)
        return dl2_grouping_of_regex(name, name + sizeof by_regex - 1, groups, error);
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes text = DL2_BYTES_INIT;
    DL2_TRY(dl2_dataset_is_database(name)
                ? dl2_group_column_read(name, &text, error)
                : dl2_file_read(name, DL2_PREDICTIONS_MAX_BYTES, &text, error));
    return dl2_grouping_of_list(name, &text, groups, error);
}

/* Refuses at once what could not be read later. */
static int parse_group(const char *text, void *value, struct dl2_error *error)
{
    *(const char **)value = text;
    if (strcmp(text, no_groups) == 0)
        return DL2_OK;
    if (strncmp(text, by_regex, sizeof by_regex - 1) == 0) {
        DL2_CLEANUP(dl2_grouping_free) struct dl2_grouping groups;
        return read_groups(text, &groups, error);
    }
    if (dl2_dataset_is_database(text))
        return dl2_group_column_check(text, error);
    return dl2_is_file(text) ? DL2_OK
                             : dl2_error_set(error, DL2_ERR_ARGUMENT,
                                             "%s is neither a file nor regex:REGEX nor a table's "
                                             "address",
                                             text);
}

/* Prints the table and ends the process, as --version does. */
static int print_list(const char *text, void *value, struct dl2_error *error)
{
    static const char *const words[] = {"figures", NULL};
    (void)value;
    DL2_TRY(dl2_parse_word(text, words, error));
    dl2_result_figures_print();
    exit(DL2_EXIT_OK);
}

static const struct dl2_option options[] = {
    {DL2_OPTION_TEXT, "output", 'o', "FILE",
     "Page to write; of detectable and hypotheses a file for the text", AT(output),
     .commands = STUDIES | DETECTS | TESTS, .also = "out", .basic = true},
    {DL2_OPTION_PARSE, "tolerance", 't', "POINTS|PERCENT%",
     "Loss of accuracy that a recommended variant may have: percentage points, or the unit of the "
     "trainer's metric; 2% is so much of the original's accuracy",
     AT(question), .parse = parse_tolerance,
     .unset =
         "the study's own, which its page in FOLDER/report has; without one 1 point, and 1% of "
         "a metric that is no percentage",
     .commands = STUDIES | DETECTS | DECIDES | TESTS, .basic = true},
    {DL2_OPTION_REAL, "accuracy", 0, "PERCENT",
     "Accuracy, or value of the trainer's metric, to which the time of training is compared",
     AT(accuracy), .max = 1e12, .unset = "the original's final one less the tolerance",
     .commands = PAGES},
    {DL2_OPTION_PARSE, "interim", 0, "LIST",
     "Numbers of seeds after which verdicts were looked at while seeds were added, for example "
     "2,3,4,6,8; the chance of a wrong recommendation is divided over the looks",
     AT(question.looks), .parse = parse_looks,
     .unset = "the study's own; without one a look at all seeds, which leaves a quarter for later "
              "ones",
     .commands = STUDIES | DECIDES | TESTS},
    {DL2_OPTION_UINT, "bootstrap", 0, "DRAWS",
     "Show the pigeonhole bootstrap's interval beside each variant's, as a check; it needs "
     "predictions",
     AT(question.draws), .max = 1000000, .unset = "no bootstrap", .commands = PAGES},
    {DL2_OPTION_TEXT, "title", 0, "TEXT", "Title of the page", AT(title),
     .unset = "the folder's name; of several, how many they are", .commands = STUDIES | TESTS,
     .basic = true},
    {DL2_OPTION_TEXT, "about", 0, "TEXT",
     "Sentence about the dataset that readers of the page should know first", AT(about),
     .commands = PAGES, .basic = true},
    {DL2_OPTION_PARSE, "group", 0, "SPEC",
     "Which validation images belong together and count as one, such as near duplicates or images "
     "of one patient: regex:REGEX (the group of an image is what the POSIX extended expression, or "
     "its first parenthesis, matches in its key), a file of lines KEY, tab, GROUP, or a table with "
     "the column of groups, postgresql:///DATABASE?table=NAME&group=COLUMN; none: each image "
     "counts by itself",
     AT(question.group), .parse = parse_group, .unset = "the study's own; without one, none",
     .commands = PAGES | DETECTS | DECIDES | TESTS, .basic = true},
    {DL2_OPTION_TEXT, "variants", 0, "LIST",
     "Variants of the study, for example 'raw jpeg-50'; others are left out and named",
     AT(variants), .unset = "all", .commands = STUDIES | DECIDES | FORECASTS | TESTS,
     .basic = true},
    {DL2_OPTION_TEXT, "trainings", 0, "LIST",
     "Trainings of the study, for example 'raw/resnet10/seed-1 jpeg-50/resnet10/seed-1'; others "
     "are left out and named",
     AT(trainings), .unset = "all", .commands = PAGES | DECIDES | FORECASTS | TESTS},
    {DL2_OPTION_TEXT, "anchor", 0, "CODEC",
     "Codec whose sizes others are compared with at equal quality", AT(codecs.anchor),
     .unset = "jpeg, else the first", .commands = PAGES | TESTS},
    {DL2_OPTION_PARSE, "range", 0, "METRIC=LOW:HIGH",
     "Compare sizes by METRIC only at qualities from LOW to HIGH, such as psnr_rgb=30:40",
     AT(codecs), .parse = parse_range, .unset = "all qualities", .commands = PAGES},
    {DL2_OPTION_TEXT, "command", 0, "TEXT", "Command that repeats the study, shown on the page",
     AT(command), .commands = PAGES},
    {DL2_OPTION_TEXT, "gnuplot", 0, "PROGRAM", "gnuplot program to draw with", AT(gnuplot),
     .commands = STUDIES},
    {DL2_OPTION_TEXT, "latex", 0, "DIR",
     "Write each plot for LaTeX, too, to DIR: data, a gnuplot script, and NAME.tex with NAME.pdf, "
     "which \\input takes; DIR/figures.tex is a document with all of them",
     AT(latex), .commands = STUDIES, .unset = "no such files"},
    {DL2_OPTION_PARSE, "list", 0, "WHAT",
     "List what is checked in the files of a study, and exit: figures (schema, field, unit, lowest "
     "and highest value, whole or real, the field beside it that is at least as large); one line "
     "each, with tabs between the columns",
     .parse = print_list},
    {DL2_OPTION_END},
};

static const struct dl2_program program = {
    .name = "dl2-report",
    .summary = "Report in one HTML page how far a dataset can be compressed, or several.",
    .details = "FOLDER is the output of a study: variants/, quality/, load/ and train/; any of "
               "them may be missing. It may also be that of a search of dl2-train, or hold one as "
               "search/.\n\n"
               "Exit status: 0 success, 1 results that could not be read or no page, 2 wrong "
               "usage.",
    .examples = "  $ dl2-report study-out/demo -o report.html\n"
                "  $ dl2-report study-out/demo --tolerance 2 --title 'Our photographs'\n"
                "  $ dl2-report decide study-out/demo --interim 2,3,4,6,8\n"
                "  $ dl2-report study-out/flowers study-out/birds --tolerance 2 -o both.html\n"
                "  $ dl2-report study-out/demo --group 'regex:[^/]*/r[0-9]*'\n"
                "  $ dl2-report study-out/demo --latex paper/plots\n"
                "  $ dl2-report new-plan study-out/demo",
    .options = options,
    .values = &arguments,
    .commands = commands,
    .has_default = true,
};

/* "FOLDER/NAME" beside a page in FOLDER. */
static const char *beside_page(const char *name)
{
    return dl2_text("%.*s%s", (int)(dl2_path_base(arguments.output) - arguments.output),
                    arguments.output, name);
}

/* What the page is drawn with, also for --latex. */
static struct dl2_latex latex;
static struct dl2_plotter plotter;

static int prepare_plotter(struct dl2_error *error)
{
    plotter = (struct dl2_plotter){.folder = beside_page("plots"), .gnuplot = arguments.gnuplot};
    if (arguments.latex) {
        latex.folder = arguments.latex;
        plotter.latex = &latex;
        DL2_TRY(dl2_make_folders(arguments.latex, error));
    }
    DL2_TRY(dl2_file_expect(arguments.output, error));
    return dl2_make_folders(plotter.folder, error);
}

/* Writes the page and its document, and says why plots are missing. */
static int finish_page(const json_t *document, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes html = DL2_BYTES_INIT;
    json_auto_t *old = NULL;
    const char *path = beside_page("report.json");
    DL2_TRY(dl2_error_copy(error, &plotter.error));
    if (dl2_is_file(path) && dl2_json_load(path, DL2_PAGE_SCHEMA, &old, NULL) < 0)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "%s may not be dl2-report's and would be overwritten: move it away, "
                             "or name a page in another folder with -o",
                             path);
    DL2_TRY(dl2_json_save(path, document, error));
    dl2_document_render(document, &html);
    DL2_TRY(dl2_file_write(arguments.output, html.data, html.size, error));
    if (plotter.latex)
        DL2_TRY(dl2_latex_end(plotter.latex, error));
    if (plotter.problem[0])
        fprintf(stderr, "%s: %s\n", program.name, DL2_SHOWN(plotter.problem));
    return DL2_OK;
}

/* Splits a list at blanks and commas. It ends with NULL, and is NULL for no text. */
static char **split_list(const char *text)
{
    static const char separators[] = " ,\t\n";
    if (!text)
        return NULL;
    char *rest = dl2_text_copy(text), *word;
    char **list = dl2_keep(strlen(text) / 2 + 2, sizeof *list, "the report");
    for (size_t count = 0; (word = strsep(&rest, separators));)
        if (*word)
            list[count++] = word;
    return list;
}

static int group_images(struct dl2_study *study, struct dl2_conditions *conditions,
                        struct dl2_error *error)
{
    DL2_CLEANUP(dl2_grouping_free) struct dl2_grouping groups = {0};
    if (!arguments.question.group)
        return DL2_OK;
    DL2_TRY(read_groups(arguments.question.group, &groups, error));
    DL2_TRY(dl2_study_group(study, &groups, error));
    if (study->arch_count && !study->grouped)
        return dl2_error_set(error, DL2_ERR_ARGUMENT,
                             "--group has no effect: no training kept its predictions, so that "
                             "nothing is known of single images");
    for (size_t i = 0; i < conditions->count; i++)
        DL2_TRY(dl2_study_group(&conditions->items[i].study, &groups, error));
    return DL2_OK;
}

static int collect(struct dl2_study *study, struct dl2_page *page, struct dl2_error *error)
{
    const struct dl2_study_selection selection = {split_list(arguments.variants),
                                                  split_list(arguments.trainings)};
    DL2_TRY(dl2_study_collect(page->folder, &selection, study, error));
    page->conditions = dl2_conditions_collect(page->folder, selection.variants, study);
    if (isnan(arguments.question.tolerance)) {
        const struct dl2_accuracy_kind *kind = dl2_study_accuracy(study);
        arguments.question.percent = kind->is_percent ? 0 : 1;
        arguments.question.tolerance = kind->is_percent ? 1 : 0;
    }
    DL2_TRY(group_images(study, &page->conditions, error));
    page->loading = dl2_loading_collect(page->folder, study);
    page->search = dl2_search_results_collect(page->folder);
    dl2_study_note_broken(study, &page->search.broken);
    return DL2_OK;
}

static const char *show_tolerance(const struct dl2_asked *asked)
{
    return asked->percent > 0 ? dl2_text("%g%% of the original's", asked->percent)
                              : dl2_text("%g", asked->tolerance);
}

/* Fills in what no option asks as the studies' own pages ask it. */
static int complete_question(char *const *folders, size_t count, struct dl2_error *error)
{
    struct dl2_question *question = &arguments.question;
    struct dl2_asked first = {.tolerance = NAN}, asked;
    const bool has_tolerance = !isnan(question->tolerance), has_looks = question->looks.count;
    bool recorded = false;
    for (size_t i = 0; i < count; i++) {
        DL2_TRY(dl2_plan_asked(folders[i], &asked, error));
        recorded |= !isnan(asked.tolerance);
        asked.tolerance = isnan(asked.tolerance) ? 1 : asked.tolerance;
        first = i ? first : asked;
        if (!has_tolerance &&
            (asked.tolerance != first.tolerance || asked.percent != first.percent))
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s has a tolerance of %s, %s of %s: name one by --tolerance",
                                 folders[0], show_tolerance(&first), folders[i],
                                 show_tolerance(&asked));
        if (!has_looks && memcmp(&asked.looks, &first.looks, sizeof asked.looks) != 0)
            return dl2_error_set(error, DL2_ERR_ARGUMENT,
                                 "%s and %s were looked at after other numbers of seeds: name them "
                                 "by --interim",
                                 folders[0], folders[i]);
    }
    if (!has_tolerance) {
        question->tolerance = recorded ? first.tolerance : NAN;
        question->percent = first.percent;
    }
    question->looks = has_looks ? question->looks : first.looks;
    if (!question->group)
        question->group = count == 1 ? first.group : NULL;
    else if (strcmp(question->group, no_groups) == 0)
        question->group = NULL;
    return DL2_OK;
}

/* Is the page, or the JSON for dl2-study, what the study itself shows? */
static bool is_own_page(const char *folder)
{
    struct stat own, other;
    if (arguments.task != PAGE)
        return arguments.task == DECIDE;
    DL2_AUTO_FREE char *place = dl2_need(dl2_folder_of(arguments.output));
    return dl2_make_folder_of(arguments.output, NULL) == DL2_OK && stat(place, &own) == 0 &&
           stat(dl2_text("%s/report", folder), &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

/* The analysis of each network, by the plan's questions, and the look at it. */
static int analyze(struct dl2_page *page, struct dl2_error *error)
{
    const struct dl2_study *study = page->study;
    page->analyses = dl2_keep(study->arch_count, sizeof *page->analyses, "the report");
    page->speeds = dl2_keep(study->arch_count, sizeof *page->speeds, "the report");
    DL2_TRY(check_codecs(study, error));
    DL2_TRY(dl2_plan_open(page->folder, study, &arguments.question, is_own_page(page->folder),
                          &page->plan, error));
    for (size_t a = 0; a < study->arch_count; a++) {
        page->analyses[a] = dl2_analyze(study, study->archs[a], &page->plan.questions[a]);
        page->speeds[a] =
            dl2_speeds_analyze(study, &page->analyses[a],
                               dl2_accuracy_shown(dl2_study_accuracy(study), arguments.accuracy));
    }
    return arguments.task == FORECAST ? DL2_OK /* which shows no verdict */
                                      : dl2_plan_record(&page->plan, study, page->analyses, error);
}

/* --title, or the folder's name. */
static const char *title_of(const char *folder)
{
    char *name = dl2_text_copy(folder);
    for (size_t end = strlen(name); end > 1 && name[end - 1] == '/'; end--)
        name[end - 1] = '\0';
    return arguments.title ? arguments.title : dl2_path_base(name);
}

/* Draws the plots and writes the page around them: that of several studies, or of one, where
 * `several` is NULL. */
static int draw_page(struct dl2_page *page, const struct dl2_several_studies *several,
                     struct dl2_error *error)
{
    DL2_TRY(prepare_plotter(error));
    page->plotter = &plotter;
    page->title = several ? arguments.title : title_of(page->folder);
    return finish_page(several ? dl2_several_page_make(page, several) : dl2_page_make(page), error);
}

/* Writes the page and the answer beside it, and prints the answer. */
static int write_report(struct dl2_page *page, bool quiet, struct dl2_error *error)
{
    const struct dl2_study *study = page->study;
    dl2_conditions_analyze(&page->conditions, &arguments.question);
    dl2_page_complete(page);
    DL2_TRY(draw_page(page, NULL, error));
    const json_t *answer = dl2_answer_make(page);
    DL2_TRY(dl2_answer_save(answer, beside_page("answer.json"), beside_page("answer.csv"), error));
    if (!quiet && (study->arch_count || !page->search.report))
        dl2_answer_print(answer);
    return DL2_OK;
}

/* ---- What dl2-study asks between rounds of trainings: "dl2-decisions/1" and "dl2-forecasts/1" of
 * docs/formats/report.md */

static const char *state_of(const struct dl2_analysis *analysis, size_t v, size_t wanted)
{
    const struct dl2_comparison *comparison = &analysis->comparisons[v];
    if (comparison->decided)
        return comparison->verdict == DL2_VERDICT_WITHIN ? "within" : "beyond";
    if (comparison->blocker == v)
        return wanted ? "open" : "undecided";
    return dl2_analysis_seeds_wanted(analysis, comparison->blocker) ? "waits" : "behind";
}

static void add_decision(json_t *list, const char *network, const char *variant, const char *state,
                         size_t seeds)
{
    json_array_append_new(list, json_pack("{s:o, s:o, s:s, s:I}", "network", dl2_json_text(network),
                                          "variant", dl2_json_text(variant), "state", state,
                                          "seeds", (json_int_t)seeds));
}

static json_t *make_decisions(const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    const size_t raw = dl2_study_find(study, "raw");
    json_t *list = json_array();
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_analysis *analysis = &page->analyses[a];
        size_t most = 0;
        for (size_t v = 0; v < study->variant_count; v++) {
            if (v == raw)
                continue;
            const size_t wanted = dl2_analysis_seeds_wanted(analysis, v);
            most = wanted > most ? wanted : most;
            add_decision(list, study->archs[a], study->variants[v].name,
                         state_of(analysis, v, wanted), wanted);
        }
        add_decision(list, study->archs[a], "raw", most ? "open" : "done", most);
    }
    return json_pack("{s:s, s:o}", "schema", "dl2-decisions/1", "decisions", list);
}

/* What each variant loses by the tuned networks of `make forecast`, where that is known. */
static json_t *make_forecasts(const struct dl2_page *page)
{
    const struct dl2_study *study = page->study;
    json_t *list = json_array();
    for (size_t a = 0; a < study->arch_count; a++) {
        const struct dl2_forecast *forecasts =
            dl2_forecast_make(study, &page->conditions, study->archs[a]);
        for (size_t v = 0; v < study->variant_count; v++)
            if (isfinite(forecasts[v].tuned + forecasts[v].half))
                json_array_append_new(list,
                                      json_pack("{s:o, s:o, s:f, s:f}", "network",
                                                dl2_json_text(study->archs[a]), "variant",
                                                dl2_json_text(study->variants[v].name), "loss",
                                                forecasts[v].tuned, "half", forecasts[v].half));
    }
    return json_pack("{s:s, s:o}", "schema", "dl2-forecasts/1", "forecasts", list);
}

/* For dl2-study: JSON on standard output, notes on the plan on standard error. */
static int print_json(const struct dl2_page *page, struct dl2_error *error)
{
    const json_t *json =
        dl2_keep_json(arguments.task == FORECAST ? make_forecasts(page) : make_decisions(page));
    const bool written = json_dumpf(json, stdout, JSON_INDENT(1)) == 0 && putchar('\n') != EOF;
    for (size_t i = 0; arguments.task == DECIDE && i < page->plan.note_count; i++)
        fprintf(stderr, "%s\n", DL2_SHOWN(page->plan.notes[i]));
    return written ? DL2_OK : dl2_error_system(error, "standard output");
}

/* ---- */

static int answer_hypotheses(struct dl2_page *page, struct dl2_error *error)
{
    const struct dl2_study *study = page->study;
    const struct dl2_image_scores scores =
        dl2_image_scores_read(study, dl2_codec_anchor(study, &page->codecs));
    const struct dl2_codec_sizes sizes = dl2_codec_sizes_find(study, &scores, &page->codecs);
    dl2_conditions_analyze(&page->conditions, &arguments.question);
    const json_t *all = dl2_hypotheses_make(&(struct dl2_hypotheses_of){
        title_of(page->folder), study, page->analyses, &page->conditions, &page->loading, &sizes});
    const char *text = dl2_hypotheses_text(all), *path = arguments.output;
    if (path) {
        const char *json = dl2_text("%.*s.json", (int)dl2_path_stem_length(path), path);
        DL2_TRY(dl2_file_write(path, text, strlen(text), error));
        DL2_TRY(dl2_json_save(json, all, error));
    }
    char *rest = dl2_text_copy(text);
    for (const char *line; (line = strsep(&rest, "\n")) && rest;)
        printf("%s\n", DL2_SHOWN(line));
    return DL2_OK;
}

/* Collects, analyses, and prints JSON or writes the page. */
static int report(const char *folder, struct dl2_study *study, bool quiet, struct dl2_error *error)
{
    DL2_TRY(complete_question((char *const[]){(char *)folder}, 1, error));
    struct dl2_page page = {.folder = folder,
                            .command = arguments.command,
                            .about = arguments.about,
                            .study = study,
                            .question = &arguments.question,
                            .codecs = arguments.codecs};
    DL2_TRY(collect(study, &page, error));
    DL2_TRY(analyze(&page, error));
    return arguments.task == PAGE         ? write_report(&page, quiet, error)
           : arguments.task == HYPOTHESES ? answer_hypotheses(&page, error)
                                          : print_json(&page, error);
}

/* The summary of several studies. */
static int report_several(char *const *folders, size_t count, struct dl2_study *notes, bool quiet,
                          struct dl2_error *error)
{
    struct dl2_several_studies several;
    DL2_TRY(complete_question(folders, count, error));
    dl2_looks_plan(&arguments.question.looks, 0, 1);
    const struct dl2_study_selection selection = {.variants = split_list(arguments.variants)};
    DL2_TRY(dl2_several_studies_collect(folders, count, &selection, &arguments.question, &several,
                                        notes, error));
    DL2_TRY(draw_page(&(struct dl2_page){.study = notes}, &several, error));
    for (size_t i = 0; !quiet && i < several.network_count; i++) {
        struct dl2_several_answer answer;
        dl2_several_answer_make(&several, &several.networks[i], &answer);
        if (several.network_count > 1)
            printf("%s:\n", DL2_SHOWN(several.networks[i].arch));
        for (size_t line = 0; line < answer.line_count; line++)
            printf("%s\n", DL2_SHOWN(answer.lines[line]));
        printf("%s%s\n", DL2_SHOWN(answer.headline), DL2_SHOWN(answer.caveats));
    }
    return DL2_OK;
}

/* The keys of the images for validation: of the first variant in a study's folder that has a list,
 * else of the variant that the place is. */
static int load_keys(const char *place, struct dl2_bytes *keys, size_t *count, size_t *images,
                     struct dl2_error *error)
{
    DL2_AUTO_LIST char **names = NULL;
    const char *variants = dl2_text("%s/variants", place);
    DL2_TRY(dl2_list_names(variants, &names, error));
    *images = 0;
    for (char **name = names; *name && !*images; name++)
        DL2_TRY(dl2_facts_load_val_keys(dl2_text("%s/%s", variants, *name), keys, count, images,
                                        error));
    return *images ? DL2_OK : dl2_facts_load_val_keys(place, keys, count, images, error);
}

static int say_detectable(const char *folder, const char *path, struct dl2_error *error)
{
    DL2_CLEANUP(dl2_bytes_free) struct dl2_bytes keys = DL2_BYTES_INIT;
    size_t count, images;
    DL2_CLEANUP(dl2_grouping_free) struct dl2_grouping groups = {0};
    const char *text, *group = arguments.question.group;
    const double tolerance = arguments.question.percent > 0
                                 ? INFINITY /* of what is not known yet */
                             : isnan(arguments.question.tolerance) ? 1
                                                                   : arguments.question.tolerance;
    if (group && strcmp(group, no_groups) == 0)
        group = NULL;
    if (group)
        DL2_TRY(read_groups(group, &groups, error));
    DL2_TRY(load_keys(folder, &keys, &count, &images, error));
    DL2_TRY(dl2_detectable_text((const char *)keys.data, count, images, group ? &groups : NULL,
                                tolerance, &text, error));
    printf("%s\n", DL2_SHOWN(text));
    text = dl2_text("%s\n", text);
    return path ? dl2_file_write(path, text, strlen(text), error) : DL2_OK;
}

static int print_lines(const char *folder, struct dl2_error *error)
{
    const bool of_clips = arguments.task == CLIPS;
    const struct dl2_words lines = of_clips ? dl2_clips_lines(folder) : dl2_loaders_lines(folder);
    if (!lines.count)
        return dl2_error_set(error, DL2_ERR_ARGUMENT, "%s/%s has no results", folder,
                             of_clips ? "clips" : "loaders");
    for (size_t i = 0; i < lines.count; i++)
        printf("%s\n", DL2_SHOWN(lines.at[i]));
    return DL2_OK;
}

int main(int argc, char **argv)
{
    struct dl2_common_options common = {0};
    DL2_AUTO_FREE char **folders = NULL;
    size_t count;
    dl2_program_parse(&program, argc, argv, &common, &folders, &count);
    const char *idle =
        count > 1 ? dl2_option_without_effect(&program, &common, SEVERAL_STUDIES) : NULL;
    if (idle)
        return dl2_program_usage_error(&program, "--%s has no effect on several studies", idle);

    struct dl2_study study = {0};
    struct dl2_error error = DL2_ERROR_INIT;
    arguments.task = (enum command)common.command;
    if (arguments.task == ANSWER || arguments.task == DETECTABLE || arguments.task == NEW_PLAN ||
        arguments.task == LOADERS || arguments.task == CLIPS) {
        const bool named = dl2_option_given(&program, &common, "output");
        if ((arguments.task == ANSWER     ? dl2_answer_print_saved(folders[0], &error)
             : arguments.task == NEW_PLAN ? dl2_plan_give_up(folders[0], &error)
             : arguments.task == DETECTABLE
                 ? say_detectable(folders[0], named ? arguments.output : NULL, &error)
                 : print_lines(folders[0], &error)) < 0)
            fprintf(stderr, "%s: %s\n", program.name, error.message);
        return error.status < 0 ? DL2_EXIT_FAILED : DL2_EXIT_OK;
    }
    if (arguments.task == HYPOTHESES && !dl2_option_given(&program, &common, "output"))
        arguments.output = NULL;
    int status = count > 1 ? report_several(folders, count, &study, common.quiet, &error)
                           : report(folders[0], &study, common.quiet, &error);
    if (status < 0)
        fprintf(stderr, "%s: %s\n", program.name, error.message);
    for (size_t i = 0; i < study.broken.count; i++)
        fprintf(stderr, "%s: %s\n", program.name, DL2_SHOWN(study.broken.at[i]));
    for (size_t i = 0; i < study.unfinished.count; i++)
        fprintf(stderr, "%s: %s: cut short, left out\n", program.name,
                DL2_SHOWN(study.unfinished.at[i]));
    for (size_t i = 0; i < study.left_out.count; i++)
        fprintf(stderr, "%s: left out: %s\n", program.name, DL2_SHOWN(study.left_out.at[i]));
    if (status == DL2_OK && study.failure_count)
        fprintf(stderr, "%s: %zu thing%s went wrong with images on the way; the page names %s\n",
                program.name, study.failure_count, study.failure_count == 1 ? "" : "s",
                study.failure_count == 1 ? "it" : "them");
    return status < 0 || study.broken.count ? DL2_EXIT_FAILED : DL2_EXIT_OK;
}
