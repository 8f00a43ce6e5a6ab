#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Datasets in an object store: moto's server, which compares signatures. It is not in Debian:
#   python3 -m venv V && V/bin/pip install 'moto[server]' && DL2_S3_PYTHON=V/bin/python make check
. "$srcdir/tests/lib.sh"
[ -n "${DL2_S3_PYTHON:-}" ] || skip "DL2_S3_PYTHON names no Python with moto's server (PyPI)"
"$DL2_S3_PYTHON" -c 'import moto.server, boto3' 2>/dev/null || skip "$DL2_S3_PYTHON lacks moto[server]"
# Older ones compare signatures of decoded addresses, and refuse boto3's, too.
"$DL2_S3_PYTHON" -c 'import moto; assert tuple(map(int, moto.__version__.split(".")[:3])) >= (5, 2, 5)' 2>/dev/null ||
    skip "$DL2_S3_PYTHON has a moto older than 5.2.5, which compares signatures wrongly"
dl2-load check http://127.0.0.1:1/x >"$work/out" 2>&1
! grep -q 'made without libcurl' "$work/out" || skip 'built without libcurl and Expat'
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
for name in $(env | sed -n 's/^\(AWS_[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done
HOME=$work/home
export HOME
mkdir "$HOME"
server=''
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT

# ---- A bucket: a folder, a packed dataset, and names that a signature can stumble over
i=0
for name in train/rose/1 train/rose/2 train/tulip/1 val/rose/1 val/tulip/1; do
    picture "$work/up/folder/$name.ppm" 40 30 $((i += 1))
done
printf '{"caption": "a rose"}' >"$work/up/folder/train/rose/1.json"
: >"$work/up/folder/train/rose/.hidden.ppm"
picture "$work/up/folder-more/train/rose/9.ppm" 40 30 9
for name in 'a b+c&d/1 ü%.ppm' 'q=1;2/x~y_z.ppm' "p'(1)*!/\$@,:.ppm"; do
    picture "$work/up/odd/$name" 40 30 $((i += 1))
done
expect 0 dl2-transcode --quiet copy --container tar "$work/up/folder" "$work/up/tar"
expect 0 dl2-transcode --quiet copy --container tar "$work/up/folder" "$work/up/bare"
rm "$work/up/bare/dl2-index.bin"
n=0
while [ $((n += 1)) -le 1100 ]; do # more than one page of a listing
    mkdir -p "$work/up/many/c$((n % 3))"
    { printf 'P5 1 1 255 '; printf "\\$(printf %03o $((n % 256)))"; } >"$work/up/many/c$((n % 3))/$n.pgm"
done
names=$(cd "$work/up/folder" && find train val -name '[0-9].ppm')
mkdir "$work/up/lists"
echo "$names" | awk -F/ '{ printf "s3://bucket/data/folder/%s,%s,%s\n", $0, $2, $1 }' | sed '1i path,label,split' >"$work/up/lists/whole.csv"
echo "$names" | awk -F/ '{ printf "folder/%s,%s,%s\n", $0, $2, $1 }' | sed '1i path,label,split' >"$work/up/some.lst"
port=$("$DL2_S3_PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# The requests that fill the bucket are not compared with their signatures; all later ones are.
free=$(($(find "$work/up" -type f | wc -l) + 7))
INITIAL_NO_AUTH_ACTION_COUNT=$free "$DL2_S3_PYTHON" -m moto.server -H 127.0.0.1 -p "$port" >"$work/server" 2>&1 &
server=$!
endpoint=http://127.0.0.1:$port
tries=0
until grep -q 'Running on' "$work/server"; do
    [ $((tries += 1)) -lt 1200 ] || { cat "$work/server" >&2; fail 'the server did not start'; }
    sleep 0.1
done
"$DL2_S3_PYTHON" "$srcdir/tests/remote/s3.py" "$endpoint" "$work/up" bucket >"$work/keys" || fail 'no bucket'
{ read -r key secret; read -r skey ssecret stoken; } <"$work/keys"

# ---- Credentials: by the environment, by the files, and of a session
check() { # STATUS ADDRESS
    expect "$1" dl2-load check "$2"
}
as_user() { env AWS_ENDPOINT_URL="$endpoint" AWS_ACCESS_KEY_ID="$key" AWS_SECRET_ACCESS_KEY="$secret" "$@"; }
expect 0 as_user dl2-load check s3://bucket/data/folder
grep -q '5 images, 0 bad' "$work/out" || fail "$(cat "$work/out")"
said 'train 3 images in 2 classes, val 2'
expect 0 env AWS_ENDPOINT_URL_S3="$endpoint" AWS_ACCESS_KEY_ID="$skey" AWS_SECRET_ACCESS_KEY="$ssecret" \
    AWS_SESSION_TOKEN="$stoken" dl2-load check s3://bucket/data/folder
mkdir "$HOME/.aws"
printf '[reader]\naws_access_key_id = %s\naws_secret_access_key = %s\n' "$key" "$secret" >"$HOME/.aws/credentials"
printf '[profile reader]\nregion = eu-central-1\nendpoint_url = %s\n' "$endpoint" >"$HOME/.aws/config"
AWS_PROFILE=reader
export AWS_PROFILE

# ---- The same as from a folder
digest() { sed -n 's/^digest //p' "$work/out"; }
bench() { expect 0 dl2-load bench "$1" --image-size 16 -b 4 --epochs 2 --digest --quiet; }
for what in folder tar odd; do
    bench "$work/up/$what"
    wanted=$(digest)
    bench "s3://bucket/data/$what"
    is "$(digest)" "$wanted" "pixels of $what"
done
check 0 s3://bucket/data/many
grep -q '1100 images, 0 bad' "$work/out" || fail "$(cat "$work/out")"
expect 0 dl2-transcode --quiet copy s3://bucket/data/folder "$work/copy"
expect 0 dl2-transcode --quiet copy "$work/up/folder" "$work/copy-local"
diff -r -x '.dl2-*' "$work/copy" "$work/copy-local" || fail 'other files of a copy'
[ -e "$work/copy/train/rose/1.json" ] || fail 'the copy lacks what lies beside an image'
bench "s3://bucket/data/folder" # fills no cache
expect 0 dl2-load bench s3://bucket/data/folder --image-size 16 -b 4 --epochs 2 --digest --quiet --cache-dir "$work/cache"
wanted=$(digest)
expect 0 dl2-load bench s3://bucket/data/folder --image-size 16 -b 4 --epochs 2 --digest --quiet --cache-dir "$work/cache"
is "$(digest)" "$wanted" 'pixels from the cache'
grep -q 'all of 6 reads of 6' "$work/out" || fail "$(cat "$work/out")"

# ---- Lists: by the listing of their folder, and a request for each file that does not lie below it
bench "$work/up/folder"
wanted=$(digest)
for list in lists/whole.csv some.lst; do
    bench "s3://bucket/data/$list"
    is "$(digest)" "$wanted" "pixels of $list"
done
check 1 s3://bucket/data/lists/none.csv
said 'there is no such list'

# ---- Writing: shards in parts of 8 MiB, the index last
TMPDIR=$work/staging
export TMPDIR
mkdir "$TMPDIR"
for n in 1 2 3; do
    mkdir -p "$work/large/train/rose"
    { printf 'P5 3000 3000 255\n'; head -c 9000000 /dev/urandom; } >"$work/large/train/rose/$n.pgm"
done
expect 0 dl2-transcode --quiet copy --container tar "$work/large" s3://bucket/made/large
check 0 s3://bucket/made/large
grep -q '3 images, 0 bad' "$work/out" || fail "$(cat "$work/out")"
expect 0 dl2-transcode --quiet copy s3://bucket/made/large "$work/large-again"
diff -r -x '.dl2-*' "$work/large" "$work/large-again" || fail 'a shard of several parts came back otherwise'
bench "$work/up/folder"
wanted=$(digest)
for container in gulp tar; do # the second replaces the first
    expect 0 dl2-transcode --quiet copy --container $container "$work/up/folder" s3://bucket/made/small
    bench s3://bucket/made/small
    is "$(digest)" "$wanted" "pixels of a copy as $container"
done
expect 0 dl2-transcode --quiet --q 50 "$work/up/folder" "$work/variants"
expect 0 dl2-transcode --quiet copy --container tar "$work/variants/jpeg-50" s3://bucket/made/jpeg-50
expect 0 dl2-quality "$work/up/folder" s3://bucket/made/jpeg-50
is "$(ls "$TMPDIR")" '' 'what is left where shards are made'
refused() { # STATUS TEXT OPTION... DEST
    wanted=$1 text=$2
    shift 2
    while [ $# -gt 1 ]; do options="$options $1"; shift; done
    # shellcheck disable=SC2086
    expect "$wanted" dl2-transcode --quiet $options "$work/up/folder" "$1"
    said "$text"
    options=
}
options=
refused 2 'add --container=tar' copy s3://bucket/made/other
refused 2 'add --container=tar' --q=50 s3://bucket/made/other
refused 2 'can only be read' --q=50 --container=tar "$endpoint/x"
refused 2 '--prune has no effect' --q=50 --container=tar --prune s3://bucket/made/other
refused 2 'is in the way' copy --container=tar s3://bucket/data/folder
refused 2 'can only be read' copy --container=tar "$endpoint/x"
refused 2 NoSuchBucket copy --container=tar s3://none/x
check 0 s3://bucket/data/folder
# What another program has packed stays, also below DEST; nor is SOURCE written over, whatever its address ends with.
for dest in s3://bucket/data/bare s3://bucket/data s3://bucket/made; do
    refused 2 'is in the way' copy --container=tar $dest
done
for source in s3://bucket/made/large "$endpoint/bucket/made/large"; do
    for dest in s3://bucket/made s3://bucket/made/large/ s3://bucket//made/large/more; do
        expect 2 dl2-transcode --quiet copy --container=tar "$source" "$dest"
        said 'DEST and SOURCE lie in each other'
    done
done
check 0 s3://bucket/made/large
# What is there after a killed run: the mark, and shards without an index. Hidden objects are nobody's.
mkfifo "$work/asked" "$work/told"
AWS_ENDPOINT_URL=$endpoint "$DL2_S3_PYTHON" -c 'import boto3, sys
s3 = boto3.client("s3", region_name="us-east-1")
for line in sys.stdin:
    how, *keys = line.split()
    told = ""
    for key in keys:
        if how == "put":
            s3.put_object(Bucket="bucket", Key=key, Body=b"x")
        elif how == "remove":
            s3.delete_object(Bucket="bucket", Key=key)
        elif how == "show":
            told = " ".join(s3.get_object(Bucket="bucket", Key=key)["Body"].read().decode().split())
        else:
            found = s3.list_objects_v2(Bucket="bucket", Prefix=key).get("Contents", [])
            told = " ".join(sorted(o["Key"][len(key):] for o in found))
    print(told, flush=True)' <"$work/asked" >"$work/told" &
exec 3>"$work/asked" 4<"$work/told"
objects() { # put|remove|show|list KEY...
    echo "$*" >&3
    read -r told <&4
    echo "$told"
}
is "$(objects list made/small/)" 'dl2-index.bin train/classes.txt train/shard-000000.tar val/classes.txt val/shard-000000.tar' 'objects of a packed dataset'
wanted=$(objects list made/small/)
objects put made/small/.dl2-unfinished made/small/.keep made/small/train/ >/dev/null
check 1 s3://bucket/made/small
said 'not written to its end'
objects remove made/small/dl2-index.bin >/dev/null
check 1 s3://bucket/made/small
said 'not written to its end'
expect 0 dl2-transcode --quiet copy --container tar "$work/up/folder" s3://bucket/made/small
check 0 s3://bucket/made/small
is "$(objects list made/small/)" ".keep ${wanted%% *} train/ ${wanted#* }" 'objects after a rerun'
objects put made/small/shard-000007.tar >/dev/null # of another program
refused 2 'is in the way' copy --container=tar s3://bucket/made/small
check 0 s3://bucket/made/small
is "$(ls "$TMPDIR")" '' 'what is left where shards are made'
# Two runs to one prefix: the one that began first finds the mark of the other before it sends anything, and touches nothing of it.
bench "$work/up/folder"
wanted=$(digest)
tries=0
while :; do # until it is stopped before it has sent all
    dl2-transcode --quiet copy --container tar "$work/large" s3://bucket/made/both 2>"$work/first" &
    first=$!
    until [ -n "$(objects list made/both/)" ]; do kill -0 $first || fail "it ended at once: $(cat "$work/first")"; done
    kill -STOP $first 2>/dev/null || :
    there=$(objects list made/both/)
    case $there in *dl2-index.bin*) ;; *) break ;; esac
    [ $((tries += 1)) -lt 10 ] || fail 'a run was never stopped in time'
    kill -CONT $first 2>/dev/null || :
    wait $first || fail "$(cat "$work/first")"
    # shellcheck disable=SC2046
    objects remove $(for name in $there; do echo "made/both/$name"; done) >/dev/null
done
expect 0 dl2-transcode --quiet copy --container tar "$work/up/folder" s3://bucket/made/both
there=$(objects list made/both/)
kill -CONT $first
! wait $first || fail 'a run ended well though another one has written to its prefix'
grep -q 's3://bucket/made/both.*another run has written there since this one began' "$work/first" || fail "$(cat "$work/first")"
is "$(objects list made/both/)" "$there" 'objects after the run that began first'
check 0 s3://bucket/made/both
bench s3://bucket/made/both
is "$(digest)" "$wanted" 'pixels where two runs have written'

# ---- Variants straight into the store: what variants in a folder are, whole or absent, made again where they must be
made() { sed -nE 's/^([a-z]+(-[0-9]+)?) +([0-9]+) +([0-9]+) .*/\1 \4\/\3/p' "$work/out" | tr '\n' ' '; }
variants=$work/variants-tar
expect 0 dl2-transcode --container=tar --q 20,50 "$work/up/folder" "$variants"
expect 0 dl2-transcode --container=tar --q 20,50 --facts "$work/facts" "$work/up/folder" s3://bucket/sweep
is "$(made)" 'jpeg-20 5/5 jpeg-50 5/5 ' 'variants in a store'
grep -q '"complete": true' "$work/facts/jpeg-20/dl2-variant.json" || fail 'no facts of a variant in a store'
is "$(objects list sweep/jpeg-20/)" 'dl2-index.bin dl2-variant.json dl2-variant.jsonl train/classes.txt train/shard-000000.tar val/classes.txt val/shard-000000.tar' 'objects of a variant'
expect 0 dl2-quality --quiet "$work/up/folder" "$variants/jpeg-20" "$variants/jpeg-50"
cp "$work/out" "$work/scores"
expect 0 dl2-quality --quiet --json "$work/quality.json" "$work/up/folder" s3://bucket/sweep/jpeg-20 s3://bucket/sweep/jpeg-50
diff "$work/scores" "$work/out" >&2 || fail 'names or scores of variants in a store'
for place in local:"$variants" store:s3://bucket/sweep; do # the same report of both
    study=$work/study-${place%%:*} place=${place#*:}
    mkdir -p "$study/quality" "$study/load" "$study/report"
    expect 0 dl2-transcode --quiet --container=tar --q 20,50 --facts "$study/variants" "$work/up/folder" "$place"
    for name in jpeg-20 jpeg-50; do
        expect 0 dl2-quality --quiet --json "$study/quality/$name.json" "$work/up/folder" "$place/$name"
        expect 0 dl2-load bench --quiet --image-size 16 --json "$study/load/$name.json" "$place/$name"
    done
    expect 0 dl2-report --quiet --output "$study/report/report.html" "$study"
    expect 0 dl2-train --quiet -j 1 --threads 1 -a convnet --image-size 16 -b 4 -e 1 -d "$place/jpeg-50" --out "$study/run"
    { cat "$study"/report/plots/*.dat
      grep '"variant"\|"name"' "$study/run/experiment_report.json"; } >"$study/facts"
done
grep -q 'jpeg-20' "$study/facts" || fail 'the report lacks a variant'
diff "$work/study-local/facts" "$work/study-store/facts" >&2 || fail 'another report on variants in a store'
bench "$variants/jpeg-50"
wanted=$(digest)
bench s3://bucket/sweep/jpeg-50
is "$(digest)" "$wanted" 'pixels of a variant in a store'
expect 0 dl2-transcode --container=tar --q 20,50 "$work/up/folder" s3://bucket/sweep
is "$(made)" 'jpeg-20 0/5 jpeg-50 0/5 ' 'variants that are there'
objects remove sweep/jpeg-20/train/shard-000000.tar >/dev/null
: >"$work/up/folder/no-image"
expect 0 dl2-transcode --container=tar --q 20,50 "$work/up/folder" s3://bucket/sweep
said 's3://bucket/sweep/jpeg-20: its source has changed, or what is there; all of it is made again'
is "$(made)" 'jpeg-20 5/5 jpeg-50 0/5 ' 'a variant that lacks a shard'
rm -r "$work/facts" "$work/up/folder/no-image"
facts() { objects show "sweep/$1/dl2-variant.json" | tr -d ' ' | grep -o "\"$2\":[^,}]*"; }
is "$(facts jpeg-20 ignored) $(facts jpeg-50 ignored)" '"ignored":1 "ignored":1' 'what the facts say of other files'
expect 0 dl2-transcode --container=gulp --q 50 --restart none "$work/up/folder" s3://bucket/sweep
said 's3://bucket/sweep/jpeg-50: it was made by other settings'
is "$(made)" 'jpeg-50 5/5 ' 'a variant of other settings'
is "$(objects list sweep/jpeg-50/)" 'dl2-index.bin dl2-variant.json dl2-variant.jsonl train/data_0.gulp train/label2idx.json train/meta_0.gmeta val/data_0.gulp val/label2idx.json val/meta_0.gmeta' 'objects after another container'
expect 0 dl2-transcode --container=tar --target psnr_y=30 "$work/up/folder" s3://bucket/sweep
check 0 s3://bucket/sweep/jpeg-psnr_y30
expect 0 dl2-transcode --container=tar --q 50 s3://bucket/sweep/jpeg-20 s3://bucket/sweep
expect 2 dl2-transcode --container=tar --q 20 s3://bucket/sweep/jpeg-20 s3://bucket/sweep
said 'the variant jpeg-20 and SOURCE would lie in each other'
expect 2 dl2-transcode --container=tar --q 20 s3://bucket/data/folder s3://bucket/data/folder/train
said 'would lie in each other'
expect 2 dl2-transcode --container=tar --q 20,50 "$work/up/folder" s3://none/x
said NoSuchBucket

# Clips, sizes, and an image that fails: what is there stays
for n in 1 2 3; do
    picture "$work/clips/rose/one/0000$n.ppm" 24 20 "$n"
    picture "$work/clips/tulip/two/0000$n.ppm" 24 20 "$n"
done
picture "$work/bad/rose/1.ppm" 24 20 1
printf 'P6 24 20 255 cut' >"$work/bad/rose/2.ppm"
for wanted in 6 0; do
    expect 0 dl2-transcode --container=gulp --resize-shorter 16 --q 50 --samples clips "$work/clips" s3://bucket/clips
    grep -q "^jpeg-50@16 *6 *$wanted " "$work/out" || fail "clips in a store: $(cat "$work/out")"
done
expect 0 dl2-transcode identify s3://bucket/clips/jpeg-50@16
grep -q '^clips.2$' "$work/out" || fail "$(cat "$work/out")"
for wanted in 1 0; do
    expect 1 dl2-transcode --container=tar --q 50 "$work/bad" s3://bucket/bad
    said "$work/bad/rose/2.ppm"
    is "$(made)" "jpeg-50 $wanted/1 " 'a variant with an image that fails'
done

# Parts and ranks, which see no folder in common: the images and lines of one process, and nothing besides
lines() { objects show "$1/dl2-variant.jsonl" | sed 's/"[a-z_]*cpu_seconds": *[-0-9.e]*,*//g'; }
like_one() { # WHAT PREFIX
    for name in jpeg-20 jpeg-50; do
        expect 0 dl2-transcode --quiet copy "s3://bucket/$2/$name" "$work/of-$2/$name"
        diff -r -x 'dl2-variant.json*' -x '.dl2-*' "$work/of-one/$name" "$work/of-$2/$name" >&2 || fail "images of $1, $name"
        is "$(lines "$2/$name")" "$(lines "one/$name")" "lines of $1, $name"
        case $(lines "$2/$name") in *'"key":"train/rose/1"'*) ;; *) fail "no lines of $1: $(lines "$2/$name")" ;; esac
        is "$(objects list "$2/$name/")" "$(objects list "one/$name/")" "objects of $1"
    done
    is "$(objects list "$2/.dl2-parts/")" '' "what $1 left in the store"
    is "$(ls "$TMPDIR")" '' "what $1 left where images wait"
}
part() { expect 0 dl2-transcode --quiet -j 1 --container=tar --q 20,50 --part "$1" "$work/up/folder" "s3://bucket/$2"; }
expect 0 dl2-transcode --quiet --container=tar --q 20,50 "$work/up/folder" s3://bucket/one
for name in jpeg-20 jpeg-50; do expect 0 dl2-transcode --quiet copy "s3://bucket/one/$name" "$work/of-one/$name"; done
part 2/3 apart
grep -q 'part 2/3 has ended; 2 of 3 parts are missing, the first is 1/3' "$work/out" || fail "$(cat "$work/out")"
is "$(objects list apart/jpeg-20/)" '' 'a variant before all parts'
part 3/3 apart
grep -q '1 of 3 parts are missing, the first is 1/3' "$work/out" || fail "$(cat "$work/out")"
part 1/3 apart
grep -q 'and the variants are complete' "$work/out" || fail "$(cat "$work/out")"
like_one 'three parts' apart
part 1/3 apart
is "$(made)" 'jpeg-20 0/5 jpeg-50 0/5 ' 'a part of what is complete'
expect 0 dl2-transcode --quiet -j 1 --container=tar --q 20,50 --ranks 2 "$work/up/folder" s3://bucket/ranks
like_one 'two ranks' ranks
parts=''
for i in 1 2 3; do
    dl2-transcode --quiet -j 1 --container=tar --q 20,50 --part $i/3 "$work/up/folder" s3://bucket/atonce >"$work/part.$i" 2>&1 &
    parts="$parts $!"
done
for part in $parts; do wait "$part" || fail "a part of three: $(cat "$work"/part.?)"; done
grep -q 'and the variants are complete' "$work"/part.? || fail "no part of three completes: $(cat "$work"/part.?)"
is "$(grep -c '"PUT /bucket/atonce/jpeg-50/dl2-variant.json ' "$work/server")" 1 'parts of three that completed a variant'
like_one 'three parts at once' atonce

# Killed while a variant of other settings takes the place of one: absent, for every reader, until the next run.
printf 'sleep "$1"; cp "$2" "$3"\n' >"$work/slow"
slow_codec() { # SECONDS: copies a PNG
    printf 'copy=sh %s %s %%i %%o; cp %%i %%o' "$work/slow" "$1"
}
at=s3://bucket/sweep/copy
expect 0 dl2-transcode --quiet --container=tar --shard 1 --codec "$(slow_codec 0)" "$work/large" s3://bucket/sweep
expect 0 dl2-load check $at --decoder 'copy=cp %i %o'
dl2-transcode --quiet --container=tar --shard 1 -j 1 --codec "$(slow_codec 0.7)" "$work/large" s3://bucket/sweep 2>"$work/killed" &
writer=$!
tries=0
until case $(objects list sweep/copy/) in .dl2-unfinished*shard-000000.tar*) true ;; *) false ;; esac; do
    sleep 0.1
    [ $((tries += 1)) -lt 200 ] && kill -0 $writer 2>/dev/null || fail "nothing was sent: $(cat "$work/killed")"
