#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# TABLES and study-tables: quantization tables are fitted before the variants that have them, a network's after its
# training on the original; what they depend on makes them again.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
refused 'TABLES is "nets": pipeline and network, or none alone, are known, not nets' TABLES=nets
refused 'TABLES is "network": it has no effect: CODECS, "webp", has no jpeg' TABLES=network CODECS=webp

expect 0 study QUALITIES=10 RESIZE_SHORTER='20 full' SEEDS=1 study-tables
is "$(cd results/variants && echo *)" "jpeg-10 jpeg-10@20 jpeg_network-10 jpeg_network-10@20 \
jpeg_pipeline-10 jpeg_pipeline-10@20 png@20" 'variants'
[ -f results/train/jpeg_network-10@20/convnet/seed-1/evaluation/evaluation_report.json ] || fail "no matrix"
grep -q '"weights": ".*train/raw/convnet/seed-1/checkpoint' results/tables/network.json || fail "the network"
grep -q '"jpeg_network-10@20"' results/report/report.json || fail "no pictures of the tables"
grep -q 'TABLES=\\"pipeline network\\"' results/report/report.json || fail "the command lacks TABLES"

# In a path with quotes.
expect 0 study OUT="it's here" QUALITIES=10 TABLES=pipeline variants
[ -f "it's here/variants/jpeg_pipeline-10/val/fine/3.jpg" ] || fail "no variant in a path with quotes"

# The same again makes nothing; another input size fits them again, and makes the variants that have them.
touch mark
sleep 0.05
expect 0 study QUALITIES=10 RESIZE_SHORTER='20 full' SEEDS=1 study-tables
is "$(find results/tables results/variants -newer mark -name '*.json')" '' 'made again'
expect 0 study QUALITIES=10 RESIZE_SHORTER='20 full' SEEDS=1 TABLES=pipeline IMAGE_SIZE=12 variants
is "$(find results/tables results/variants -newer mark -name '*.json' | LC_ALL=C sort | xargs)" \
    "results/tables/pipeline.json results/variants/jpeg_pipeline-10/dl2-variant.json \
results/variants/jpeg_pipeline-10@20/dl2-variant.json" 'another input size'
exit 0
