#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# nvcc.sh NVCC FLAGS...: runs nvcc, and hands on to the host's compiler the flags that are meant for it, such as
# libtool's -fPIC. (libtool swallows -Xcompiler itself, and nvcc cuts what follows that at commas.)
last=
for word; do
    case $last:$word in
    -o:* | -MF:* | -MT:*) set -- "$@" "$word" ;;
    *:-fsanitize=*) for one in $(echo "${word#*=}" | tr , ' '); do set -- "$@" -Xcompiler "-fsanitize=$one"; done ;;
    *:-fno-sanitize-recover*) ;;
    *:-f* | *:-Wall | *:-Wextra | *:-pthread) set -- "$@" -Xcompiler "$word" ;;
    *) set -- "$@" "$word" ;;
    esac
    shift
    last=$word
done
exec "$@"
