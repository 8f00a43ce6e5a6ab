# SPDX-License-Identifier: BSD-2-Clause
# The tree itself.
TESTS += tests/tree/rooms.sh tests/tree/docs.sh
# Not among TESTS until each source file has its line.
EXTRA_DIST += tests/tree/rooms.sh tests/tree/docs.sh tests/tree/spdx.sh
