# SPDX-License-Identifier: BSD-2-Clause
# The checkpoint reader over real checkpoints, whole and damaged.
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
mkdir corpus
expect 0 run --loader synthetic --images 8 --classes 2 --out run -e 1 -a convnet
# The header and a little of the data: what lies behind is only numbers.
header=$(od -An -t u8 -N 8 run/$CK | tr -d ' ')
head -c $((header + 8 + 4000)) run/$CK >corpus/cut
printf '\002\000\000\000\000\000\000\000{}' >corpus/empty
text='{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}'
{
    printf "\\$(printf %o ${#text})\000\000\000\000\000\000\000"
    printf '%s123456789' "$text"
} >corpus/small
text='{"__metadata__":{"crc32":"00000000","k":"v"},"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}'
{
    printf "\\$(printf %o ${#text})\000\000\000\000\000\000\000"
    printf '%s12345678' "$text"
} >corpus/checked
text='{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]}}'
{
    printf "\\$(printf %o ${#text})\000\000\000\000\000\000\000"
    printf '%s123456' "$text"
} >corpus/half
DL2_FUZZ_SECONDS=5 "$builddir/tests/network/fuzz_safetensors" -runs=0 corpus || fail "fuzz_safetensors"
