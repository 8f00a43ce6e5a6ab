#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# External codecs whose programs stay between images: pixels come back, one program a worker, none is left; what goes wrong
# with one is said, and the next image has a new one.
. "$srcdir/tests/lib.sh"
[ -n "${PYTHON3:-}" ] || skip "python3 is not installed"
images=$builddir/tests/transcode/images
TMPDIR=$work/tmp && mkdir "$TMPDIR" && export TMPDIR || exit 99
run() { # STATUS ARGUMENTS...
    status=$1
    shift
    expect "$status" dl2-transcode --quiet -j 2 "$@"
    left
}
# No folder, and no program: each of ours has noted its number.
left() {
    [ -z "$(ls "$TMPDIR")" ] || fail "files are left behind: $(ls "$TMPDIR"/*)"
    for pid in $(cat "$work/pids" 2>/dev/null); do
        ! kill -0 "$pid" 2>/dev/null || fail "a program is left running: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done
}
field() { sed -n 's/^ *"'"$2"'": "\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' "$work/$1/dl2-variant.json" | head -n 1; }
"$images" tree "$work/src" 20 || exit 99
# The example's codec, which loses nothing at quality 100, with a note of each start; FAULT is what goes wrong.
cat >"$work/codec.py" <<PY
import os, sys, time
sys.path.insert(0, os.path.join("$srcdir" if os.path.isabs("$srcdir") else os.path.join("$PWD", "$srcdir"), "examples"))
import pipe_codec
with open("$work/pids", "a") as file:
    file.write("%d\n" % os.getpid())
fault, count = sys.argv.pop(1) if sys.argv[1:] and not sys.argv[1].startswith("-") else "", 0
right = pipe_codec.encode, pipe_codec.decode
def wrong(kind):
    def faulty(*arguments):
        global count
        count += 1
        result = right[kind](*arguments)
        if fault == "dies" and count == 3:
            print("no such luck", file=sys.stderr, flush=True)
            os._exit(3)
        if fault == "hangs":
            print("waiting", file=sys.stderr, flush=True)
            time.sleep(1000)
        if fault == "refuses" and count % 2 == 0:
            raise ValueError("too\nodd an image")
        if fault == "chats":
            result = right[kind](*arguments)
            sys.stdout.buffer.write(b"ok %d %d\n" % (count, len(result)) + result)
            return b"ok" # a second answer to one request
        if fault in ("babbles", "long"):
            sys.stdout.buffer.write(b"hello\n" if fault == "babbles" else b"x" * 1000)
        return result[:-1] if fault == "short" else b"" if fault == "nothing" else result
    return faulty
pipe_codec.encode, pipe_codec.decode = wrong(0), wrong(1)
pipe_codec.main()
PY
codec="pipe:$PYTHON3 -B $work/codec.py"
both() { printf 'kept=%s%s; %s' "$codec" "${1:+ $1}" "$codec"; }

