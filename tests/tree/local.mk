# SPDX-License-Identifier: BSD-2-Clause
# The tree itself.
TESTS += tests/tree/rooms.sh tests/tree/messages.sh tests/tree/docs.sh tests/tree/snippets.sh tests/tree/spdx.sh tests/tree/adding.sh tests/tree/fields.sh
EXTRA_DIST += tests/tree/adding.sh tests/tree/fields.sh tests/tree/rooms.sh tests/tree/messages.sh tests/tree/messages.txt tests/tree/docs.sh tests/tree/snippets.py tests/tree/snippets.sh tests/tree/snippets.txt \
	tests/tree/spdx.sh
