#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Datasets behind HTTP: nginx serves them, and a proxy in front of it does what networks do on bad
# days. What is read is right, or an error says what is wrong.
. "$srcdir/tests/lib.sh"
expect 0 dl2-load --version
dl2-load check http://127.0.0.1:1/x >"$work/out" 2>&1
! grep -q 'made without libcurl' "$work/out" || skip 'built without libcurl and Expat'
dl2-transcode --version | grep -q '^  jpeg:' || skip 'built without libjpeg'
for nginx in "$(command -v nginx)" /usr/sbin/nginx; do [ ! -x "$nginx" ] || break; done
[ -x "$nginx" ] || skip 'nginx is not installed (Debian: nginx-light)'
need_python asyncio python3
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY CURL_CA_BUNDLE SSL_CERT_FILE
server='' proxy=''
trap 'kill $server $proxy 2>/dev/null; chmod -R u+rwX "$work" 2>/dev/null; rm -rf "$work"' EXIT

# ---- The servers
mkdir "$work/www" "$work/proxy" "$work/n"
free_port() { "$PYTHON3" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
port=$(free_port)
# HTTPS with a certificate that no authority has signed; HTTP/2, too.
secure=''
if command -v openssl >/dev/null 2>&1 && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null; then
    secure=$(free_port) secure2=$(free_port)
    https="listen 127.0.0.1:$secure ssl; listen 127.0.0.1:$secure2 ssl http2; ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;"
else
    echo 'HTTPS is not tried: openssl is not installed, or makes no certificate'
fi
cat >"$work/nginx.conf" <<END
daemon off; pid $work/n/pid; worker_processes 1; error_log $work/n/error;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path $work/n/1; proxy_temp_path $work/n/2; fastcgi_temp_path $work/n/3;
    uwsgi_temp_path $work/n/4; scgi_temp_path $work/n/5;
    server { listen 127.0.0.1:$port; ${https:-} root $work/www; location /secret/ { return 403; } }
}
END
chmod 755 "$work" # nginx may run as another user
"$nginx" -p "$work/n" -e "$work/n/error" -c "$work/nginx.conf" &
server=$!
"$PYTHON3" "$srcdir/tests/remote/proxy.py" "$port" "$work/proxy" &
proxy=$!
tries=0
until [ -s "$work/proxy/port" ] && [ -s "$work/n/pid" ]; do
    [ $((tries += 1)) -lt 100 ] || { cat "$work/n/error" >&2; fail 'the servers did not start'; }
    sleep 0.1
done
at=http://127.0.0.1:$(cat "$work/proxy/port")
fault() { echo "$*" >"$work/proxy/fault"; }
asked() { grep -c "$1" "$work/proxy/log"; }

# ---- Datasets
i=0
for name in train/rose train/tulip val/rose val/tulip; do
    for n in 1 2 3 4 5 6; do picture "$work/noise/$name/$n.ppm" 256 192 $((i += 1)); done
