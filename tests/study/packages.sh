#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# packages.sh: says what is missing and why; installs through apt-get; silent when all is there.
. "$srcdir/tests/lib.sh"
plainly
mkdir "$work/study" "$work/bin"
cp "$srcdir/study/packages.sh" "$work/study/"
cat >"$work/study/packages.txt" <<LIST
# name needs probe reason
sh-there        build        command:sh            a shell
dl2-no-such     study,check  file:$work/*stalled  a test of what is missing
dl2-other       check        command:dl2-no-such-command  another
LIST
packages() { sh "$work/study/packages.sh" "$@"; }

expect 0 packages build
[ ! -s "$work/out" ] && [ ! -s "$work/err" ] || fail "it speaks though nothing is missing"
expect 1 packages --check build study
grep -q 'dl2-no-such .*a test of what is missing' "$work/err" || fail "the reason isn't said"
grep -q 'apt-get install dl2-no-such$' "$work/err" || fail "the command isn't said"
expect 1 packages --check check
grep -q 'apt-get install dl2-no-such dl2-other$' "$work/err" || fail "not both"

# Every line of the real list can be read: name, needs, probe, reason.
awk '/^[^#]/ && NF { if (NF < 4 || $2 !~ /^[a-z,-]+$/ || $3 !~ /^(command|pkg-config|header|file):/) \
    { print "bad line: " $0; bad = 1 } } END { exit bad }' "$srcdir/study/packages.txt" || fail "packages.txt"

# What README's Python example needs comes with `make study`, but for PyTorch.
for package in python3-dev libdlpack-dev; do
    grep -Eq "^$package +build " "$srcdir/study/packages.txt" || fail "make study doesn't install $package"
done

[ -e /etc/debian_version ] || skip "installing is tested on Debian only"
# What is installed is found, or it would be asked for again and again.
sh "$srcdir/study/packages.sh" --check build study check >"$work/out" 2>"$work/err" ||
    for package in $(sed -n 's/^  \([a-z0-9][^ ]*\) .*/\1/p' "$work/err"); do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ] || fail "$package is installed, and its probe does not find it"
    done
# An apt-get of our own, that "installs" after an update.
cat >"$work/bin/apt-get" <<SCRIPT
#!/bin/sh
echo "\$*" >>"$work/calls"
case "\$*" in
*update*) touch "$work/updated" ;;
*install*) [ -e "$work/updated" ] && touch "$work/installed" ;;
esac
SCRIPT
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work/bin/apt-get" "$work/bin/sudo"
PATH=$work/bin:$PATH; export PATH
expect 3 packages study
grep -q 'dl2-no-such .*a test of what is missing' "$work/out" || fail "what is installed isn't said"
[ "$(grep -c install "$work/calls")" -eq 2 ] || fail "not tried again after the update"
grep -q -- '-y .*install .*dl2-no-such$' "$work/calls" || fail "another call: $(cat "$work/calls")"
: >"$work/calls"
expect 0 packages study
[ ! -s "$work/calls" ] || fail "apt-get is called though all is there"
printf '#!/bin/sh\necho E: no network; exit 100\n' >"$work/bin/apt-get"
rm "$work/installed"
expect 1 packages study
grep -q 'no network' "$work/err" || fail "apt-get's last words aren't shown"
exit 0
