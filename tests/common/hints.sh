# SPDX-License-Identifier: BSD-2-Clause
# What is no option, or goes by another name elsewhere, is answered by the option that is meant.
. "$srcdir/tests/lib.sh"
cd "$work" || exit 99
hint() { # TEXT COMMAND...
    text=$1
    shift
    expect 2 "$@"
    said "$text"
}
hint "there is no option '--batch-size'; did you mean --batch=N (Number of images per batch and process)?" dl2-train -d data --batch-size 32
hint "'--learning-rate'; did you mean --lr=RATE (Peak learning rate)?" dl2-train -d data --learning-rate=0.1
hint "'--learing_rate'; did you mean --lr=RATE" dl2-train -d data --learing_rate 0.1
hint "'--ecpohs'; did you mean --epochs=N" dl2-train -d data --ecpohs 3
hint "'--image_size'; did you mean --image-size=SIZE" dl2-train -d data --image_size 3
hint "'--model'; did you mean --arch=NAME (Architecture)?" dl2-train -d data --model resnet50
hint "'--transform'; did you mean --augment=NAME" dl2-train -d data --transform vflip
hint "'--batch-size'; did you mean --batch=IMAGES" dl2-load bench data --batch-size 3
hint "'--quality'; did you mean --q=" dl2-transcode --quality 50 data out
hint "'--metrc'; did you mean --metrics=" dl2-quality --metrc ssim data out
hint "'--tolerence'; did you mean --tolerance=" dl2-report --tolerence 1 data
hint "'--sedes'; did you mean --seeds=" dl2-study run --sedes 1
for program in load quality report study train transcode; do
    hint "did you mean --jobs=N (Number of worker threads)?" dl2-$program --num-workers 4 data
    hint "did you mean --quiet" dl2-$program --quite data
    expect 2 dl2-$program --zzzzzzzz data
    said "there is no option '--zzzzzzzz'"
    ! grep -q 'did you mean' "$work/err" || fail "a far-fetched hint: $(cat "$work/err")"
done

# Commands: the first argument, wherever options stand; an option of others is named, also by its start and its letter.
hint "the command comes first: one of bench, check, analyze" dl2-load
hint "there is no command 'chek'; did you mean check?" dl2-load chek data
hint "the command comes first: one of bench, check, analyze, not 'data'" dl2-load --quiet data
for option in --q=5 '-q 5'; do
    # shellcheck disable=SC2086
    hint "--q is not an option of the command copy, but of recompress, frames" dl2-transcode --quiet copy $option a b
done
hint "--sensitivity is not an option of the command copy, but of fit-tables" dl2-transcode copy --sens 5 a b
expect 1 dl2-transcode -q 5 --quiet -- copy nowhere # a folder of a command's name
said 'copy: No such file or directory'

# A value where there is none to give: the long name is known.
for option in quiet val drop-last gray; do
    hint "option '--$option' doesn't allow an argument" dl2-load bench "--$option=3" data
done

# As before: the start of one option's name is the option, of several an error that lists them; a value and a word behind
# "--" are no options, and names are shown without what a terminal would act on.
expect 0 dl2-train --epo 3 --list devices
hint "option '--image' is ambiguous" dl2-train --image 3
expect 0 dl2-train --name --batch-size --list devices
expect 1 dl2-load check -- --batch-size
said '--batch-size'
hint "there is no option '--a" dl2-train "$(printf -- '--a\033[31m=3')"
! grep -q "$(printf '\033')" "$work/err" || fail "a raw escape"
hint "there is no option '--lr\\xff" dl2-train "$(printf -- '--lr\377')"

exit 0
