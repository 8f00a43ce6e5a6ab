#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Replays listings, errors, credentials and addresses, good and damaged, through their parsers.
. "$srcdir/tests/lib.sh"
mkdir "$work/corpus"
object='<Contents><Key>a/b &amp; c.jpg</Key><LastModified>2026-11-25T22:42:00.000Z</LastModified><ETag>&quot;e&quot;</ETag><Size>5</Size></Contents>'
printf '0%s' "<?xml version='1.0'?><ListBucketResult xmlns='u'><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>$object$object</ListBucketResult>" >"$work/corpus/listing"
printf '0%s' '<!DOCTYPE a [<!ENTITY b "cccc">]><ListBucketResult>&b;</ListBucketResult>' >"$work/corpus/entities"
printf '1%s' '<Error><Code>SlowDown</Code><Message>m</Message><RequestId>r</RequestId><Region>e</Region></Error>' >"$work/corpus/error"
printf '2[default]\na = b\n[profile c]\n d=\n' >"$work/corpus/ini"
printf '3s3://bucket/a/b' >"$work/corpus/s3"
printf '3https://host:1/a%%20b/../c' >"$work/corpus/http"
DL2_FUZZ_SECONDS=${DL2_FUZZ_SECONDS:-3}
export DL2_FUZZ_SECONDS
expect 0 "$builddir/tests/remote/fuzz_listing" -runs=0 "$work/corpus"
