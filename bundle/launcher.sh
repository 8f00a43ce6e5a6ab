#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Starts the program of its own name (or the one named first, when it is called `run`) with the libraries that a bundle
# doesn't hold, taken from this machine: NVIDIA's.
#
# They are looked for in, first come first served: DL2_LIBRARIES (folders with colons between), LD_LIBRARY_PATH, CUDA_HOME,
# CONDA_PREFIX, the NVIDIA packages of VIRTUAL_ENV's Python or the first python3 on the PATH, /usr/local/cuda, and where
# the system's own loader looks. DL2_VERBOSE=1 says what was found. What isn't anywhere is needed only by those who ask for
# it: --device cuda; a stand-in then says what is missing.
self=$(readlink -f "$0") || exit 1
root=${self%/*/*}
name=${0##*/}
if [ "$name" = run ]; then
    name=$1
    shift
fi
pythons() {
    for python in "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python3}" python3; do
        [ -z "$python" ] || "$python" -c 'import sys
for folder in sys.path: print(folder)' 2>/dev/null
    done
}
folders() { # those that there are, a line each
    printf '%s\n' "${DL2_LIBRARIES:-}:${LD_LIBRARY_PATH:-}" | tr : '\n'
    for folder in "${CUDA_HOME:+$CUDA_HOME/lib64}" "${CUDA_HOME:+$CUDA_HOME/lib}" "${CONDA_PREFIX:+$CONDA_PREFIX/lib}"; do
        [ ! -d "$folder" ] || echo "$folder"
    done
    pythons | while read -r path; do
        for folder in "$path"/nvidia/*/lib; do
            [ ! -d "$folder" ] || echo "$folder"
        done
    done
    for folder in /usr/local/cuda/lib64 /usr/local/cuda*/lib64; do
        [ ! -d "$folder" ] || echo "$folder"
    done
    { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -n 's,.*=> \(/.*\)/[^/]*$,\1,p' | sort -u
}
# The folders of the node's libraries, each once, and what there is none for.
choose() {
    known=$(folders)
    while read -r library; do
        found=
        while read -r folder; do
            if [ -n "$folder" ] && [ -e "$folder/$library" ]; then
                found=$folder
                break
            fi
        done <<END
$known
END
        echo "$library ${found:-none}"
    done <"$root/lib/node/LIST"
}
chosen=$(choose)
[ -z "${DL2_VERBOSE:-}" ] || printf '%s\n' "$chosen" >&2
path=$(printf '%s\n' "$chosen" | sed -n 's,^[^ ]* \(/.*\),\1,p' | awk '!seen[$0]++' | tr '\n' :)
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$path$root/lib/node
export LD_LIBRARY_PATH
exec "$root/libexec/$name" "$@"
