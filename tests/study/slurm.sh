#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# ENGINE=slurm on a real Slurm with two nodes on this machine: the accuracies are those of this machine, a job whose node is killed is
# made again, and a step that fails is told.
. "$srcdir/tests/lib.sh"
plainly
for command in munged slurmctld slurmd sbatch squeue; do
    PATH=$PATH:/usr/sbin command -v $command >/dev/null 2>&1 || skip "$command is not installed (Debian: slurm-wlm, munge)"
done
[ "$(id -u)" -eq 0 ] || skip "Slurm's daemons want root"
id munge >/dev/null 2>&1 || skip "there is no user munge (Debian: munge)"
PATH=$PATH:/usr/sbin
. "$srcdir/tests/study/study_lib.sh"

# ---- A cluster: a controller and two nodes, with ports of their own
cluster=$work/cluster
mkdir -p "$cluster/state" "$cluster/munge"
chmod 755 "$work" "$cluster"
chown munge "$cluster/munge"
dd if=/dev/urandom of="$cluster/munge/key" bs=1024 count=1 2>/dev/null
chown munge "$cluster/munge/key" && chmod 400 "$cluster/munge/key"
port=$((20000 + $$ % 20000))
cat >"$cluster/slurm.conf" <<END
ClusterName=dl2
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=10
MinJobAge=30
KillWait=1
SlurmctldPidFile=$cluster/ctld.pid
SlurmdPidFile=$cluster/%n.pid
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool-%n
SlurmctldLogFile=$cluster/ctld.log
SlurmdLogFile=$cluster/%n.log
NodeName=n1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2
NodeName=n2 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=2
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$cluster/slurm.conf"
end_cluster() {
    [ -z "${first:-}" ] || kill $first 2>/dev/null
    for pid in ctld n1 n2 munge/munged; do
        [ ! -s "$cluster/$pid.pid" ] || kill -KILL "$(cat "$cluster/$pid.pid")" 2>/dev/null
    done
    chmod -R u+rwX "$work" 2>/dev/null
    rm -rf "$work"
}
trap end_cluster EXIT
node() { slurmd -N "$1" >"$cluster/$1.out" 2>&1 || { cat "$cluster/$1.out" >&2; fail "slurmd -N $1"; }; }
su munge -s /bin/sh -c "exec '$(command -v munged)' --key-file='$cluster/munge/key' --socket='$cluster/munge/socket' \
    --pid-file='$cluster/munge/munged.pid' --log-file='$cluster/munge/log' --seed-file='$cluster/munge/seed'" ||
    fail "munged"
slurmctld >"$cluster/ctld.out" 2>&1 || { cat "$cluster/ctld.out" >&2; fail "slurmctld"; }
node n1
node n2
for try in $(seq 100); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
    sleep 0.1
done
[ "$(sinfo -h -t idle -o %D)" = 2 ] || { sinfo; tail "$cluster"/*.log; fail "the cluster does not come up"; }

# ---- The same study here and by Slurm
accuracies() {
    (cd "$1" && grep -E '"(top1|loss|train_bytes)":' $(find train -name experiment_report.json | LC_ALL=C sort))
}
expect 0 study QUALITIES=50 OUT=here
expect 0 study QUALITIES=50 OUT=by-slurm ENGINE=slurm TRAINERS=2 TIMELINE=yes
accuracies here >made && accuracies by-slurm >submitted || fail "no trainings"
diff made submitted || fail "Slurm's trainings are others"
grep -q "The report: $work/by-slurm/report/report.html" out || fail "no answer"
grep -h '"command": ' by-slurm/timelines/*.json | sed 's/.*: "//; s/",//' | LC_ALL=C sort >logged
sed -n 's/^      "name": "\(.*\)",/\1/p' by-slurm/study-plan.json | LC_ALL=C sort >steps
[ -s steps ] && diff steps logged || fail "jobs have no timelines"
grep -q ' steps done$' err || fail "no progress: $(cat err)"
is "$(wc -l <by-slurm/jobs/train)" 4 "the array of trainings"
touch mark
sleep 0.05
expect 0 study QUALITIES=50 OUT=by-slurm ENGINE=slurm TRAINERS=2 TIMELINE=yes
[ -z "$(find by-slurm/train by-slurm/report -newer mark -name '*.json')" ] || fail "made again"

# ---- Trainings before and behind what others need, in a folder of any name
expect 0 study QUALITIES=50 OUT="it's 100% here" ENGINE=slurm TABLES=network SEEDS=1 TRAINERS=2 train
is "$(cat "it's 100% here/jobs/train" "it's 100% here/jobs/train-2" | sed 's,/convnet.*,,' | paste -sd ' ')" \
    'train/raw train/jpeg-50 train/jpeg_network-50' "the arrays of trainings"
[ -f "it's 100% here/jobs/train-2-0.log" ] || fail "no output of a job: $(ls "it's 100% here/jobs")"

# ---- A node is killed while a training runs on it: its job is made again
programs=$work/programs
mkdir "$programs"
for program in dl2-study dl2-transcode dl2-quality dl2-load dl2-report; do ln -s "$builddir/$program" "$programs/"; done
cat >"$programs/dl2-train" <<END
#!/bin/sh
for word; do [ "\$word" != --list ] || exec "$builddir/dl2-train" "\$@"; done
echo "\$SLURMD_NODENAME" >>"$work/began"
if [ ! -e "$work/node-killed" ]; then
    above=\$PPID
    until grep -q slurmstepd /proc/\$above/comm; do above=\$(cut -d ' ' -f 4 /proc/\$above/stat); done
    echo \$above >"$work/stepd"
    sleep 60
fi
exec "$builddir/dl2-train" "\$@"
END
chmod +x "$programs/dl2-train"
study QUALITIES=50 OUT=killed ENGINE=slurm PROGRAMS="$programs" TRAIN_ON= SEEDS=1 TRAINERS=2 train >first.out 2>first.err &
first=$!
until [ -s stepd ]; do
    kill -0 $first 2>/dev/null || { cat first.err; fail "the study has ended"; }
    sleep 0.1
done
dead=$(head -n 1 began)
: >node-killed
kill -KILL "$(cat "$cluster/$dead.pid")"
kill -KILL "$(cat stepd)" # what has begun dl2-study there
scontrol update NodeName="$dead" State=DOWN Reason=killed
wait $first || { cat first.err; fail "the study does not outlive a node"; }
is "$(wc -l <began)" 2 "starts of the training"
grep -q '"completed": *true' killed/train/raw/convnet/seed-1/experiment_report.json || fail "not trained"
scontrol update NodeName="$dead" State=RESUME
node "$dead"

# ---- A step that fails
printf '#!/bin/sh\nfor word; do [ "$word" != --list ] || exec %s "$@"; done\necho no room left >&2\nexit 1\n' \
    "$builddir/dl2-train" >"$programs/dl2-train"
expect 1 study QUALITIES=50 OUT=killed ENGINE=slurm PROGRAMS="$programs" TRAIN_ON= SEEDS='1 2' TRAINERS=2 train
said '  train/raw/convnet/seed-2, which was to make killed/train/'
said 'no room left'
said '1 step failed:'
exit 0
