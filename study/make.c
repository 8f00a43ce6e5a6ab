/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/json.h"
#include "study/child.h"
#include "study/engine.h"

#include <stdlib.h>
#include <string.h>

/* Settings and commands may hold anything; make's own sign is written twice. */
static const char *for_make(const char *text)
{
    const char *escaped = "";
    for (;;) {
        const size_t length = strcspn(text, "$\n");
        escaped = dl2_text("%s%.*s", escaped, (int)length, text);
        text += length;
        if (!*text)
            return escaped;
        escaped = dl2_text("%s%s", escaped, *text++ == '$' ? "$$" : " ");
    }
}

static void write_list(FILE *out, const json_t *paths, const char *before)
{
    size_t i;
    json_t *path;
    json_array_foreach(paths, i, path)
    {
        fprintf(out, "%s%s", i ? " \\\n    " : before, json_string_value(path));
    }
}

static void write_step(FILE *out, const struct dl2_study_plan *plan, const json_t *step,
                       const char *program)
{
    const json_t *outputs = json_object_get(step, "outputs");
    const json_t *after = json_object_get(step, "after");
    const char *name = dl2_json_get_text(step, "name", "");
    size_t i;
    json_t *command;
    fprintf(out, "\n# %s%s\n", name,
            json_is_true(json_object_get(step, "alone")) ? "" : ", beside others");
    json_array_foreach(json_object_get(step, "commands"), i, command)
    {
        fprintf(out, "#   %s\n", for_make(dl2_shell_command(dl2_words_of_json(command))));
    }
    write_list(out, outputs, "");
    fputs(json_array_size(outputs) > 1 ? " &:" : ":", out);
    write_list(out, json_object_get(step, "inputs"), " ");
    fputs(json_is_true(json_object_get(step, "again")) ? " FORCE" : "", out);
    if (json_array_size(after))
        write_list(out, after, " | ");
    fprintf(out, "\n\t@%s do %s %s\n", for_make(dl2_shell_quote(program)),
            for_make(dl2_shell_quote(plan->study->out)), for_make(dl2_shell_quote(name)));
}

void dl2_rules_save(const struct dl2_study_plan *plan, const char *path, const char *program)
{
    char *text = NULL;
    size_t size, i;
    FILE *out = dl2_need(open_memstream(&text, &size));
    fprintf(
        out,
        "# The rules of a study, as dl2-study planned it; it writes them anew before each run.\n"
        "#   %s\n\n.PHONY: all FORCE\n.SUFFIXES:\nall:",
        for_make(plan->command));
    for (i = 0; i < plan->targets.count; i++)
        fprintf(out, " \\\n    %s", plan->targets.at[i]);
    fputs("\nFORCE:\n", out);
    const char *stage;
    json_t *settings, *step;
    json_object_foreach(plan->changed, stage, settings)
    {
        fprintf(out, "\n# settings that bear on %s have changed\n%s: FORCE\n", stage,
                dl2_plan_stage(plan, stage));
        fprintf(out, "\t@mkdir -p %s/.make && printf '%%s\\n' %s >$@\n", plan->study->out,
                for_make(dl2_shell_quote(json_string_value(settings))));
    }
    json_array_foreach(plan->steps, i, step)
    {
        write_step(out, plan, step, program);
    }
    /* What is interrupted is gone on with; a result that is not whole says so. */
    fputs("\n.PRECIOUS: %\n", out);
    dl2_need(fclose(out) == 0 ? text : NULL);
    dl2_text_save(path, text);
    free(text);
}

int dl2_make_run(const struct dl2_study_plan *plan, const char *rules, struct dl2_words targets)
{
    const char *make = getenv("MAKE"), *flags = getenv("MAKEFLAGS");
    struct dl2_words command = {0};
    /* -k: hours of trainings are not given up for one that failed. */
    dl2_words_more(&command, make && *make ? make : "make", "--no-print-directory", "-k", "-f",
                   rules, NULL);
    /* Without -j this program chooses how much goes on at once. Variables follow a word "--". */
    const struct dl2_words words = dl2_words_split(flags ? flags : "");
    bool chosen = false;
    for (size_t i = 0; i < words.count && strcmp(words.at[i], "--") != 0; i++)
        chosen |=
            strncmp(words.at[i], "-j", 2) == 0 || strncmp(words.at[i], "--jobserver", 11) == 0;
    if (!chosen)
        dl2_words_add(&command, dl2_text("-j%u", plan->study->trainers));
    dl2_words_add_all(&command, targets);
    return dl2_child_run_here(command);
}
