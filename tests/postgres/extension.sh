#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The extension in a server: what dl2-transcode and dl2-quality give, to the last bit; hostile bytes,
# limits and canceled queries end queries, never a backend; no threads, no signal handlers.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/postgres/server.sh"
! sanitized || skip "the server is built without sanitizers; tests/postgres/fuzz_image_work.sh runs the extension's work with them"
start_extension
installed=$(find "$home/root" -type f | sed 's/.*\///' | sort | tr '\n' ' ')
case $installed in "dl2--"*".sql dl2.control dl2.so dl2_train.so postgres ") ;; *) fail "installed: $installed" ;; esac
alive=$(sql "select pg_postmaster_start_time(), count(*) from pg_stat_activity where backend_type = 'checkpointer'")

# ---- What the programs give
count=16
expect 0 "$builddir/tests/transcode/images" tree "$work/src" $count
expect 0 "$builddir/tests/transcode/images" special "$work/src/val/rose"
if grep -q 'define HAVE_LCMS 1' "$builddir/config.h" && grep -q 'define HAVE_PNG 1' "$builddir/config.h"; then
    expect 0 "$builddir/tests/transcode/images" colors "$work/colors"
    cp "$work/colors/a/p3.png" "$work/colors/a/linear.png" "$work/src/val/rose"
