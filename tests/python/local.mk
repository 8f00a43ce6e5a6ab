# SPDX-License-Identifier: BSD-2-Clause
TESTS += tests/python/optuna.sh tests/python/python.sh tests/python/torch.sh tests/python/wheel.sh
EXTRA_DIST += tests/python/module.sh tests/python/optuna.sh tests/python/python.sh tests/python/test_dl2.py \
	tests/python/test_torch.py tests/python/torch.sh tests/python/train_plain.py tests/python/wheel.sh
