# SPDX-License-Identifier: BSD-2-Clause
# Ranks on two machines, as far as one can stand in for them: hosts of the kernel's namespaces, each with a network,
# a name, process numbers and shared memory of its own, which mpirun reaches over a bridge.
if [ -z "${DL2_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "SKIP: only root may make the hosts' namespaces"; exit 77; }
    for tool in ip unshare; do
        command -v $tool >/dev/null 2>&1 || { echo "SKIP: $tool is not installed (Debian: iproute2, util-linux)"; exit 77; }
    done
    # In namespaces that go when it ends, and all in them.
    inside="unshare --net --mount --propagation private --pid --fork --kill-child --mount-proc"
    $inside ip link add name br0 type bridge 2>/dev/null || { echo "SKIP: no namespaces or bridges can be made here"; exit 77; }
    DL2_INSIDE=1 exec $inside "${SHELL:-/bin/sh}" "$0"
fi
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
need mpirun openmpi-bin
case ${CC:-} in *-fsanitize=thread*) skip "ThreadSanitizer can't follow Open MPI, which wasn't built for it" ;; esac
"$builddir/dl2-train" --version | grep -q '^ *ranks by mpi:' || skip "built without Open MPI (Debian: libopenmpi-dev)"
mount -t tmpfs none /run && mkdir /run/netns || skip "nothing can be mounted here"
cp /etc/hosts hosts
ip link set lo up
ip link add name br0 type bridge && ip address add 10.77.0.1/24 dev br0 && ip link set br0 up || skip "no bridge can be made"
for n in 1 2; do
    ip netns add host$n && ip link add name veth$n type veth peer name eth0 netns host$n || skip "no hosts can be made"
    ip link set veth$n master br0 up
    ip -n host$n address add 10.77.0.1$n/24 dev eth0
    ip -n host$n link set eth0 up
    ip -n host$n link set lo up
    echo "10.77.0.1$n host$n" >>hosts
done
mount --bind hosts /etc/hosts || skip "nothing can be mounted here"
# What mpirun takes for ssh.
cat >agent <<'EOF'
#!/bin/sh
host=$1
shift
exec ip netns exec $host unshare --uts --ipc --mount --pid --fork --kill-child --mount-proc \
    sh -c "hostname $host && mount -t tmpfs none /dev/shm && $*"
EOF
chmod +x agent
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
machines() { # HOST:RANKS,... COMMAND...
    hosts=$1; shift
    mpirun --mca plm rsh --mca plm_rsh_agent "$work/agent" --mca oob_tcp_if_include 10.77.0.0/24 \
        --mca btl_tcp_if_include 10.77.0.0/24 --mca btl_vader_single_copy_mechanism none --bind-to none \
        -x PATH -x LD_LIBRARY_PATH -x ASAN_OPTIONS --host "$hosts" "$@"
}
expect 0 machines host1:1,host2:2 hostname
[ "$(sort "$work/out" | tr '\n' ' ')" = "host1 host2 host2 " ] || fail "mpirun runs elsewhere: $(cat "$work/out")"

# The collectives, and the very weights that as many ranks come to on one machine.
expect 0 machines host1:1,host2:2 "$builddir/tests/ranks/test_world"
[ "$(grep -c "of 3 over mpi.*all well" "$work/out")" = 3 ] || fail "not all of 3 ranks are well"
make_images data 3 25 7 8
options="-d data -b 4 --mixup 0.2 --sync-bn"
expect 0 run $options --out one --ranks 3
expect 0 machines host1:1,host2:2 dl2-train $smallest $options --out two --run-epochs 1.5
expect 0 machines host1:2,host2:1 dl2-train $smallest $options --out two --resume
same one/$CK two/$CK "one machine and two"
# Gradients cross the network: rank 0's host has sent and received some.
for bytes in network_sent_bytes network_received_bytes; do
    "${PYTHON3:-python3}" -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["rank_timelines"][0][sys.argv[2]][-1] < 1000)' \
        two/$REPORT $bytes || fail "$bytes: rank 0 has none"
done
expect 1 machines host1:1,host2:1 dl2-train $smallest -d nowhere --out nothing
[ "$(grep -c '^dl2-train' "$work/err")" = 1 ] || { cat "$work/err" >&2; fail "a missing dataset is not told once"; }

# ranks_on HOST: their processes. (Under QEMU its name begins their command lines.)
ranks_on() {
    for process in $(ip netns pids "$1"); do
        if tr '\0' ' ' <"/proc/$process/cmdline" | grep -q 'dl2-train '; then echo "$process"; fi
    done 2>/dev/null
}

# A rank that is killed on the one ends those on the other.
machines host1:1,host2:2 dl2-train $smallest $options --device ref -e 1000 --out killed >out.killed 2>err.killed &
pid=$!
until_checkpoint killed err.killed
rank=
for process in $(ranks_on host2); do rank=$process; done
[ -n "$rank" ] || fail "no rank on the second machine"
kill -KILL "$rank"
if wait $pid; then fail "mpirun calls a killed rank a success"; fi
left_alone() { [ -z "$(ranks_on host1)" ]; }
await "a rank is left over on the first machine" left_alone
exit 0
