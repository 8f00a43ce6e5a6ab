#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays headers of .npy files, good and damaged, through the parser.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"

# npy NAME VERSION TEXT [LENGTH]: the length is 2 bytes in version 1 and 4 later.
npy() {
    length=$(printf '\\%03o\\000' "${4-${#3}}")
    [ "$2" = 1 ] || length=$length'\000\000'
    printf "\\223NUMPY\\00$2\\000$length%s" "$3" >"$work/corpus/$1"
}
good="{'descr': '<f4', 'fortran_order': False, 'shape': (4, 64, 128), }"
for version in 1 2 3 4; do
    npy good$version $version "$good"
done
npy short 1 "$good" 127
npy cut 1 "$good" 48
npy order 1 "{'shape':(2,3,4,5),'fortran_order':False,\"descr\":\">i2\"}      "
npy fortran 1 "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 64, 128), }"
npy records 1 "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4, 6, 8)}"
npy huge 1 "{'descr': '<f8', 'fortran_order': False, 'shape': (2147483647, 2147483647, 2147483647)}"
npy digits 1 "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 1, 1)}"
npy channels 1 "{'descr': '<f8', 'fortran_order': False, 'shape': (65, 1, 1, 1)}"
npy axes 1 "{'descr': '|u1', 'fortran_order': False, 'shape': (4,)} "
npy none 1 "{'descr': '|u1', 'fortran_order': False, 'shape': ()}   "
npy zero 1 "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 1, 2)}"
npy negative 1 "{'descr': '|u1', 'fortran_order': False, 'shape': (-1, 2, 3)} "
npy twice 1 "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 3)}"
npy lacks 1 "{'descr': '|u1', 'shape': (1, 2, 3)}"
npy more 1 "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 3), 'more': 1}"
npy type 1 "{'descr': '<c16', 'fortran_order': False, 'shape': (4, 64, 128)}  "
npy open 1 "{'descr'"
npy bare 1 "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 3"
npy escape 1 "{'d\\escr': 'a'} "
printf '\223NUMPY\002\000\377\377\377\377' >"$work/corpus/long"
printf '\223NUM' >"$work/corpus/start"
printf 'PK\003\004' >"$work/corpus/zip"
: >"$work/corpus/empty"
expect 0 "$builddir/tests/volumes/fuzz_npy" -runs=0 "$work/corpus"
