/* SPDX-License-Identifier: BSD-2-Clause */
#include "common/nearest.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 48 }; /* letters of a name; longer ones are no slips of the hand */

static int letter(char c)
{
    return c == '_' ? '-' : tolower((unsigned char)c);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Letters that are added, left out, replaced, or exchanged with their neighbors (optimal string
 * alignment). */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[3][LONGEST + 1];
    for (size_t k = 0; k <= b_length; k++)
        rows[0][k] = (unsigned)k;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned *row = rows[i % 3], *before = rows[(i + 2) % 3];
        row[0] = (unsigned)i;
        for (size_t k = 1; k <= b_length; k++) {
            const bool equal = letter(a[i - 1]) == letter(b[k - 1]);
            row[k] = least(least(row[k - 1], before[k]) + 1, before[k - 1] + !equal);
            if (i > 1 && k > 1 && letter(a[i - 1]) == letter(b[k - 2]) &&
                letter(a[i - 2]) == letter(b[k - 1]))
                row[k] = least(row[k], rows[(i + 1) % 3][k - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

/* Does the longer `text` begin with `word`, and a dash behind it or four letters at least? */
static bool begins(const char *text, size_t length, const char *word, size_t word_length)
{
    return word_length && word_length < length &&
           distance(text, word_length, word, word_length) == 0 &&
           (letter(text[word_length]) == '-' || word_length >= 4);
}

static bool try_one(struct dl2_nearest *nearest, const char *name, size_t length)
{
    const size_t given = strlen(nearest->given);
    if (!length || length > LONGEST || given > LONGEST)
        return false;
    const unsigned letters = distance(nearest->given, given, name, length);
    const bool part =
        begins(nearest->given, given, name, length) || begins(name, length, nearest->given, given);
    const unsigned cost = part ? least(letters, 1) : letters;
    if (cost > least(1 + (unsigned)given / 4, 3) || cost >= given ||
        (nearest->name && cost >= nearest->cost))
        return false;
    nearest->cost = cost;
    return true;
}

bool dl2_nearest_try(struct dl2_nearest *nearest, const char *name, const char *also)
{
    bool nearer = try_one(nearest, name, strlen(name));
    for (const char *at = also; at && *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        nearer |= try_one(nearest, at, length);
        at += length;
    }
    if (nearer)
        nearest->name = name;
    return nearer;
}
