TESTS += tests/bundle/bundle.sh
EXTRA_DIST += tests/bundle/bundle.sh
