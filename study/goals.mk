# SPDX-License-Identifier: BSD-2-Clause
#
# More goals, each a question of its own (docs/study.md). None is a part of `study`; each ends with a
# report of all that is there:
#   study-time   what accuracy does a time buy? Trainings that end after BUDGETS, each with the machine
#                to itself (OUT/time)
#   forecast     what would training on each variant cost, from trainings on the original alone? They
#                are validated on every variant, and tuned on it (OUT/forecast)
#
# Their variables:
#   BUDGETS      for example 10m 30m 2h
#   TUNING       options of forecast's tuning, --epochs 1 unless named

# study.mk includes this. A goal's trainings lie in OUT/GOAL/CONDITION/train as the study's own do in
# OUT/train, and are made by its recipe.

.PHONY: study-time forecast

# ---- What accuracy does a time buy?

goal_settings += BUDGETS
stages += time
folders += time
options_time := $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(JOBS) $(TRAIN_FLAGS)
time_files := $(foreach b,$(BUDGETS),$(runs:%=$(out)/time/$b/train/%/experiment_report.json))
$(time_files): private lock = $(alone)
$(time_files): private at_once := 1
$(time_files): private trainer := alone
$(time_files): private lasting = --time-budget $(word 1,$(subst /, ,$*))
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

# ---- What would training on a variant cost?

TUNING ?= --epochs 1
goal_settings += $(if $(filter forecast,$(goals)),TUNING)
stages += forecast
folders += forecast
options_forecast := $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(TUNING) $(TRAIN_FLAGS)
# Two trainings on the original tell how much chance there is.
forecasters := $(foreach a,$(ARCHS),$(foreach s,$(wordlist 1,2,$(SEEDS)),$a/seed-$s))
forecast_files := $(foreach n,raw $(TRAIN_ON),$(forecasters:%=$(out)/forecast/tuned/train/$n/%/experiment_report.json))
$(foreach f,$(forecasters),$(eval $(filter %/$f/experiment_report.json,$(forecast_files)): \
    $(out)/train/raw/$f/experiment_report.json))
$(forecast_files): private lasting = --pretrained $(out)/train/raw/$(call part,$(@D),2)/$(call part,$(@D),3)/checkpoint.safetensors \
    $(TUNING)
$(forecast_files): $(made)/forecast
$(call on_their_data,$(out)/forecast/tuned,$(forecast_files))
$(call take_turns,$(forecast_files))
$(call cut_short,completed,$(forecast_files)): FORCE
$(forecast_files): $(out)/forecast/%/experiment_report.json:
	$(train_it)
forecast: $(forecast_files) $(forecasters:%=$(out)/train/raw/%/evaluation/evaluation_report.json)
	$(report_it)
	@$(said_where)

settings += $(goal_settings)
