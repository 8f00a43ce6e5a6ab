#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: packages.sh [--check] WORD...
#
# Installs those of packages.txt that are needed by any of the words (build, study, check, demo, ...)
# and are not there, from Debian, says which and why, and ends with status 3. When all are there it
# does nothing, says nothing and ends with status 0. Where it can't install (not Debian, neither root
# nor sudo) it says what to install and ends with status 1; with --check it never installs.
set -u
list=$(dirname "$0")/packages.txt
[ "${1:-}" != --check ] || { only_check=1; shift; }

found() { # KIND:WHAT
    case $1 in
    command:convert) # ImageMagick's, of any version: others have that name, too
        for command in /usr/bin/convert convert; do
            "$command" -version 2>/dev/null | grep -q ImageMagick && return 0
        done
        return 1 ;;
    command:*) command -v "${1#*:}" >/dev/null 2>&1 ;;
    pkg-config:*) pkg-config --exists "${1#*:}" >/dev/null 2>&1 ;;
    header:*) printf '#include <%s>\n' "${1#*:}" | cc -E - >/dev/null 2>&1 ;;
    file:*)
        for file in ${1#*:}; do # a pattern
            [ ! -e "$file" ] || return 0
        done
        return 1 ;;
    *) echo "packages.sh: $list: '$1'?" >&2; return 0 ;;
    esac
}

missing= why=
while read -r package needs probe reason; do
    case $package in '' | '#'*) continue ;; esac
    for word in "$@"; do
        case ,$needs, in
        *,"$word",*)
            found "$probe" || {
                missing="$missing $package"
                why="$why$(printf '  %-24s %s' "$package" "$reason")
"
            }
            break ;;
        esac
    done
done <"$list"
[ -n "$missing" ] || exit 0

stop() {
    printf '%s\nWhat is missing for "%s", by the names of Debian'\''s packages:\n%s' "$1" "$words" "$why" >&2
    echo "Install them, then run make again. With apt:  apt-get install$missing" >&2
    exit 1
}
words=$*
[ -z "${only_check:-}" ] || stop "Something is missing."
[ -e /etc/debian_version ] && command -v apt-get >/dev/null 2>&1 ||
    stop "This is not a Debian system, so nothing is installed for you."
root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || stop "Not root, and there is no sudo, so nothing is installed for you."
    root=sudo
fi
printf 'Installing from Debian for "%s":\n%s' "$words" "$why"
apt() { $root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"; }
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# Lists that are empty or old make the first try fail.
apt install --no-install-recommends $missing >"$log" 2>&1 || {
    apt update >"$log" 2>&1 && apt install --no-install-recommends $missing >>"$log" 2>&1
} || {
    tail -n 20 "$log" >&2
    stop "apt-get failed: its last lines are above."
}
exit 3