fi
dl2-transcode --quiet copy "$work/src" "$(at photos)" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "copy"; }
codecs=$(dl2-transcode --list codecs | awk -F '\t' '$4 != "video" { print $1 }')
for codec in $codecs; do
    quality="--q 40"
    dl2-transcode --list codecs | grep -q "^$codec.lossy" || quality=
    # shellcheck disable=SC2086
    dl2-transcode --quiet --codec "$codec" $quality "$work/src" "$work/variants/$codec" >"$work/out" 2>&1
    variant=$(echo "$work/variants/$codec"/*)
    expect 0 dl2-transcode --quiet copy "$variant" "$(at "v_$codec")"
    echo "$codec|$(find "$variant" -type f ! -name 'dl2-*' | wc -l)|0" >>"$work/wanted"
done
is "$(sql "select count(*) from photos where dl2_check(image) is not null")" \
    "$(ls "$work"/src/val/rose/cut-short.jpg 2>/dev/null | wc -l)" "images that cannot be decoded"
for codec in jpeg webp; do
    variant=$work/variants/$codec/$codec-40
    [ -d "$variant" ] || continue
    dl2-quality --quiet --metrics all --csv="$work/scores.csv" "$work/src" "$variant" >/dev/null 2>&1
    for metric in psnr_rgb psnr_y ssim ms_ssim; do
        awk -F , -v metric=$metric 'NR == 1 { for (i = 1; i <= NF; i++) { at[$i] = i }; next }
            $(at[metric]) != "" { print $(at["key"]) "\t" $(at[metric]) }' "$work/scores.csv" >"$work/values"
        sql "create table given (key text, value float8)"
        psql -q -h "$home" -U dl2 -d postgres -c "\\copy given from '$work/values'" || fail "copy of scores"
        is "$(sql "select count(*) from given g join photos p using (key) join v_$codec v using (key)
                   where dl2_score(p.image, v.image, '$metric') is distinct from g.value")" 0 "$metric of $codec unlike dl2-quality's"
        [ $metric = ms_ssim ] || [ "$(sql "select count(*) from given g join v_$codec v using (key)")" -ge $count ] || fail "no scores by $metric"
        sql "drop table given"
    done
done
parallel=debug_parallel_query # since PostgreSQL 16
[ "$(sql "show server_version_num")" -ge 160000 ] || parallel=force_parallel_mode
expect 0 query "set $parallel = on; select count(dl2_psnr(image, image)),
    count(*) filter (where dl2_ssim(image, image) < 1) from photos where dl2_check(image) is null"
is "$(cat "$work/out")" "0|0" "PSNR and SSIM of equal images, by several processes"
is "$(sql "select dl2_info(null), dl2_transcode(null, 'jpeg', 5), dl2_psnr(null, '')")" "||" "of null"
if [ -e "$work/src/val/rose/exif-6.jpg" ]; then
    is "$(sql "select (dl2_info(image)).* from photos where key like '%exif-6'")" "jpeg|32|20|3|8|f|6|90|420|f|" dl2_info
    is "$(sql "select dl2_check(image) is not null from photos where key like '%cut-short'")" t "a truncated file"
fi

if [ -e "$work/src/val/rose/linear.png" ]; then
    is "$(sql "select (dl2_info(image)).color from photos where key like '%linear'")" "gamma 1.000" "a gamma"
    is "$(sql "select count(*) from photos where key like '%p3' and
        (dl2_info(dl2_transcode(image, 'jpeg', 50))).color = (dl2_info(image)).color")" 1 "a profile that is kept"
fi

# ---- Hostile bytes: every file of the corpus, whole, cut and with other bits. No query may fail.
expect 0 "$builddir/tests/codec/make_corpus" "$home/corpus"
chmod -R a+rX "$home/corpus"
files=$(cd "$home/corpus" && find . -type f | sed "s/.*/('&')/" | tr '\n' ',')
sql "create table hostile as select name, pg_read_binary_file('$home/corpus/' || name) as image from (values ${files%,}) f(name)"
sql "insert into hostile values ('empty', ''), ('one', '\\x00'), ('text', 'no image')"
sql "insert into hostile select name || ' cut ' || i, substring(image for octet_length(image) * i / 3) from hostile, generate_series(1, 2) i"
sql "insert into hostile select name || ' bit ' || i, set_byte(image, place, get_byte(image, place) # (1 << (i % 8)))
     from hostile, generate_series(1, 2) i, lateral (select abs(hashtext(name || i)) % octet_length(image) as place) as a
     where octet_length(image) > 0"
sql "create unique index on hostile (name); analyze hostile"
sql "create function calm(query text) returns text language plpgsql as \$\$ declare out text; begin execute query into out; return 'fine';
     exception when invalid_binary_representation or feature_not_supported or program_limit_exceeded
         or invalid_parameter_value then return sqlerrm; end \$\$"
is "$(sql "set dl2.max_pixels = 1000000; select count(*) filter (where dl2_check(image) is null) > 50, count(dl2_check(image)) > 50 from hostile")" "t|t" "good and bad files"
sql "select name, calm(format('select dl2_info(image) from hostile where name = %L', name)) from hostile" >"$work/looks"
sql "set dl2.max_pixels = 1000000; select name, calm(format('select dl2_transcode(image, %L, 30) from hostile where name = %L', 'jpeg', name)),
     calm(format('select dl2_psnr(image, image) from hostile where name = %L', name)) from hostile" >"$work/codes"
grep -q 'fine' "$work/looks" && grep -q 'dl2_info: ' "$work/looks" || fail "of hostile bytes: $(head "$work/looks")"
grep -q 'dl2_score: the reference: ' "$work/codes" || fail "of hostile bytes: $(head "$work/codes")"

# ---- Limits, wrong words, canceled queries: the session lives on, and has its memory back
expect 1 query "set dl2.max_pixels = 100; select dl2_check(image), dl2_psnr(image, image) from photos"
said 54000
is "$(sql "set dl2.max_pixels = 100; select count(dl2_info(image)) from photos where key not like '%cut-short'")" "$(sql "select count(*) from photos where key not like '%cut-short'")" "images whose headers can be read"
said "dl2.max_pixels limits"
expect 1 query "select dl2_transcode(image, 'gif', 30) from photos where key like '%0001'"
said "there is no codec 'gif' to encode with; there are"
expect 1 query "select dl2_transcode(image, 'ppm', 101) from photos where key like '%0001'"
said "the quality 101 is not in 1 to 100"
expect 1 query "select dl2_score(image, image, 'beauty') from photos where key like '%0001'"
said "there is no metric 'beauty'; there are psnr_rgb"
expect 1 query "select dl2_ssim(a.image, b.image) from photos a, photos b where a.key like '%0001' and b.key like '%0002'"
said "the variant: is "
sql "create role guest"
expect 1 query "set role guest; select dl2_check(''); set dl2.max_pixels = 1000000000"
said 42501
expect 0 query "set role guest; set dl2.max_pixels = 1000000000; select dl2_check(''); show dl2.max_pixels"
is "$(tail -n 1 "$work/out")" 67108864 "a limit that a guest has set before the library was there"
cat >"$work/session.sql" <<SQL
select dl2_check(image) is null from photos limit 1;
select pg_backend_pid() as pid \\gset
\\setenv PID :pid
\\! grep -E '^(Threads|Sig[A-Z]...|VmRSS)' /proc/\$PID/status >"$work/before"
\\! prlimit --pid \$PID --nproc=0:0 2>/dev/null || true
do \$\$ begin for i in 1..40 loop begin
    perform dl2_transcode(image, 'webp', i), dl2_psnr(image, image), dl2_ssim(image, '') from photos where dl2_check(image) is null;
exception when others then null; end; end loop; end \$\$;
set statement_timeout = 300;
select sum(octet_length(dl2_transcode(image, 'ppm', i % 100 + 1))) from photos, generate_series(1, 1000000) i where dl2_check(image) is null;
set statement_timeout = 0;
SQL
{
    for codec in $codecs; do
        echo "select '$codec', count(*), count(*) filter (where v.image is distinct from dl2_transcode(p.image, '$codec', 40)
                  or dl2_check(v.image) is not null) from photos p join v_$codec v using (key);"
    done
    echo "\\! grep -E '^(Threads|Sig[A-Z]...|VmRSS)' /proc/\$PID/status >\"$work/after\""
} >>"$work/session.sql"
psql -qAt -h "$home" -U dl2 -d postgres -f "$work/session.sql" >"$work/out" 2>"$work/err"
said "canceling statement due to statement timeout"
grep '|' "$work/out" | diff "$work/wanted" - >&2 || fail "a backend without threads made other images than dl2-transcode"
is "$(sed -n 's/^Threads:[^0-9]*//p' "$work/after")" 1 "threads of a backend"
is "$(grep '^Sig[BIC]' "$work/after")" "$(grep '^Sig[BIC]' "$work/before")" "signals of a backend"
[ "$(awk '/^VmRSS/ { print $2 - last; last = $2 }' "$work/before" "$work/after" | tail -n 1)" -lt 250000 ] ||
    fail "a backend has grown: $(grep -h VmRSS "$work/before" "$work/after")"

# No backend has ended but by itself, which would restart the server.
is "$(sql "select pg_postmaster_start_time(), count(*) from pg_stat_activity where backend_type = 'checkpointer'")" "$alive" "the server"
! grep -E 'terminated by signal|PANIC|AddressSanitizer|runtime error' "$home/log" >&2 || fail "a backend crashed"
goal uninstall-postgres
[ ! -e "$home/root$libdir/dl2.so" ] || fail "uninstall-postgres left dl2.so"
exit 0
