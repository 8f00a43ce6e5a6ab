# SPDX-License-Identifier: BSD-2-Clause
# dl2-study, and what lies beside its makefile, which works in the tree, from any build folder, and installed.
bin_PROGRAMS += dl2-study
dl2_commands += dl2-study
dl2_study_SOURCES = study/check.c study/child.c study/child.h study/command.c study/decide.c study/decide.h study/dl2_study.c study/engine.h \
	study/goals.c study/goals.h study/make.c study/paths.c study/paths.h study/plan.c study/plan.h study/progress.c \
	study/progress.h study/resolve.c study/setting_forms.c study/settings.c study/settings.h study/slurm.c study/steps.c study/text.c \
	study/text.h study/work.c study/work.h study/work_dataset.c study/work_measure.c study/work_tools.c study/work_training.c study/work_variants.c
dl2_study_CPPFLAGS = $(AM_CPPFLAGS) -DPKGDATADIR='"$(pkgdatadir)"'
dl2_study_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
dl2_study_LDADD = libcommon.la $(XXHASH_LIBS)

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

dist_pkgdata_DATA += study/study.mk study/demo-dataset.sh study/imagenette-dataset.sh study/memory-limit.sh study/packages.sh study/packages.txt
EXTRA_DIST += GNUmakefile bootstrap study/goals

# Relative DATASET and OUT start here.
STUDY_FOLDER = .
RUN_STUDY = cd '$(STUDY_FOLDER)' && \
	$(MAKE) --no-print-directory -f '$(abs_top_srcdir)/study/study.mk' PROGRAMS='$(abs_top_builddir)'
STUDY_GOALS = $(GOALS) new-plan
.PHONY: $(STUDY_GOALS) clean-study run-study
# As in study.mk: or make says of a second goal that there is nothing to do.
$(STUDY_GOALS): run-study
	$(if $(findstring q,$(firstword -$(MAKEFLAGS))),,@:)
run-study: all
	+@$(RUN_STUDY) $(filter $(STUDY_GOALS),$(MAKECMDGOALS))
clean-study:
	+@$(RUN_STUDY) $@