done
expect 0 dl2-transcode --quiet --container tar --q 85 "$work/noise" "$work/made"
mv "$work/made/jpeg-85" "$work/www/tar"
expect 0 dl2-transcode --quiet copy --container gulp "$work/www/tar" "$work/www/g u"
digests() { # BASE GULP: the same pixels, whole and cut
    for what in tar gulp "tar --val" "tar --io threads" "tar --io direct" "tar --whole"; do
        place=tar
        [ "$what" != gulp ] || place=$2
        more=${what#"${what%% *}"}
        # shellcheck disable=SC2086
        expect 0 dl2-load bench "$1/$place" --image-size 32 -b 4 --epochs 2 --digest --quiet $more
        echo "$what: $(sed -n 's/^digest //p' "$work/out")" >>"$work/found"
    done
    mv "$work/found" "$work/digests$3"
}
digests "$work/www" "g u" ""
digests "$at" "g%20u" -remote
cmp "$work/digests" "$work/digests-remote" || fail 'other pixels over HTTP'
if [ -n "$secure" ]; then
    expect 1 dl2-load check "https://127.0.0.1:$secure/tar"
    said 'the certificates of a private authority are in the file that CURL_CA_BUNDLE names'
    CURL_CA_BUNDLE=$work/none expect 1 dl2-load check "https://127.0.0.1:$secure/tar"
    said 'which CURL_CA_BUNDLE names: it'
    for variable in CURL_CA_BUNDLE SSL_CERT_FILE; do
        (export "$variable=$work/cert.pem" && digests "https://127.0.0.1:$secure" "g%20u" -https) || exit 1
        cmp "$work/digests" "$work/digests-https" || fail 'other pixels over HTTPS'
        secure=$secure2
    done
fi
wanted=$(sed -n 's/^tar: //p' "$work/digests")
bench() { # STATUS OPTIONS...
    status=$1
    shift
    expect "$status" dl2-load bench "$at/tar" --image-size 32 -b 4 --epochs 2 --ahead 2 --digest --quiet "$@"
}
right() { is "$(sed -n 's/^digest //p' "$work/out")" "$wanted" "pixels with $1"; }
repeated() { sed -n 's/.*requests, \([0-9]*\) of them sent again/\1/p' "$work/out"; }

# Crops are read in part.
bench 0 --json "$work/json"
"$PYTHON3" - "$work/json" <<'END' || fail 'the report on requests'
import json, sys
report = json.load(open(sys.argv[1]))
remote = report["remote"]
sys.exit(not (remote["requests"] > 0 and remote["bytes"] > 0 and remote["retries"] == 0))
END

# ---- Faults that pass: nothing is wrong, and requests were sent again
for what in "reset 3" "truncated 3" "short 3" "shifted 3" "busy 20" "stall 20"; do
    fault "$what"
    bench 0 --request-limit 1
    right "$what"
    [ "$(repeated)" -gt 0 ] || { cat "$work/out" "$work/proxy/log" >&2; fail "no request was sent again with $what"; }
done
fault wrong 7 # check sums find it
bench 0
right "wrong bytes"
fault redirect
bench 0
right "a redirection to another host"
fault latency
bench 0
right latency
# A server that does not know how large files are: an index that is larger than what is asked for first, too.
fault star
bench 0
right 'unknown sizes'
mkdir "$work/noise/long" && cp "$work/noise/train/rose/1.ppm" "$work/noise/long/$(printf '%0200d' 1).ppm"
for n in $(seq 2 400); do ln "$work/noise/long/$(printf '%0200d' 1).ppm" "$work/noise/long/$(printf '%0200d' "$n").ppm"; done
expect 0 dl2-transcode --quiet copy --container tar "$work/noise/long" "$work/www/long"
rm -r "$work/noise/long"
[ "$(wc -c <"$work/www/long/dl2-index.bin")" -gt 65536 ] || fail 'an index that one request reads'
expect 0 dl2-load check "$at/long"
grep -q '400 images, 0 bad' "$work/out" || fail 'images of a large index'
fault ''

# ---- Faults that stay: each has its name
for case in "changed 1 .tar:the file was changed while it was read" "norange 1 .tar:the server cannot read parts of files" \
    "grown 1 .tar:the file has 99999999 bytes" "loop:redirects"; do
    fault "${case%%:*}"
    bench 1
    said "${case#*:}"
    said "$at/tar/"
done
fault ''
for case in "$at/tar/train:there is no dl2-index.bin, and HTTP cannot list a folder" \
    "$at/secret:status 403" "http://127.0.0.1:1/x:tried 3 times" "http://nowhere.invalid/x:tried 3 times" \
    "$at/tar/train/shard-000000.tar:give the address of the folder" "$at/tar?x=1:write %3F"; do
    expect 1 dl2-load check "${case%:*}"
    said "${case##*:}"
done
for address in http://me:s3cret@127.0.0.1/a https://s3cret@127.0.0.1/a; do
    expect 1 dl2-load check "$address"
    said '***'
    ! grep -q s3cret "$work/out" "$work/err" || fail "the password is printed: $(cat "$work/err")"
done
expect 1 dl2-load bench "$work/www/tar" -b 4 --cache-dir "$work/cache"
said "have an effect on http://"
bench 1 --cache-dir-size 1G
said "no effect without its folder"
bench 1 --io uring
said "is read by requests"
bench 1 --cold
said "nothing to evict"

# Requests in their limit: a server that fails for good is given up in two limits or 10 s, and not in a minute; one that
# never answers is given up.
fault broken 1 .tar
expect 1 timeout 45 dl2-load bench "$at/tar" --image-size 32 -b 4 --quiet --request-limit 1
said 'status 500'
fault stall
expect 1 dl2-load check "$at/tar" --request-limit 0.3
said "--request-limit"

# ---- The cache: a second process asks for the index, and for what each shard is; what is damaged is read again
fault ''
bench 0 --cache-dir "$work/cache" --epochs 8
: >"$work/proxy/log"
bench 0 --cache-dir "$work/cache"
right "a cache"
[ "$(asked ' 206 ')" -le 8 ] || fail "requests in spite of the cache: $(cat "$work/proxy/log")"
find "$work/cache" -type f | while read -r entry; do printf X | dd of="$entry" bs=1 seek=150 conv=notrunc 2>/dev/null; done
bench 0 --cache-dir "$work/cache"
right "a damaged cache"
grep -q 'entries of --cache-dir, which were read again' "$work/out" || fail "$(cat "$work/out")"
fault wrong 9 .tar # does not stay in the cache
rm -rf "$work/cache"
bench 0 --cache-dir "$work/cache" --epochs 4
fault ''
bench 0 --cache-dir "$work/cache"
right "a cache that was given wrong bytes"
bench 0 --cache-dir "$work/cache" --cache-dir-size 40k
right "a small cache"
size=$(find "$work/cache" -type f -size +0 | xargs du -ck | tail -1 | cut -f 1)
[ "$size" -le 100 ] || fail "$size KiB in a cache of 40"

# ---- Lists: the same file, the same dataset, from this machine and from the server
mkdir "$work/www/lists"
cp -r "$work/noise" "$work/www/lists/no ise"
(cd "$work/www/lists" && find 'no ise' -name '*.ppm') | awk -F/ '
    BEGIN { print "path,label,split" } { printf "%s,%s,%s\n", $0, $3, $2 }' >"$work/www/lists/a b.csv"
identify() { dl2-transcode identify "$1" | grep -v '^name\|^fingerprint'; }
is "$(identify "$at/lists/a%20b.csv")" "$(identify "$work/www/lists/a b.csv")" 'a list behind HTTP'
listed() { # LIST OPTIONS...
    expect 0 dl2-load bench "$@" --image-size 32 -b 4 --epochs 2 --digest --quiet
    sed -n 's/^digest //p' "$work/out"
}
wanted=$(listed "$work/www/lists/a b.csv")
is "$(listed "$at/lists/a%20b.csv")" "$wanted" 'pixels of a list'
is "$(listed "$at/lists/a%20b.csv" --cache-dir "$work/list-cache")" "$wanted" 'pixels of a list, to a cache'
is "$(listed "$at/lists/a%20b.csv" --cache-dir "$work/list-cache")" "$wanted" 'pixels of a list, from a cache'
# Whole addresses, also of what does not lie below the list
mkdir "$work/www/lists/deep"
awk -F/ -v at="$at" 'NR == 1 { print; next } { sub(/no ise/, at "/lists/no%20ise"); print }' "$work/www/lists/a b.csv" >"$work/www/lists/deep/whole.csv"
cp "$work/www/lists/deep/whole.csv" "$work/www/whole.csv"
for list in lists/deep/whole.csv whole.csv; do
    expect 0 dl2-load check "$at/$list"
    grep -q '24 images, 0 bad' "$work/out" || fail "$(cat "$work/out")"
done
expect 0 dl2-transcode --quiet --codec ppm "$at/whole.csv" "$work/of-list"
cmp "$work/of-list/ppm/train/rose/lists/no ise/train/rose/1.ppm" "$work/noise/train/rose/1.ppm" || fail 'an image of a list'
made() { awk '/^ppm/ { print $3 }' "$work/out"; }
expect 0 dl2-transcode --codec ppm "$at/whole.csv" "$work/of-list"
is "$(made)" 0 'images of a list that are there'
# HTTP tells times in whole seconds.
until [ "$(stat -c %Y "$work/www/lists/no ise/val/tulip/1.ppm")" -lt "$(date +%s)" ]; do sleep 0.1; done
picture "$work/www/lists/no ise/val/tulip/1.ppm" 256 192 99
expect 0 dl2-transcode --codec ppm "$at/whole.csv" "$work/of-list"
is "$(made)" 1 'an image of a list that was changed'
bad_list() { # TEXT LINE...
    wanted=$1
    shift
    printf '%s\n' "$@" >"$work/www/lists/bad.txt"
    expect 1 dl2-load check "$at/lists/bad.txt"
    said "$wanted"
}
image='no ise/train/rose/1.ppm'
bad_list "bad.txt: line 2: $at/lists/absent.ppm: " "$image a" 'absent.ppm b'
bad_list 'bad.txt: line 1: a path from / has no place on a server' "/$image a"
bad_list 'bad.txt: line 1: a path with ..' "../$image a"
bad_list 'on another server than the list' 'http://127.0.0.1:1/x.ppm a'
bad_list 'in another bucket than the list' 's3://bucket/x.ppm a'
bad_list 'an encoded slash' "$at/lists%2Fx.ppm a"
bad_list 'bad.txt: line 1: http://***' 'http://u:p@h/x.ppm a'
expect 1 dl2-load check "$at/lists/none.csv"
said 'there is no such list'
printf '%s\n' "$at/lists/x.ppm a" >"$work/local.txt"
expect 1 dl2-load check "$work/local.txt"
said 'only in a list that lies on the same server'

# ---- The other programs
cp -r "$work/www/tar" "$work/local"
expect 0 dl2-transcode --quiet --q 30 "$at/tar" "$work/again"
expect 0 dl2-transcode --quiet --q 30 "$work/local" "$work/again-local"
diff -r -x 'dl2-*' -x '.dl2-*' "$work/again" "$work/again-local" || fail 'other files of a source behind HTTP'
expect 0 dl2-quality --quiet --metrics psnr_y --csv "$work/a.csv" "$at/tar" "$work/again/jpeg-30"
expect 0 dl2-quality --quiet --metrics psnr_y --csv "$work/b.csv" "$work/local" "$work/again/jpeg-30"
cmp "$work/a.csv" "$work/b.csv" || fail 'other scores behind HTTP'
for task in copy --q=30; do
    expect 2 dl2-transcode --quiet $task "$work/local" s3://bucket/new
    said "only packed datasets are written to a store"
    expect 2 dl2-transcode --quiet $task --container tar "$work/local" "$at/new"
    said "can only be read"
done
expect 2 dl2-transcode --quiet index "$at/tar"
train() { dl2-train --quiet -j 1 --threads 1 -a convnet --image-size 16 -b 4 -e 2 "$@"; }
expect 0 train -d "$at/tar" --out "$work/run" --cache-dir "$work/cache"
expect 0 train -d "$work/local" --out "$work/run-local"
weights() { tail -c +$(($(od -An -t u8 -N 8 "$1/checkpoint.safetensors" | tr -d ' ') + 9)) "$1/checkpoint.safetensors" | cksum; }
is "$(weights "$work/run")" "$(weights "$work/run-local")" 'weights of a training behind HTTP'
exit 0
