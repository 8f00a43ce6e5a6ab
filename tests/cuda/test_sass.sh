# SPDX-License-Identifier: BSD-2-Clause
# What the compiler made of the kernels for compute capability 9.0: no stack frames, nothing spilled, and accesses of 16
# bytes in all that moves whole tensors. The log has the registers of each. (Tensor cores are used by cuDNN and cublasLt,
# not by these kernels.)
. "$srcdir/tests/lib.sh"
[ -n "${NVCC:-}" ] || skip "no nvcc"
nvcc=${NVCC##* }
"$nvcc" --list-gpu-code 2>/dev/null | grep -q sm_90 || skip "this nvcc knows no sm_90"
PATH=$PATH:$(dirname "$nvcc")
cd "$work" || exit 99
for source in "$srcdir"/cuda/*.cu "$srcdir"/cuda/decode/*.cu; do
    name=$(basename "$source" .cu)
    "$nvcc" -O3 -gencode=arch=compute_90,code=sm_90 -Xptxas -v --keep -I"$srcdir" -cubin -o "$name.cubin" "$source" \
        >"$name.txt" 2>&1 || { cat "$name.txt" >&2; fail "nvcc $source"; }
    grep 'bytes stack frame' "$name.txt" >frames || fail "ptxas says nothing of $name"
    grep -v ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' frames && fail "$name uses the stack"
    # Function, its registers.
    sed -n "s/.*Compiling entry function '\([^']*\)'.*/\1/p; s/.*Used \([0-9]*\) registers.*/\1/p" "$name.txt" |
        paste - - >"$name.registers"
    # Function, its 16-byte loads and stores: of machine code where a disassembler is at hand, of PTX otherwise.
    if command -v cuobjdump >/dev/null && command -v nvdisasm >/dev/null; then
        cuobjdump -sass "$name.cubin" >"$name.code" || fail "cuobjdump"
        what='machine code'
    else
        cp "$name.ptx" "$name.code"
        what=PTX
    fi
    awk '/Function :/ { f = $3 } /\.entry/ { f = $0; sub(/.*\.entry */, "", f); sub(/\(.*/, "", f) }
        f { n[f] += 0 } /LDG\.E\.128|ld\.global.*\.v4\./ { l[f]++ } /STG\.E\.128|st\.global.*\.v4\./ { s[f]++ }
        END { for (f in n) print f, l[f] + 0, s[f] + 0 }' "$name.code" >"$name.wide"
done
# wide FUNCTIONS LOADS STORES: each of them has as many at least.
wide() {
    cat ./*.wide | grep -E "$1" >found || fail "there is no kernel $1"
    awk -v l="$2" -v s="$3" '$2 < l || $3 < s { print; bad = 1 } END { exit bad }' found || fail "narrow accesses in $what"
}
wide 'each.*(7convert|7dropout|5scale)' 1 1
wide 'each.*(17activate_backward|3add|5widen)' 2 1
wide 'each.*6smooth' 1 1
wide 'each.*15smooth_backward' 2 1
wide 'each.*6updateI.*13dl2_optimizer0E' 3 3
wide 'each.*6updateI.*13dl2_optimizer[12]E' 4 4
wide 'each.*4clip' 1 1
wide 'each.*15check_gradients' 1 0
wide 'map_rowsILi[48].*(10norm_apply|18norm_backward_data)' 2 1
wide 'sum_rowsI.*Li[48]ELi2' 2 0
wide '(10layer_norm|24layer_norm_backward_data)I.*Li[48]E' 4 1
wide '(7softmax|16softmax_backward)I' 3 1
wide 'map_rowsILi[48].*13add_positions' 2 1
wide '15tokens_backwardI.*Li[48]E' 1 1
wide '(8max_pool|12average_pool|17max_pool_backward|21average_pool_backward)I.*Li[48]E' 1 1
wide 'ingestI.*Li[48]E' 0 1
echo "registers, by kernel:"
cat ./*.registers | (c++filt 2>/dev/null || cat) | sort -k 1
awk '{ if ($NF > most) most = $NF } END { print "at most", most }' ./*.registers
