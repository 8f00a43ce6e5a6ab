/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of CSV files that others wrote. dl2_csv_field() of common/quote.h writes them. */
#ifndef DL2_COMMON_CSV_H
#define DL2_COMMON_CSV_H

/*
 * Cuts a line, without its end, into at most `most` fields, in place, without blanks around them.
 * Fields in double quotes may have separators, and "" for ". Returns NULL, or what is wrong with
 * the line, to be appended to its number.
 */
const char *dl2_csv_split(char *line, char separator, char **fields, int most, int *count);

#endif
