# SPDX-License-Identifier: BSD-2-Clause
TESTS += tests/bundle/bundle.sh
EXTRA_DIST += tests/bundle/bundle.sh
