# SPDX-License-Identifier: BSD-2-Clause
# The study's makefile works in the tree, from any build folder, and installed.
dist_pkgdata_DATA += study/study.mk study/goals.mk study/check.sh study/decide.sh study/measure.sh study/demo-dataset.sh study/packages.sh study/packages.txt
EXTRA_DIST += GNUmakefile bootstrap

# Relative DATASET and OUT start here.
STUDY_FOLDER = .
RUN_STUDY = cd '$(STUDY_FOLDER)' && \
	$(MAKE) --no-print-directory -f '$(abs_top_srcdir)/study/study.mk' PROGRAMS='$(abs_top_builddir)'

# Those that the help texts name.
STUDY_GOALS = $(filter-out clean-study help,$(shell sed -n 's/^.   \([a-z-]*[a-z]\)   *[^ ].*/\1/p' \
	'$(abs_top_srcdir)/study/study.mk' '$(abs_top_srcdir)/study/goals.mk'))
.PHONY: $(STUDY_GOALS) clean-study run-study
$(STUDY_GOALS): run-study
run-study: all
	+@$(RUN_STUDY) $(filter $(STUDY_GOALS),$(MAKECMDGOALS))
clean-study:
	+@$(RUN_STUDY) $@
