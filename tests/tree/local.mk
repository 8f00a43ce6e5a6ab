# SPDX-License-Identifier: BSD-2-Clause
# The tree itself.
TESTS += tests/tree/rooms.sh tests/tree/docs.sh tests/tree/spdx.sh
EXTRA_DIST += tests/tree/rooms.sh tests/tree/docs.sh tests/tree/spdx.sh
