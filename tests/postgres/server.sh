# SPDX-License-Identifier: BSD-2-Clause
# Sourced after lib.sh by tests that need a PostgreSQL server: one of the test's own, behind a socket in $home.

# find_server [BINDIR]: sets $server, the folder of initdb, pg_ctl and postgres.
find_server() {
    server=
    for bin in "$(dirname "$(command -v initdb || echo none)")" /usr/lib/postgresql/*/bin ${1+"$1"}; do
        [ ! -x "$bin/initdb" ] || [ ! -x "$bin/pg_ctl" ] || server=$bin
    done
    [ -n "$server" ] || skip "PostgreSQL's server is not installed (Debian: postgresql)"
    need psql postgresql-client
    need setpriv util-linux
}

# make_server: makes $home with an empty database. The server runs as $user: as root it refuses to.
make_server() {
    user=$(id -un) as=
    if [ "$(id -u)" -eq 0 ]; then
        user=nobody as="setpriv --reuid=$(id -u nobody) --regid=$(id -g nobody) --clear-groups"
    fi
    home=$(mktemp -d /tmp/dl2-pg.XXXXXX) || exit 99 # a socket's path must be short
    trap '$as "$server/pg_ctl" -D "$home/data" -m immediate stop >/dev/null 2>&1; rm -rf "$home" "$work"' EXIT
    chown "$user" "$home"
    (cd / && $as "$server/initdb" -D "$home/data" -A trust -U dl2 -E UTF8 --locale=C -N >"$home/out" 2>&1) ||
        skip "initdb fails here: $(tail -n 1 "$home/out")"
}

# control PG_CTL-ARGUMENT...
control() {
    (cd / && $as "$server/pg_ctl" -D "$home/data" -l "$home/log" -w "$@" >"$home/out" 2>&1) ||
        { cat "$home/out" "$home/log" >&2; fail "pg_ctl $*"; }
}
# start_server [PG_CTL-ARGUMENT...]
start_server() { control -o "-F -c listen_addresses= -c unix_socket_directories=$home" "$@" start; }
# sql COMMAND: prints the result. at TABLE: its address.
sql() { psql -qAt -h "$home" -U dl2 -d postgres -c "$1" || fail "psql: $1"; }
at() { echo "postgresql:///postgres?host=$home&user=dl2&table=$1"; }
