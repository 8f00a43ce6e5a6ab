# SPDX-License-Identifier: BSD-2-Clause
# dl2-study, and the scripts that it runs.
bin_PROGRAMS += dl2-study
dl2_commands += dl2-study
dl2_study_SOURCES = study/check.c study/child.c study/child.h study/command.c study/decide.c study/decide.h study/dl2_study.c \
	study/engine.h study/goals.c study/goals.h study/local_engine.c study/paths.c study/paths.h study/plan.c study/plan.h study/plan_file.c \
	study/progress.c study/progress.h study/readers.c study/resolve.c study/result.c study/result.h study/result_values.c \
	study/setting_forms.c study/settings.c study/settings.h study/slurm.c study/steps.c study/text.c study/text.h study/trainer.c \
	study/trainer.h study/trainer_command.c study/work.c study/work.h study/work_dataset.c study/work_measure.c study/work_tools.c \
	study/work_trainer.c study/work_training.c study/work_variants.c
dl2_study_CPPFLAGS = $(AM_CPPFLAGS) -DPKGDATADIR='"$(pkgdatadir)"'
dl2_study_LDADD = libcommon.la

# A goal is a file in study/goals/, called as the goal is: they are found, so that a new one is named nowhere else.
GOAL_FILES = $(sort $(wildcard $(srcdir)/study/goals/*.c))
GOALS = $(basename $(notdir $(GOAL_FILES)))
study/goals_found.h: $(GOAL_FILES) Makefile
	$(AM_V_at)$(MKDIR_P) study
	$(AM_V_GEN){ for goal in $(GOALS); do echo "#include \"study/goals/$$goal.c\""; done; \
	    echo 'static const struct dl2_goal *const found[] = {'; \
	    for goal in $(GOALS); do echo "    &goal_$$goal," | tr - _; done; echo '};'; } >$@.new
	$(AM_V_at)mv $@.new $@
BUILT_SOURCES += study/goals_found.h
CLEANFILES += study/goals_found.h

dist_pkgdata_DATA += study/demo-clips-dataset.sh study/demo-dataset.sh study/imagenette-dataset.sh study/memory-limit.sh study/peer_load.py study/packages.sh study/packages.txt
EXTRA_DIST += GNUmakefile bootstrap study/demo-torch.sh study/goals

# Each goal is a target; make's variables reach the program through the environment. csh exports a `group` of its own.
# Relative DATASET and OUT start in STUDY_FOLDER.
STUDY_FOLDER = .
STUDY_GOALS = $(GOALS) new-plan clean-study
.PHONY: $(STUDY_GOALS) run-study
$(STUDY_GOALS): run-study
	@:
run-study: all
	@cd '$(STUDY_FOLDER)' && $(if $(filter environment,$(origin GROUP)),unset GROUP &&) \
	    exec '$(abs_top_builddir)/dl2-study' run --checkout '$(abs_top_srcdir)' $(filter $(STUDY_GOALS),$(MAKECMDGOALS))

.PHONY: demo-torch
demo-torch:
	@sh '$(srcdir)/study/demo-torch.sh' --check
	@$(MAKE) $(AM_MAKEFLAGS) all
	@cd '$(STUDY_FOLDER)' && exec sh '$(abs_top_srcdir)/study/demo-torch.sh' '$(abs_top_builddir)'
