TESTS += tests/install/install.sh
EXTRA_DIST += tests/install/install.sh
