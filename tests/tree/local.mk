# The tree itself.
TESTS += tests/tree/rooms.sh
EXTRA_DIST += tests/tree/rooms.sh
