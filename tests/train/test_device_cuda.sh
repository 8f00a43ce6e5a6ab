# SPDX-License-Identifier: BSD-2-Clause
# The device cuda against the reference, in every precision that it has: where there is a card.
. "$srcdir/tests/lib.sh"
[ -x "$builddir/tests/device/test_device" ] || skip "built without cmocka (Debian: libcmocka-dev)"
exec "$builddir/tests/device/test_device" cuda
