#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# "Adding things" in CONTRIBUTING.md is true: as many files name one of a kind as it says that adding one touches.
. "$srcdir/tests/lib.sh"
plainly
cd "$srcdir" || exit 99
sources=$(find annotations bundle cuda codec common dataset device load loader network pixels postgres python quality ranks \
    remote report study train transcode volumes configure.ac -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc' -o \
    -name '*.mk' -o -name '*.sh' -o -name '*.py' -o -name '*.pyi' -o -name '*.sql' -o -name '*.txt' -o -name configure.ac)

# named KIND PATTERN [DOCUMENT]: the files that name one of the kind, tests and other documents aside.
named() {
    want=$(sed -n "s/^| $1 | .* | \([0-9]*\) |\$/\1/p" CONTRIBUTING.md)
    [ -n "$want" ] || fail "CONTRIBUTING.md has no row for a new $1"
    # shellcheck disable=SC2086
    grep -lE -i -- "$2" $sources ${3:-} >"$work/files"
    got=$(wc -l <"$work/files")
    echo "a new $1 touches $got files: $(tr '\n' ' ' <"$work/files")"
    [ "$got" -eq "$want" ] || fail "CONTRIBUTING.md says $want for a $1, not $got: $(tr '\n' ' ' <"$work/files")"
}
named codec 'codec_jxl|libjxl'
named container 'container_gulp|packed/gulp|### gulp' docs/formats/datasets.md
named metric 'metric_ms_ssim|ms_ssim\.c|"ms_ssim"|ROW\(ms_ssim\)'
named architecture 'vit_tiny|vit tiny'
named optimizer rmsprop
named augmentation vflip
named "loader option" ahead_bytes
# Its member and its row; what it does is where the run uses it.
named 'option of `dl2-train`' '(^|[^>.])lr_per_epoch|"lr-per-epoch"'
named "option of another program" '"within", 0'
named "section of the report" 'section_survey|X\(survey\)'
named 'goal of the study' 'goal_study_codec|study-codec'
