#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What a label reads as, the same in tar shards, GulpIO's chunks, fields of JSON, lists and tables: numbers keep their
# values however they are written, -1 is no class, and words among numbers are named.
. "$srcdir/tests/lib.sh"
need_python json python3-minimal
cd "$work" || exit 99
cat >make.py <<'EOF'
import io, json, os, sys, tarfile
pixels = b'P6\n4 4\n255\n' + bytes(48)
kinds = {'plain': '%d', 'point': '%d.0', 'array': '[%d]', 'mark': '\ufeff%d', 'blanks': ' %d \r\n', 'zeros': '%03d'}
labels = [10, 2, -1, 0, 5]
def shard(path, kind, texts):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, 'w') as out:
        for i, text in enumerate(texts):
            for name, data in (('%d.ppm' % i, pixels), ('%d.%s' % (i, kind), text.encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))
def chunk(path, values):
    os.makedirs(path, exist_ok=True)
    items = {'%d' % i: {'frame_info': [[60 * i, 1, 60]], 'meta_data': [{'label': v}]} for i, v in enumerate(values)}
    open(path + '/data_0.gulp', 'wb').write((pixels + b'\0') * len(values))
    open(path + '/meta_0.gmeta', 'w').write(json.dumps(items))
os.makedirs('files', exist_ok=True)
for i in range(len(labels)):
    open('files/%d.ppm' % i, 'wb').write(pixels)
def table(path, texts):
    open(path, 'w', encoding='utf-8').write('path, label\n' + ''.join('./files/%d.ppm, "%s"\n' % (i, t) for i, t in enumerate(texts)))
for name, form in kinds.items():
    texts = [form % label for label in labels]
    shard('cls-%s/a.tar' % name, 'cls', texts)
    shard('text-%s/a.tar' % name, 'json', [json.dumps({'label': t, 'score': float('nan')}) for t in texts])
    chunk('gulp-%s' % name, texts)
    if name != 'blanks':
        table('list-%s.csv' % name, texts)
for name, convert in {'integers': int, 'reals': float, 'arrays': lambda v: [v]}.items():
    shard('json-%s/a.tar' % name, 'json', [json.dumps({'label': convert(v)}) for v in labels])
    chunk('values-%s' % name, [convert(v) for v in labels])
shard('words/a.tar', 'cls', ['10', '2', '-1', 'none', '5'])
table('words.csv', ['10', '2', '-1', 'none', '5'])
chunk('words-gulp', [10, 2, -1, 'none', 5])
shard('parts/a.tar', 'cls', ['0.5', '1.25'])
shard('many/a.tar', 'cls', ['1', '360231'])
shard('most/a.tar', 'cls', ['1', '99999999999'])
table('most.csv', ['1', '99999999999'])
shard('named/a.tar', 'cls', ['1', 'bird', '0'])
open('named/classes.txt', 'wb').write(b'\xef\xbb\xbfdog\r\ncat\r\n\r\n')
shard('listed/a.tar', 'cls', ['1', '[0]', '1.0', '-1'])
open('listed/classes.txt', 'wb').write(b'\xef\xbb\xbfdog\r\ncat\r\n\r\n')
chunk('indexed', [1, '0', 'cat', -1])
open('indexed/label2idx.json', 'w').write('\ufeff{"dog": 0, "cat": 1}')
EOF
"$PYTHON3" make.py || fail 'the input'
# The numbers of the classes of all images, and how many classes there are: what a copy into shards has.
numbers() { # SOURCE OPTION...
    rm -rf copy
    expect 0 dl2-transcode copy --container=tar "$@" copy
    for i in 0 1 2 3 4; do
        tar xOf copy/shard-000000.tar "$i.cls" 2>/dev/null || tar xOf copy/shard-000000.tar --wildcards "*/$i.cls" 2>/dev/null || printf -- -
        echo
    done | tr '\n' ' '
    echo "of $(grep -c . copy/classes.txt)"
}
for kind in plain point array mark blanks zeros; do
    is "$(numbers cls-$kind)" '10 2 - 0 5 of 11' "labels of .cls, $kind"
    said 'labels below 0 mean no class: 1 of 5 samples have one, such as 2'
    is "$(numbers --label-field label text-$kind)" '10 2 - 0 5 of 11' "texts of JSON, $kind"
    is "$(numbers gulp-$kind)" '10 2 - 0 5 of 11' "texts of GulpIO, $kind"
    [ $kind = blanks ] || is "$(numbers list-$kind.csv)" '10 2 - 0 5 of 11' "labels of a list, $kind"
done
for kind in integers reals arrays; do
    is "$(numbers --label-field label json-$kind)" '10 2 - 0 5 of 11' "values of JSON, $kind"
    is "$(numbers values-$kind)" '10 2 - 0 5 of 11' "values of GulpIO, $kind"
done

# ---- Words among numbers are named, and so is what is no whole number
for source in words words-gulp words.csv; do
    is "$(numbers $source)" '0 1 - 3 2 of 4' "words among numbers, $source"
    said "words, such as 'none' of"
done
expect 0 dl2-load check parts
said "labels such as '0.5' of 0 are no whole numbers"

# ---- Numbers have no limit but the memory's
expect 0 dl2-transcode identify many
is "$(grep ^classes "$work/out")" 'classes	360232' 'a large number'
for source in most most.csv; do
    expect 1 dl2-transcode identify $source
    said 'label 99999999999 of'
    said 'do not fit into memory'
done

# ---- Lists of classes: by name or by number, and what they lack is named
is "$(numbers listed)" '1 0 1 - - of 2' 'numbers into classes.txt'
is "$(numbers indexed)" '1 0 1 - - of 2' 'numbers and names into label2idx.json'
expect 0 dl2-load check named
said "the label 'bird' of 1 is not in the list of classes"

# ---- A folder numbers classes by name: it is refused where that gives other numbers
expect 1 dl2-transcode --quiet --codec ppm list-plain.csv folder
said "it has no class, but in a folder it would be the folder's name, -1; use --container=tar"
grep -v -- -1 list-plain.csv >classed.csv
expect 1 dl2-transcode --quiet --codec ppm classed.csv folder
said "the number of its class, 10, is 10, but in a folder, whose classes are numbered by name, it would be"
printf 'files/%d.ppm %d\n' 0 0 1 1 2 2 >small.txt
expect 0 dl2-transcode --quiet --codec ppm small.txt folder
is "$(dl2-transcode identify folder/ppm | grep ^classes)" 'classes	3' 'classes of a folder'
exit 0
