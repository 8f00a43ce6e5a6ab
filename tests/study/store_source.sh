#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A study of shards in an object store whose variants lie there, too, with moto's server (tests/remote/remote_s3.sh).
. "$srcdir/tests/lib.sh"
plainly
[ -n "${DL2_S3_PYTHON:-}" ] || skip "DL2_S3_PYTHON names no Python with moto's server (PyPI)"
"$DL2_S3_PYTHON" -c 'import moto.server, boto3' 2>/dev/null || skip "$DL2_S3_PYTHON lacks moto[server]"
dl2-load check http://127.0.0.1:1/x >"$work/out" 2>&1
! grep -q 'made without libcurl' "$work/out" || skip 'built without libcurl and Expat'
. "$srcdir/tests/study/study_lib.sh"
unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
port=$("$DL2_S3_PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$DL2_S3_PYTHON" -m moto.server -H 127.0.0.1 -p "$port" >"$work/server" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret
export AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
tries=0
until "$DL2_S3_PYTHON" -c 'import boto3, os; boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"], region_name="us-east-1").create_bucket(Bucket="bucket")' 2>"$work/err"; do
    [ $((tries += 1)) -lt 100 ] || { cat "$work/err" >&2; fail 'no bucket'; }
    sleep 0.2
done
expect 0 dl2-transcode --quiet copy --container=tar data s3://bucket/photos
store() { study DATASET=s3://bucket/photos VARIANTS=s3://bucket/sweep OUT=results QUALITIES=10 SEEDS=1 ROUNDS=1 "$@"; }
expect 0 store
is "$(find results/variants -type f)" results/variants/jpeg-10/dl2-variant.json "files of the variant"
expect 0 dl2-load check s3://bucket/sweep/jpeg-10
grep -q '"title": ".*photos.*"' results/report/report.json || fail "the report is not called after the prefix"
touch mark
expect 0 store
[ -z "$(find results -newer mark -name '*.json' ! -path '*/.make/*' ! -path '*/report/*' ! -path results/study-plan.json)" ] || fail "made again"
as_from_files raw jpeg-10
expect 2 study DATASET=s3://bucket/nothing OUT=none
said 'DATASET is "s3://bucket/nothing": '
exit 0
