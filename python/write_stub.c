/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes python/dl2/_core.pyi: its template, and in the place of @LOADER@ what dl2.Loader takes. */
#include "python/py_dl2.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    static const char mark[] = "@LOADER@";
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        char *at = strstr(line, mark);
        fprintf(stdout, "%.*s", at ? (int)(at - line) : (int)strlen(line), line);
        if (!at)
            continue;
        py_arguments_write(true, stdout);
        fputs(at + sizeof mark - 1, stdout);
    }
    return ferror(stdin) || fflush(stdout) != 0;
}