done
kill -9 $writer || fail 'the run ended before it was killed'
wait $writer
grep -q 'made by other settings' "$work/killed" || fail "$(cat "$work/killed")"
expect 1 dl2-load check $at --decoder 'copy=cp %i %o'
said 'not written to its end'
expect 1 dl2-quality "$work/large" $at --decoder 'copy=cp %i %o'
said 'not written to its end'
rm -rf "$TMPDIR"/dl2-upload-*
for wanted in 3 0; do
    expect 0 dl2-transcode --container=tar --shard 1 --codec "$(slow_codec 0)" "$work/large" s3://bucket/sweep
    is "$(made)" "copy $wanted/3 " 'images that a run after a killed one has made'
done
expect 0 dl2-load check $at --decoder 'copy=cp %i %o'
is "$(objects list sweep/copy/ | tr ' ' '\n' | grep -c shard-)" 3 'shards after a killed run'
is "$(ls "$TMPDIR")" '' 'what is left where shards are made'
unset TMPDIR

# ---- What is wrong has its name, its status, and what to do; secrets stay secret
for case in "bucket/data/none:has no object below" "none/data:NoSuchBucket" \
    "bucket/data/bare:without its dl2-index.bin"; do
    check 1 "s3://${case%%:*}"
    said "${case#*:}"
done
expect 1 env AWS_ACCESS_KEY_ID="$key" AWS_SECRET_ACCESS_KEY=s3cret dl2-load check s3://bucket/data/folder
for text in "s3://bucket/data/folder at $endpoint" "status 403 SignatureDoesNotMatch" "(request " AWS_SECRET_ACCESS_KEY; do
    said "$text"
done
! grep -q s3cret "$work/out" "$work/err" || fail "the secret is printed: $(cat "$work/err")"
expect 1 env AWS_PROFILE=nobody dl2-load check s3://bucket/data/folder
said "names the profile 'nobody'"
exit 0
