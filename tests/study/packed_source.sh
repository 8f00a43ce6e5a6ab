#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Studies of packed datasets: the variants are a folder's, and are made again when the samples change, not when a
# file is merely written. And what addresses of tables may hold, which needs no server.
. "$srcdir/tests/lib.sh"
plainly
. "$srcdir/tests/study/study_lib.sh"
small() { study QUALITIES=50 SEEDS=1 ROUNDS=1 "$@"; }
stamp() { sleep 0.05; touch mark; sleep 0.05; }
made() { find "$1" -newer mark -type f ! -path '*/.make/*' ! -path '*/report/*' ! -path '*/study-plan.json' ! -name log | LC_ALL=C sort; }
pack() { rm -rf "$1"; expect 0 dl2-transcode --quiet copy --container="$1" data "$1"; }
fingerprint() { expect 0 dl2-transcode identify "$1"; sed -n 's/^fingerprint	//p' "$work/out"; }

mv data/train/fine/1.png 'data/train/fine/a b.png'
expect 0 small variants
for container in tar gulp; do
    pack $container
    expect 0 small DATASET=$container OUT=of-$container variants
    diff -r -x 'dl2-variant.*' results/variants of-$container/variants || fail "variants of $container are not a folder's"
done

# ---- A whole study of tar shards
expect 0 small DATASET=tar OUT=of-tar
grep -q '"title": ".*tar.*"' of-tar/report/report.json || fail "the report is not called after the shards"
grep -qF "DATASET=$work/tar" of-tar/report/report.html || fail "the command names no shards"
expect 0 dl2-transcode --quiet index tar
stamp
expect 0 small DATASET=tar OUT=of-tar
[ -z "$(made of-tar)" ] || fail "made again: $(made of-tar)"
before=$(fingerprint tar)
rm data/val/coarse/1.png
cp data/val/fine/1.png data/val/coarse/2.png
pack tar
[ "$(fingerprint tar)" != "$before" ] || fail "the fingerprint of changed shards"
expect 0 small DATASET=tar OUT=of-tar train
[ ! -e of-tar/variants/jpeg-50/val/coarse/1.jpg ] || fail "an image that left the shards stayed in the variant"
is "$(made of-tar | grep -c experiment_report)" 2 "trainings on changed shards"

# ---- One file
cp -R data/train all && expect 0 dl2-transcode --quiet copy --container=tar all one || exit 99
expect 0 small DATASET=one/shard-000000.tar OUT=of-one variants
[ -f of-one/variants/jpeg-50/fine/2.jpg ] || fail "no variant of one file"

# ---- Addresses: nothing is made, no password is told
for address in postgresql://me:secret@host/db?table=x 'postgres://host/db?table=x&password=secret' \
    'postgresql:///db?sslpassword=secret&table=x'; do
    for variable in DATASET VARIANTS; do
        refused "$variable is \"postgres" $variable="$address"
        said "it has a password"
        ! grep -q secret "$work/err" "$work/out" || fail "a password is shown: $(cat "$work/err")"
    done
done
refused 'VARIANTS is "elsewhere": name a table' VARIANTS=elsewhere
refused ': dl2-transcode: ' DATASET="postgresql:///db?table=x&host=$work/no-server"
refused 'STORAGES is "disk": a server keeps tables' VARIANTS='postgresql:///db?table=x' STORAGES=disk study-loading
exit 0
