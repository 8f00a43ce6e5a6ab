#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# dl2-report --latex: each plot's files are there, texts are LaTeX's, and the document of all of them compiles.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/report/make_study.sh"
study=$work/study plots=$work/latex
two_jpegs "$study"
variant "$study" jpeg_444-50 jpeg 50 2500000 31.5 0.93 2800
trainings "$study" jpeg-10 small 0.601 0.602 0.603
trainings "$study" jpeg-50 small 0.690 0.702 0.703
trainings "$study" jpeg_444-50 small 0.690 0.702 0.704

# What has no effect, and what cannot be drawn, is an error.
expect 2 dl2-report decide --latex "$plots" "$study"
said '--latex is not an option of the command decide, but of page'
load "$work/bare" raw 900
expect 1 dl2-report --latex "$plots" "$work/bare" -o "$work/bare.html"
said '--latex has no effect: there are no plots'
expect 1 dl2-report --gnuplot "$work/none" --latex "$plots" "$study" -o "$work/report.html"
said 'it takes gnuplot with the terminal cairolatex'

command -v gnuplot >/dev/null 2>&1 || skip "gnuplot is not installed (Debian: gnuplot-nox)"
gnuplot -e 'set terminal cairolatex pdf' 2>/dev/null || skip "gnuplot has no terminal cairolatex"
expect 0 dl2-report --latex "$plots" "$study" -o "$work/page/report.html"
count=0
for script in "$work"/page/plots/*.gp; do
    name=$(basename "$script" .gp)
    for extension in dat gp tex pdf; do
        [ -s "$plots/$name.$extension" ] || fail "no $name.$extension"
    done
    cmp "$script" "$plots/$name.gp" >/dev/null && fail "$name.gp is the page's"
    cmp "${script%.gp}.dat" "$plots/$name.dat" || fail "$name.dat has other data than the page's"
    grep -qF "\\input{$name}" "$plots/figures.tex" || fail "figures.tex lacks $name"
    count=$((count + 1))
done
[ "$count" -gt 5 ] || fail "only $count plots"
is "$(grep -c '\\input' "$plots/figures.tex")" "$count" "plots in figures.tex"
grep -qF 'jpeg\_444' "$plots/accuracy-bytes-small.tex" || fail "a name is not escaped"
grep -qF 'bytes, \%' "$plots/accuracy-bytes-small.tex" || fail "a percent sign is not escaped"
(cd "$plots" && rm rate-ssim.tex && gnuplot rate-ssim.gp && [ -s rate-ssim.tex ]) || fail "rate-ssim.gp can't be run by hand"

command -v pdflatex >/dev/null 2>&1 || skip "the files are complete; pdflatex is not installed (Debian: texlive-latex-base)"
(cd "$plots" && pdflatex -interaction=nonstopmode -halt-on-error figures.tex >"$work/pdflatex" 2>&1) ||
    { tail -n 30 "$work/pdflatex" >&2; fail "figures.tex does not compile"; }
[ -s "$plots/figures.pdf" ] || fail "no figures.pdf"
exit 0
