# SPDX-License-Identifier: BSD-2-Clause
# Ranks that mpirun started: the collectives' checks, and training as over shared memory.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
need mpirun openmpi-bin
case ${CC:-} in *-fsanitize=thread*) skip "ThreadSanitizer can't follow Open MPI, which wasn't built for it" ;; esac
"$builddir/dl2-train" --version | grep -q '^ *ranks by mpi:' || skip "built without Open MPI (Debian: libopenmpi-dev)"
# As root, with more ranks than processors, without sanitizers' word on what Open MPI leaves behind.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
mpi() { mpirun --oversubscribe --mca btl_vader_single_copy_mechanism none "$@"; }
# It is loaded for ranks alone: it takes a program longer to start, and with Open MPI 5 its SIGHUP.
! ldd "$builddir/dl2-train" | grep libmpi || fail "dl2-train is linked with Open MPI"
for ranks in 1 2 3; do
    expect 0 mpi -n $ranks "$builddir/tests/ranks/test_world"
    [ "$(grep -c "of $ranks over mpi.*all well" "$work/out")" = $ranks ] || fail "not all of $ranks ranks are well"
done

# Training comes to the very weights that ranks on shared memory come to.
make_images data 3 25 7 8
options="-d data -b 4 --mixup 0.2"
for ranks in 1 2 3; do
    expect 0 run $options --out local$ranks --ranks $ranks
    expect 0 mpi -n $ranks dl2-train $smallest $options --out mpi$ranks
    same local$ranks/$CK mpi$ranks/$CK "$ranks ranks of either transport"
    grep -q '"transport": "mpi"' mpi$ranks/$REPORT || fail "the report doesn't say mpi"
done
expect 0 mpi -n 2 dl2-train $smallest $options --sync-bn --out sync
expect 0 run $options --out sync-local --ranks 2 --sync-bn
same sync/$CK sync-local/$CK "synchronized batch norm"
moved() { grep '"bytes_moved"' $1/$REPORT; }
is "$(moved local3)" "$(moved mpi3)" "bytes that either transport moved"
# Models that hop need no more of the transport than their ranks' numbers.
printf '%s\n' '{"name": "a"}' '{"name": "b", "lr": 0.01}' '{"name": "c", "optimizer": "adamw"}' >configs
expect 0 run -d data several --configs configs --hop --hop-order fixed --ranks 2 --out hop-local
expect 0 mpi -n 2 dl2-train $smallest -d data several --configs configs --hop --hop-order fixed --out hop
for model in a b c; do same hop-local/$model/$CK hop/$model/$CK "$model hops over ranks of either transport"; done
# A run begun by one can be resumed by the other.
expect 0 mpi -n 2 dl2-train $smallest $options --out parts --run-epochs 1.5
expect 0 run $options --out parts --resume --ranks 2
same local2/$CK parts/$CK "resumed elsewhere"
# What all ranks find wrong is told once; what one does, ends all.
expect 1 mpi -n 3 dl2-train $smallest -d nowhere --out nothing
[ "$(grep -c '^dl2-train' "$work/err")" = 1 ] || { cat "$work/err" >&2; fail "a missing dataset is not told once"; }
for file in $(ls data/train/c0/* | head -3); do echo junk >"$file"; done
expect 1 mpi -n 2 dl2-train $smallest $options --on-bad stop --out nothing
grep -q 'data/train/c0/' "$work/err" || { cat "$work/err" >&2; fail "--on-bad stop names no file"; }
expect 1 mpi -n 2 dl2-train $smallest $options --ranks 2 --out nothing
grep -q 'leave out --ranks' "$work/err" || fail "ranks of ranks: $(cat "$work/err")"
# A rank that is killed doesn't leave the others waiting.
expect 2 run $options --ranks 2 --world mpi
(exec mpirun --oversubscribe -n 3 dl2-train $smallest $options --device ref -e 1000 --out killed) >out.killed 2>err.killed &
pid=$!
until_checkpoint killed err.killed
ranks=$(cat /proc/$pid/task/*/children)
[ "$(echo $ranks | wc -w)" = 3 ] || fail "not three ranks: $ranks"
kill -KILL $(echo $ranks | cut -d ' ' -f 2)
if wait $pid; then fail "mpirun calls a killed rank a success"; fi
for process in $ranks; do await "process $process is left over" gone "$process"; done
