# SPDX-License-Identifier: BSD-2-Clause
TESTS += tests/install/install.sh
EXTRA_DIST += tests/install/install.sh