# ---- Every pixel comes back, through every program; one program a worker
run 0 --codec "ppm,$(both)" --q 100 "$work/src" "$work/v"
is "$(field v/kept-100 codec) $(field v/kept-100 images) $(field v/kept-100 image)" 'kept 20 pixels' 'a variant'
[ "$(wc -l <"$work/pids")" -le 2 ] || fail "$(wc -l <"$work/pids") programs for 20 images and two workers"
grep -q "codec.py ([0-9]* bytes, modified" "$work/v/kept-100/dl2-variant.json" || fail 'no version of the program'
awk -v s="$(field v/kept-100 encode_cpu_seconds)" 'BEGIN { exit !(s > 0) }' || fail 'its CPU time is not counted'
: >"$work/pids"
expect 0 dl2-quality --quiet -j 2 --decoder "kept=$codec" --csv "$work/q.csv" "$work/src" "$work/v/kept-100"
is "$(grep -c ',scored,.*,1,' "$work/q.csv")" 20 "lossless images"
[ "$(wc -l <"$work/pids")" -le 2 ] || fail "$(wc -l <"$work/pids") programs score 20 images"
left
: >"$work/pids"
expect 0 dl2-transcode --quiet survey -j 2 --decoder "kept=$codec" "$work/v/kept-100"
expect 0 dl2-transcode --quiet fit-tables -j 2 --input-size 16 --decoder "kept=$codec" "$work/v/kept-100" "$work/tables.json"
[ "$(wc -l <"$work/pids")" -le 4 ] || fail "$(wc -l <"$work/pids") programs for a survey and fitted tables"
left
: >"$work/pids"
expect 0 dl2-load bench --quiet -j 2 -i 16 -e 3 --digest --decoder "kept=$codec" "$work/v/kept-100"
digest=$(grep '^digest' "$work/out")
[ "$(wc -l <"$work/pids")" -le 2 ] || fail "$(wc -l <"$work/pids") programs load three epochs"
left
expect 0 dl2-load bench --quiet -j 2 -i 16 -e 3 --digest "$work/v/ppm"
is "$digest" "$(grep '^digest' "$work/out")" 'what is loaded'
run 0 --codec ppm --decoder "kept=$codec" "$work/v/kept-100" "$work/back"
is "$(cat "$work/back/ppm/train/rose/0001.ppm" | cksum)" "$(cat "$work/v/ppm/train/rose/0001.ppm" | cksum)" 'pixels of a source'
# Qualities are the program's; a rerun makes nothing, another program everything.
run 0 --codec "$(both)" --q 20,60 "$work/src" "$work/v"
[ "$(field v/kept-20 bytes)" -lt "$(field v/kept-60 bytes)" ] || fail 'qualities of no effect'
run 0 --codec "$(both)" --q 20 "$work/src" "$work/v"
is "$(awk '$1 == "kept-20" { print $3 }' "$work/out")" 0 'made again'
touch -d 2001-01-01 "$work/codec.py"
run 0 --codec "$(both)" --q 20 "$work/src" "$work/v"
is "$(awk '$1 == "kept-20" { print $3 }' "$work/out")" 20 'made by another program'

# ---- What goes wrong, in encoding and in decoding
fails() { # FAULT MADE MESSAGE [OPTIONS...]
    fault=$1 made=$2 message=$3
    shift 3
    rm -rf "$work/bad"
    run 1 --codec "$(both "$fault")" --q 100 -j 1 "$@" "$work/src" "$work/bad"
    said "$message"
    is "$(awk '$1 == "kept-100" { print $3 }' "$work/out")" "$made" "made although it $fault"
}
fails dies 14 "$PYTHON3 ended before it had answered: no such luck"
fails hangs 0 "$PYTHON3 did not answer in time, and was killed: waiting" --external-timeout 0.2
fails refuses 10 'too odd an image'
fails babbles 0 "its answer is neither 'ok 1 SIZE' nor 'error 1 MESSAGE': 'hello'"
fails chats 10 "its answer is neither 'ok 2 SIZE' nor 'error 2 MESSAGE': 'ok 1 2'"
fails long 0 'answered with too long a line'
fails nothing 0 "its answer is neither 'ok 1 SIZE' nor 'error 1 MESSAGE': 'ok 1 0'"
decodes() { # FAULT MESSAGE [OPTIONS...]
    fault=$1 message=$2
    shift 2
    expect 1 dl2-load check --quiet -j 1 --decoder "kept=$codec $fault" "$@" "$work/v/kept-100"
    said "$message"
    left
}
decodes dies "kept: $PYTHON3 ended before it had answered: no such luck"
grep -q '^check:\|20 images, 6 bad' "$work/out" "$work/err" || fail "each third image: $(cat "$work/out")"
decodes hangs 'did not answer in time' --external-timeout 0.2
decodes refuses 'kept: too odd an image'
decodes short 'bytes of pixels, and the image has'
expect 1 dl2-load check --quiet --decoder 'kept=pipe:nowhere/program' "$work/v/kept-100"
emulated || said 'nowhere/program cannot be run'
left

