# SPDX-License-Identifier: BSD-2-Clause
#
# More goals, each a question of its own (docs/study.md). None is a part of `study`; each ends with a
# report of all that is there:
#   study-time   what accuracy does a time buy? Trainings that end after BUDGETS, each with the machine
#                to itself (OUT/time)
#
# Their variables:
#   BUDGETS      for example 10m 30m 2h

# study.mk includes this. A goal's trainings lie in OUT/GOAL/CONDITION/train as the study's own do in
# OUT/train, and are made by its recipe.

.PHONY: study-time

# ---- What accuracy does a time buy?

goal_settings += BUDGETS
stages += time
folders += time
options_time := $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(JOBS) $(TRAIN_FLAGS)
time_files := $(foreach b,$(BUDGETS),$(runs:%=$(out)/time/$b/train/%/experiment_report.json))
$(time_files): lock = $(alone)
$(time_files): at_once := 1
$(time_files): trainer := alone
$(time_files): lasting = --time-budget $(word 1,$(subst /, ,$*))
$(time_files): $(made)/time
$(foreach b,$(BUDGETS),$(call on_their_data,$(out)/time/$b,$(time_files)))
$(call cut_short,completed,$(time_files)): FORCE
$(time_files): $(out)/time/%/experiment_report.json:
	$(train_it)
study-time: $(time_files)
	$(report_it)
	@$(said_where)
ifneq ($(filter study-time,$(goals)),)
$(if $(strip $(BUDGETS)),,$(error study-time needs BUDGETS, for example BUDGETS="10m 30m 2h"))
endif

settings += $(goal_settings)
