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

homes= # of all servers
# make_server: makes $home with an empty database. The server runs as $user: as root it refuses to.
make_server() {
    user=$(id -un) as=
    if [ "$(id -u)" -eq 0 ]; then
        user=nobody as="setpriv --reuid=$(id -u nobody) --regid=$(id -g nobody) --clear-groups"
    fi
    home=$(mktemp -d /tmp/dl2-pg.XXXXXX) || exit 99 # a socket's path must be short
    homes="$homes $home"
    trap 'for home in $homes; do $as "$server/pg_ctl" -D "$home/data" -m immediate stop >/dev/null 2>&1; rm -rf "$home"; done; rm -rf "$work"' EXIT
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
# serve: starts a server with an empty database; skips where there is none, or no libpq.
serve() {
    "$builddir/dl2-transcode" --list containers | grep -q '^postgresql' || skip "this build has no libpq (Debian: libpq-dev)"
    find_server
    make_server
    start_server
}
# sql COMMAND: prints the result. at TABLE: its address.
sql() { psql -qAt -h "$home" -U dl2 -d postgres -c "$1" || fail "psql: $1"; }
at() { echo "postgresql:///postgres?host=$home&user=dl2&table=$1"; }
# query SQL: with messages in $work/err, as expect has them.
query() { psql -qAt -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -h "$home" -U dl2 -d postgres -c "$1"; }

# goal GOAL: makes it, with the root folder $home/root.
goal() { (unset MAKEFLAGS MFLAGS && make -s -C "$builddir" "$1" DESTDIR="$home/root") >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "make $1"; }; }

# start_extension: starts a server that has the extension; skips where there is none.
start_extension() {
    [ -e "$builddir/postgres/dl2.la" ] || skip "this build has no extension of PostgreSQL (Debian: postgresql-server-dev-all)"
    dl2-transcode --list containers | grep -q postgresql || skip "this build has no libpq, which fills the tables (Debian: libpq-dev)"
    bindir=$("$PG_CONFIG" --bindir)
    find_server "$bindir"
    [ "$server" = "$bindir" ] || skip "the extension is for the server in $bindir, which is not installed (Debian: postgresql)"
    make_server
    # A server finds its files beside its program: a copy of that, links to the others, and ours.
    goal install-postgres
    mkdir -p "$home/root$bindir"
    cp "$bindir/postgres" "$home/root$bindir/"
    sharedir=$("$PG_CONFIG" --sharedir) libdir=$("$PG_CONFIG" --pkglibdir)
    for file in "$sharedir"/* "$libdir"/* "$sharedir"/extension/plpgsql*; do
        [ -e "$home/root$file" ] || ln -s "$file" "$home/root$file"
    done
    chmod -R a+rX "$home/root"
    postgres=$home/root$bindir/postgres
    start_server -p "$postgres"
    sql "create extension dl2"
}
# start_beside: starts one more server that has the extension; $beside is its $home. on HOME COMMAND...: a function
# above, for the server of that home.
start_beside() {
    first=$home
    make_server
    beside=$home
    start_server -p "$postgres"
    sql "create extension dl2"
    home=$first
}
on() (home=$1; shift; "$@")
