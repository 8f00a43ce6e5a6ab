# SPDX-License-Identifier: BSD-2-Clause
# plan: one epoch of each model in a folder of its own, and a prediction for all ways; the trainings themselves are
# left alone. (Simulated times are held to worked-out ones by test_makespan.)
. "$srcdir/tests/lib.sh"
. "$srcdir/tests/train/train_lib.sh"
make_images data 3 25 7 8
cat >configs <<'EOF'
{"name": "a", "epochs": 4}
{"name": "b", "lr": 0.02}
{"name": "c", "epochs": 0.5}
EOF
plan() { run plan -d data --seed 1 --configs configs --ranks 2 --out hop "$@"; }
expect 0 plan
grep -q '^3 models on 2 ranks, predicted from their first epochs' "$work/out" || fail "no prediction: $(cat "$work/out")"
for way in --hop 'hopping with a barrier' --task; do
    grep -q -- "^  $way  *[0-9.]* m*s*[a-z0-9 ]*, ranks busy for [0-9]*% of it$" "$work/out" ||
        fail "no line for $way: $(cat "$work/out")"
done
is "$(ls hop)" plan "what plan leaves"
is "$(wc -l <hop/plan/visits.jsonl)" 5 "visits, one of them of half an epoch"
is "$(field hop/plan/a/$REPORT completed)" false "a run of four epochs"
expect 0 plan # begins anew
is "$(wc -l <hop/plan/visits.jsonl)" 5 "visits of the second plan"
expect 2 plan --rank-speeds 1,1,1
said '--rank-speeds has 3 numbers for 2 ranks'
for wrong in 1,0 1,x 1, ''; do
    expect 2 plan --rank-bandwidth "$wrong"
    said 'is not a list of'
done
# On ranks that are a thousand times as slow, and over links of a byte in ten seconds, it takes as much longer.
seconds() { # WAY: of what was printed, to the minute above an hour
    sed -n "s/^  $1  *\(.*\), ranks busy.*/\1/p" "$work/out" | awk '{ for (i = 1; i < NF; i += 2) s += $i * ($(i + 1) == "h" ? 3600 : $(i + 1) == "min" ? 60 : 1) } END { print s }'
}
expect 0 plan --rank-speeds 0.0001,0.0001
[ "$(seconds --task | cut -d. -f1)" -ge 10 ] || fail "slow ranks: $(cat "$work/out")"
expect 0 plan --rank-bandwidth 1e-7,1e-7
bytes=$(wc -c <hop/plan/c/checkpoint.safetensors) # 2 visits, to and fro, 0.1 bytes a second
[ "$(seconds --hop | cut -d. -f1)" -ge $((bytes * 40)) ] || fail "slow links: $(cat "$work/out")"
expect 2 plan --resume
said '--resume is not an option of the command plan'
expect 2 run plan -d data --configs configs --task --ranks 2
said '--task is not an option of the command plan, but of several, search'
echo '{"lr": [0.1, 0.2], "seed": [1, 2]}' >space
expect 2 run plan -d data --space space --algorithm halving --ranks 2 --out search
said 'depends on results'
expect 0 run plan -d data --space space --algorithm grid --max-concurrent 2 --ranks 2 --out search
grep -q '^4 models on 2 ranks' "$work/out" || fail "of a search: $(cat "$work/out")"
is "$(ls search)" plan "what plan of a search leaves"
