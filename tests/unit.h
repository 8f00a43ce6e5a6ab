/* SPDX-License-Identifier: BSD-2-Clause */
/* What every unit test includes: cmocka, the headers that must come before it, and a check. */
#ifndef DL2_TESTS_UNIT_H
#define DL2_TESTS_UNIT_H

#include "common/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* cmocka passes a state to every test; most tests do without. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Fails the test with the error's message if the call that set it failed. */
static inline void expect_ok(int status, const struct dl2_error *error)
{
    if (status < 0)
        fail_msg("%s", error->message);
}

#endif