# ---- One process for all workers, which computes what waits together
cat >"$work/shared.py" <<PY
import os, sys, time
sys.path.insert(0, "$work")
sys.argv[1:] = ["--listen", "$work/socket"]
sys.path.insert(0, os.path.join("$srcdir" if os.path.isabs("$srcdir") else os.path.join("$PWD", "$srcdir"), "examples"))
import pipe_codec
compute = pipe_codec.compute
def slow(batch):
    time.sleep(0.1) # others come to wait
    with open("$work/batches", "a") as file:
        file.write("%d\n" % len(batch))
    return compute(batch)
pipe_codec.compute = slow
pipe_codec.main()
PY
begin_shared() {
    rm -f "$work/socket" "$work/batches"
    "$PYTHON3" -B "$work/shared.py" &
    shared=$!
    tries=0
    until [ -S "$work/socket" ]; do
        [ $((tries += 1)) -lt 600 ] || fail 'the process that is shared does not listen'
        sleep 0.05
    done
}
connect="$codec --connect $work/socket"
begin_shared
run 0 -j 4 --codec "kept=$connect; $connect" --q 20 "$work/src" "$work/shared"
diff -r "$work/v/kept-20/train" "$work/shared/kept-20/train" || fail 'other bytes by one process for all'
sort -n "$work/batches" | tail -n 1 | grep -qx '[2-4]' || fail "batches of $(sort -n "$work/batches" | tail -n 1) for four workers"
is "$(awk '{ n += $1 } END { print n }' "$work/batches")" 20 'images in batches'
kill -KILL $shared
wait $shared 2>/dev/null
run 1 -j 4 --codec "kept=$connect; $connect" --q 60 "$work/src" "$work/shared"
said 'ended before it had answered'
begin_shared
run 0 -j 4 --codec "kept=$connect; $connect" --q 60 "$work/src" "$work/shared"
diff -r "$work/v/kept-60/train" "$work/shared/kept-60/train" || fail 'other bytes after a failure'
kill $shared
wait $shared 2>/dev/null

# ---- A codec of PyPI
python=${DL2_PEER_PYTHON:-$PYTHON3}
if "$python" -c 'import imagecodecs, numpy, sys; sys.exit(not imagecodecs.JPEGXR.available)' 2>/dev/null; then
    xr="pipe:$python -B $(cd "$srcdir" && pwd)/examples/pipe_codec.py --jpegxr"
    run 0 --codec "jpegxr=$xr; $xr" --q 30,90 "$work/src" "$work/xr"
    [ "$(field xr/jpegxr-30 bytes)" -lt "$(field xr/jpegxr-90 bytes)" ] || fail 'JPEG XR: qualities of no effect'
    expect 0 dl2-quality --quiet --decoder "jpegxr=$xr" --csv "$work/q.csv" "$work/src" "$work/xr/jpegxr-90"
    is "$(grep -c ',scored,' "$work/q.csv")" 20 "images of JPEG XR"
else
    echo 'not tried: JPEG XR (PyPI: imagecodecs, numpy)'
fi

# ---- Whatever ends the program ends those that stay
for signal in TERM KILL; do
    : >"$work/pids"
    env --default-signal dl2-transcode --quiet -j 2 --codec "$(both hangs)" --q 100 "$work/src" "$work/killed" >"$work/out" 2>"$work/err" &
    program=$!
    tries=0
    while [ "$(wc -l <"$work/pids")" -lt 2 ]; do
        [ $((tries += 1)) -lt 300 ] || { cat "$work/err" >&2; fail 'the programs do not run'; }
        sleep 0.1
    done
    kill -$signal "$program"
    wait "$program"
    tries=0
    while [ "$(ls "$TMPDIR")" ] || for pid in $(cat "$work/pids"); do kill -0 "$pid" 2>/dev/null && break; done; do
        [ $((tries += 1)) -lt 100 ] || left
        sleep 0.1
    done
    rm -rf "$work/killed"
done

# ---- Wrong usage
run 2 --codec 'x=pipe:cat %i; pipe:cat' "$work/src" "$work/x"
said 'a program that stays has no placeholders'
run 2 --codec 'x=pipe:; pipe:cat' "$work/src" "$work/x"
expect 2 dl2-load check --decoder 'x=pipe:' "$work/v/kept-100"
[ ! -e "$work/x" ] || fail 'DEST was made for nothing'
