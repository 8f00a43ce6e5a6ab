# SPDX-License-Identifier: BSD-2-Clause
# tests of study
STUDY_TESTS = tests/study/packages.sh tests/study/demo_dataset.sh tests/study/demo_torch.sh tests/study/study.sh tests/study/failures.sh \
	tests/study/settings.sh tests/study/decide.sh tests/study/goals.sh \
	tests/study/time_regimens.sh tests/study/hypotheses.sh tests/study/measure_order.sh tests/study/encode_goals.sh tests/study/encode_limit.sh tests/study/loading.sh tests/study/loaders.sh tests/study/clips.sh \
	tests/study/packed_source.sh tests/study/parquet_source.sh tests/study/table_source.sh tests/study/store_source.sh tests/study/resolution.sh tests/study/tables.sh tests/study/kill.sh tests/study/slurm.sh tests/study/samples.sh tests/study/volumes.sh \
	tests/study/trainer.sh tests/study/results.sh tests/study/trainer_kill.sh tests/study/inference.sh tests/study/own_script.sh tests/study/timeline.sh
TESTS += $(STUDY_TESTS)
EXTRA_DIST += $(STUDY_TESTS) tests/study/study_lib.sh tests/study/own_script.py
