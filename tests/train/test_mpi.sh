# Ranks that mpirun started: the collectives' checks, and training as over shared memory.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
need mpirun openmpi-bin
"$builddir/dl2-train" --version | grep -q '^ *ranks by mpi:' || skip "built without Open MPI (Debian: libopenmpi-dev)"
# As root, with more ranks than processors, without sanitizers' word on what Open MPI leaves behind.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
mpi() { mpirun --oversubscribe --mca btl_vader_single_copy_mechanism none "$@"; }
for ranks in 1 2 3; do
    expect 0 mpi -n $ranks "$builddir/tests/train/test_world"
    [ "$(grep -c "of $ranks over mpi.*all well" "$work/out")" = $ranks ] || fail "not all of $ranks ranks are well"
done
