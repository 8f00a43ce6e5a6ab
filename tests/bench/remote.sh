#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What a server's latency costs: crops of large tiled JPEGs from HTTP against the same from a disk, in
# turns. nginx answers each request after LATENCY seconds (Debian: nginx-light and
# libnginx-mod-http-echo). Prints rates, their ratio to the local rate of the same round, and the part
# of the files that was read. The kernel's congestion control matters: Debian's is cubic, and bbr takes
# nginx twice the CPU time.
#
#   tests/bench/remote.sh WORK [IMAGES]      with the programs on the PATH; WORK is kept
set -eu
work=$(mkdir -p "$1" && cd "$1" && pwd) images=${2:-48} codec=jpeg variant=jpeg-90
: "${LATENCY:=0.02}" "${SIZE:=3000x2000}" "${ROUNDS:=5}" "${EPOCHS:=4}" "${REQUESTS:=1 4 16 64 128}" "${WORKERS:=2}" "${TURN:=no}"
[ "$TURN" = no ] || codec=jpeg:turn=yes variant=jpeg_turn-90
photographs=/usr/share/backgrounds # Debian: lomiri-wallpapers-16.04
module=/usr/lib/nginx/modules/ngx_http_echo_module.so
[ -e "$module" ] || { echo "no $module" >&2; exit 1; }

if [ ! -d "$work/www/$variant" ]; then
    n=0
    while [ "$n" -lt "$images" ]; do
        for photograph in "$photographs"/*.jpg; do
            [ "$n" -lt "$images" ] || break
            mkdir -p "$work/photos/train/c$((n % 2))"
            convert "$photograph" -rotate $((n * 7 % 11 - 5)) -resize "$SIZE^" -gravity center -extent "$SIZE" \
                -quality 95 "$work/photos/train/c$((n % 2))/$n.jpg"
            n=$((n + 1))
        done
    done
    dl2-transcode --quiet --container tar --codec "$codec" --q 90 "$work/photos" "$work/www"
fi

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$work/nginx.conf" <<END
load_module $module;
daemon off; pid $work/nginx.pid; worker_processes 1; error_log $work/nginx.err;
events { worker_connections 1024; }
http {
    access_log off; sendfile on;
    client_body_temp_path $work/t1; proxy_temp_path $work/t2; fastcgi_temp_path $work/t3;
    uwsgi_temp_path $work/t4; scgi_temp_path $work/t5;
    server {
        listen 127.0.0.1:$port; keepalive_requests 1000000;
        location / { echo_sleep $LATENCY; echo_exec /files\$uri; }
        location /files/ { internal; alias $work/www/; }
    }
}
END
chmod -R a+rX "$work/www"
nginx -p "$work" -e "$work/nginx.err" -c "$work/nginx.conf" &
server=$!
trap 'kill $server' EXIT
sleep 1
export no_proxy=127.0.0.1

whole=$(cat "$work/www/$variant"/train/*.tar | wc -c)
bench() { # NAME DIR OPTIONS...
    name=$1 dir=$2
    shift 2
    dl2-load bench "$dir" --quiet -j "$WORKERS" --image-size 224 -b 16 --epochs "$EPOCHS" --json "$work/json" "$@" >/dev/null
    python3 - "$name" "$work/json" "$whole" "$EPOCHS" <<'END' >>"$work/rates"
import json, sys
name, path, whole, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
report = json.load(open(path))
read = (report["remote"] or {}).get("bytes", report["bytes_read"])
print(name, report["images_per_second"], report["images_per_core_second"], read / whole / epochs)
END
}
: >"$work/rates"
for round in $(seq "$ROUNDS"); do
    bench local "$work/www/$variant"
    for requests in $REQUESTS; do
        bench "requests-$requests" "http://127.0.0.1:$port/$variant" --requests "$requests"
    done
    rm -rf "$work/cache"
    bench cache-empty "http://127.0.0.1:$port/$variant" --cache-dir "$work/cache"
    bench cache-full "http://127.0.0.1:$port/$variant" --cache-dir "$work/cache"
done
python3 - "$work/rates" <<'END'
import statistics, sys
rounds, names = [], []
for line in open(sys.argv[1]):
    name, rate, core, part = line.split()
    if name == "local":
        rounds.append({})
    rounds[-1][name] = float(rate), float(core), float(part)
    names += [name] if name not in names else []
print("congestion control", open("/proc/sys/net/ipv4/tcp_congestion_control").read().strip())
print(f"{'':14} images/s   of local (least, most)   images/s a core   of the files, read")
for name in names:
    ratios = [r[name][0] / r["local"][0] for r in rounds]
    print(f"{name:14} {statistics.median(r[name][0] for r in rounds):8.0f}   "
          f"{statistics.median(ratios):6.1%} ({min(ratios):.1%}, {max(ratios):.1%})"
          f"{statistics.median(r[name][1] for r in rounds):15.0f}"
          f"{statistics.median(r[name][2] for r in rounds):18.1%}")
END
