#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How well does `make forecast` tell what full trainings lose?

    check_forecast.py STUDY...

Each STUDY is the folder of a study that has been through `make forecast report`. What its report
plots of each variant and network, points of top-1 that validation without tuning, tuning, and
training on the variant lose, is compared:

- without tuning, and tuned: these losses as they are
- fitted: the best multiples of both for the other studies (least squares, leaving one study out)

Prints, for each study and over all, the mean absolute error in points and how many pairs of
variants are ordered as by training (pairs that training orders by more than its intervals).
"""

import glob
import os
import sys


def read(folder):
    """[(network, without tuning, tuned, trained, half of trained's interval)]"""
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "report", "plots", "forecast-*.dat"))):
        network = os.path.basename(path)[len("forecast-"):-len(".dat")]
        for line in open(path, encoding="utf-8"):
            words = line.split()
            if len(words) == 5 and words[0] != "#":
                tuned, trained, half, as_is = map(float, words[:4])
                rows.append((network, as_is, tuned, trained, half))
    if not rows:
        sys.exit(f"{folder}: no forecast beside trainings: run make forecast report")
    return rows


def fit(rows):
    """Multiples (a, b) with the least squared error of a * without tuning + b * tuned."""
    xx = sum(r[1] * r[1] for r in rows)
    xy = sum(r[1] * r[2] for r in rows)
    yy = sum(r[2] * r[2] for r in rows)
    xz = sum(r[1] * r[3] for r in rows)
    yz = sum(r[2] * r[3] for r in rows)
    determinant = xx * yy - xy * xy
    return (xz * yy - yz * xy) / determinant, (yz * xx - xz * xy) / determinant


def ordered(rows, forecast):
    """(ordered alike, told by training)"""
    alike = told = 0
    for i, row in enumerate(rows):
        for other in rows[:i]:
            if row[0] != other[0] or abs(row[3] - other[3]) <= max(row[4], other[4]):
                continue
            told += 1
            alike += (row[3] - other[3]) * (forecast(row) - forecast(other)) > 0
    return alike, told


def main():
    studies = {folder: read(folder) for folder in sys.argv[1:]}
    if len(studies) < 2:
        sys.exit(__doc__)
    print("| study | variants | mean loss | without tuning | tuned | fitted | order |")
    print("|---|---|---|---|---|---|---|")
    totals, count, alike_all, told_all, losses = [0.0] * 3, 0, 0, 0, 0.0
    for folder, rows in studies.items():
        a, b = fit([r for other, all_rows in studies.items() if other != folder for r in all_rows])
        ways = (lambda r: r[1], lambda r: r[2], lambda r, a=a, b=b: a * r[1] + b * r[2])
        errors = [sum(abs(way(r) - r[3]) for r in rows) for way in ways]
        alike, told = ordered(rows, ways[1])
        print(f"| {os.path.basename(os.path.normpath(folder))} | {len(rows)} | "
              f"{sum(r[3] for r in rows) / len(rows):.1f} | "
              + " | ".join(f"{error / len(rows):.1f}" for error in errors)
              + f" | {alike} of {told} |")
        totals = [t + e for t, e in zip(totals, errors)]
        count, losses = count + len(rows), losses + sum(r[3] for r in rows)
        alike_all, told_all = alike_all + alike, told_all + told
    print(f"| all | {count} | {losses / count:.1f} | "
          + " | ".join(f"{total / count:.1f}" for total in totals) + f" | {alike_all} of {told_all} |")
    a, b = fit([r for rows in studies.values() for r in rows])
    print(f"\nFitted to all: {a:.2f} times without tuning + {b:.2f} times tuned")


main()
