# SPDX-License-Identifier: BSD-2-Clause
# tests of load
TESTS += tests/load/analyze.sh tests/load/load.sh tests/load/volumes.sh tests/load/plugin.sh tests/load/valgrind.sh
EXTRA_DIST += tests/load/analyze.sh tests/load/load.sh tests/load/volumes.sh tests/load/plugin.sh tests/load/valgrind.sh
