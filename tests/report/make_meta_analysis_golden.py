#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes meta_analysis_golden.inc: the summary of several studies by its definitions, with mpmath's
incomplete beta function. Needs Debian's python3-mpmath.

    /usr/bin/python3 tests/report/make_meta_analysis_golden.py > tests/report/meta_analysis_golden.inc
"""
from fractions import Fraction
from itertools import combinations
from statistics import mean, variance

from mpmath import betainc, findroot, mp, mpf, sqrt

mp.dps = 30
TOLERANCE = mpf(1)

# Differences, variances, degrees of freedom of each study.
CASES = [
    ([-0.5, 0.25], [0.04, 0.09], [1, 2]),
    ([0.3, -1.2, -0.1], [0.25, 0.01, 0.16], [3, 2.5, 11.75]),
    ([-0.31, -0.29, -0.3, -0.33], [0.2, 0.3, 0.25, 0.4], [4, 4, 6, 120]),
    ([-3.5, 0.4, -0.2, 0.1, -0.6], [0.3, 0.02, 0.05, 0.5, 0.1], [2, 7.2, 3.3, 1, 19]),
    ([0.7, -0.9, -2.2, -0.4, 0.15, -1.05, -0.6, -0.05], [0.1] * 8, [5] * 8),
]


def tail(t, freedom):
    """Student's t above t."""
    half = betainc(freedom / mpf(2), mpf(1) / 2, 0, freedom / (freedom + t * t), regularized=True) / 2
    return half if t > 0 else 1 - half


def row(values):
    return "{" + ", ".join("%.15g" % value for value in values) + "}"


print("/* SPDX-License-Identifier: BSD-2-Clause */")
print("""/* Made by make_meta_analysis_golden.py: number of studies; their differences, variances and freedoms;
 * mean, half, half_new, between; p of each study against 1 point; of partial conjunctions. */""")
for differences, variances, freedoms in CASES:
    y, v, f = ([mpf(str(x)) for x in xs] for xs in (differences, variances, freedoms))
    n = len(y)
    exact = [Fraction(str(d)) for d in differences]
    middle, of_means = (mpf(x.numerator) / x.denominator for x in (mean(exact), variance(exact)))
    quantile = findroot(lambda t: tail(t, n - 1) - mpf("0.025"), (mpf(2), mpf(14)), solver="anderson")
    at_least = mpf("1.95996398454005423552") * sqrt(sum(v) / n / n)
    half = max(quantile * sqrt(of_means / n), at_least)
    half_new = max(quantile * sqrt(of_means + of_means / n), at_least * sqrt(n + 1))
    between = sqrt(max(mpf(0), of_means - sum(v) / n))
    p = [tail((d + TOLERANCE) / sqrt(s), df) for d, s, df in zip(y, v, f)]
    # "Fewer than k are within": of every n - k + 1 studies none is. The largest p-value of these, by Bonferroni.
    joint = [max(min(mpf(1), len(some) * min(some)) for some in combinations(p, n - k + 1))
             for k in range(1, n + 1)]
    for k in range(1, n):
        joint[k] = max(joint[k], joint[k - 1])
    print("{%d, %s,\n %s, %s,\n %s,\n %s,\n %s}," % (
        n, row(y), row(v), row(f), row([middle, half, half_new, between])[1:-1], row(p), row(joint)))
