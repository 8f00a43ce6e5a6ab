# SPDX-License-Identifier: BSD-2-Clause
#
# More goals, each a question of its own (docs/study.md). None is a part of `study`; each ends with a
# report of all that is there:
#   study-quality   what accuracy does a quality keep? The study's own trainings, and how many files of
#                   each variant are the source's own
#   study-time      what accuracy does a time buy? Trainings that end after BUDGETS, each with the
#                   machine to itself (OUT/time)
#   study-bytes     strong compression or fewer images? For each of TRAIN_ON trainings on as many of the
#                   original's images as have the variant's bytes (OUT/bytes)
#   study-regimens  is training on variants first, and then on the original, as good as training on the
#                   original for as many epochs? (OUT/regimens)
#   study-codec     is EXTERNAL better than CODECS? Its variants are scored, loaded and trained on, too
#   study-loading   how fast is each variant from memory and from a cold disk, with how many workers, and
#                   what does memory save? The loader alone and with training, in ROUNDS (OUT/loading)
#   forecast        what would training on each variant cost, from trainings on the original alone? They
#                   are validated on every variant, and tuned on it (OUT/forecast)
#
# Their variables:
#   BUDGETS         for example 10m 30m 2h
#   REGIMENS        stages of a training, each a variant (raw: the original) and its epochs, for example
#                   jpeg-10:20,raw:10 jpeg-10:20:size=48,raw:10 (dl2-train --help: --stages)
#   WORKERS         of study-loading: numbers of worker threads; 1, 2, 4... up to JOBS unless named
#   STORAGES        of study-loading: memory (the page cache), disk (evicted before each epoch), or both;
#                   of tables memory alone
#   CACHES          of study-loading: memory for images, in percent of the original's bytes
#   TUNING          options of forecast's tuning, --epochs 1 unless named

# study.mk includes this. A goal's trainings lie in OUT/GOAL/CONDITION/train as the study's own do in
# OUT/train, and are made by its recipe.

.PHONY: study-quality study-time study-bytes study-regimens study-loading study-codec forecast

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

# ---- Is training in stages as good as training on the original?

goal_settings += REGIMENS
stages += regimens
folders += regimens
options_regimens := $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(TRAIN_FLAGS)
stages_of = $(subst $(comma), ,$1)
stage_variant = $(firstword $(subst :, ,$1))
# A folder's name, and the epochs of all stages: jpeg-10.20+raw.10 and 30.
regimen_name = $(subst :,.,$(subst $(comma),+,$(subst =,-,$1)))
regimen_epochs = $(shell printf '%s\n' $(call stages_of,$1) | awk -F: '{ n += $$2 } END { print n }')
# PLACE:20:size=48 of jpeg-10:20:size=48
stage_option = $(call place_of,$(call stage_variant,$1))$(patsubst $(call stage_variant,$1)%,%,$1)
stages_option = $(subst $() ,$(comma),$(strip $(foreach s,$(call stages_of,$1),$(call stage_option,$s))))
regimen_variants = $(foreach s,$(call stages_of,$1),$(call stage_variant,$s))
$(foreach r,$(REGIMENS),$(foreach v,$(filter-out $(names),$(call regimen_variants,$r)),$(error \
    REGIMENS has $r: $v is neither raw nor among the variants $(variants))))
# Of one training and its network and seed: $(call regimen_file,EPOCHS,NAME,NETWORK/SEED)
regimen_file = $(out)/regimens/$1/train/$2/$3/experiment_report.json
trainees := $(foreach a,$(ARCHS),$(foreach s,$(SEEDS),$a/seed-$s))
regimen_lengths := $(sort $(foreach r,$(REGIMENS),$(call regimen_epochs,$r)))
regimens_files := $(foreach t,$(trainees),$(foreach e,$(regimen_lengths),$(call regimen_file,$e,raw,$t)))
$(foreach e,$(regimen_lengths),$(eval $(foreach t,$(trainees),$(call regimen_file,$e,raw,$t)): private lasting := --epochs $e))
$(foreach r,$(REGIMENS),$(eval own := $(foreach t,$(trainees),$(call \
    regimen_file,$(call regimen_epochs,$r),$(call regimen_name,$r),$t)))$(eval \
    regimens_files += $(own))$(eval \
    $(own): private lasting :=)$(eval \
    $(own): private trained_on := --stages $(call stages_option,$r))$(eval \
    $(own): private variant := $(lastword $(call regimen_variants,$r)))$(eval \
    $(own): $(foreach v,$(filter-out raw,$(sort $(call regimen_variants,$r))),$(out)/variants/$v/dl2-variant.json)))
$(regimens_files): $(made)/dataset $(made)/regimens
$(call take_turns,$(regimens_files))
$(call cut_short,completed,$(regimens_files)): FORCE
$(regimens_files): $(out)/regimens/%/experiment_report.json:
	$(train_it)
study-regimens: $(regimens_files)
	$(report_it)
	@$(said_where)
ifneq ($(filter study-regimens,$(goals)),)
$(if $(strip $(REGIMENS)),,$(error study-regimens needs REGIMENS, for example REGIMENS="jpeg-10:20,raw:10"))
endif

# ---- What would training on a variant cost?

TUNING ?= --epochs 1
goal_settings += $(if $(filter forecast,$(goals)),TUNING)
stages += forecast
folders += forecast
options_forecast := $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(TUNING) $(TRAIN_FLAGS)
# Two trainings on the original tell how much chance there is: those of DECIDE's first look.
forecasters := $(foreach a,$(ARCHS),$(foreach s,$(wordlist 1,2,$(shell printf '%s\n' $(SEEDS) | sort -n)),$a/seed-$s))
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
.PHONY: forecast-trainings
forecast-trainings: $(forecast_files) $(forecasters:%=$(out)/train/raw/%/evaluation/evaluation_report.json)
forecast: forecast-trainings
	$(report_it)
	@$(said_where)

# ---- What accuracy does a quality keep?

study-quality: $(variant_files) $(quality_files) $(run_files)
	$(report_it)
	@$(said_where)

# ---- Strong compression or fewer images?

# The subset has the part of the original's bytes that the variant has, as its training says.
stages += bytes
folders += bytes
options_bytes := $(EPOCHS) $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(TRAIN_FLAGS)
condition = $(word 1,$(subst /, ,$*))
twin = $(out)/train/$1/$(call part,$(@D),2)/$(call part,$(@D),3)/experiment_report.json
bytes_of = sed -n 's/^ *"train_bytes": *\([0-9]*\),*$$/\1/p' $(call twin,$1)
bytes_files := $(foreach v,$(TRAIN_ON),$(foreach a,$(ARCHS),$(foreach s,$(SEEDS),\
    $(out)/bytes/$v/train/raw/$a/seed-$s/experiment_report.json)))
$(foreach v,$(TRAIN_ON),$(foreach a,$(ARCHS),$(foreach s,$(SEEDS),$(eval \
    $(out)/bytes/$v/train/raw/$a/seed-$s/experiment_report.json: \
    $(out)/train/$v/$a/seed-$s/experiment_report.json $(out)/train/raw/$a/seed-$s/experiment_report.json))))
$(bytes_files): private trained_on = --data $(source) --subset $$({ $(call bytes_of,$(condition)); $(call bytes_of,raw); } | \
    awk 'NR == 1 { own = $$1 } NR == 2 { printf "%.6g", own < $$1 ? 100 * own / $$1 : 100 }')%
$(bytes_files): $(made)/bytes
$(call take_turns,$(bytes_files))
$(call cut_short,completed,$(bytes_files)): FORCE
$(bytes_files): $(out)/bytes/%/experiment_report.json:
	$(train_it)
study-bytes: $(bytes_files)
	$(report_it)
	@$(said_where)

# ---- Is another codec better?

study-codec: $(variant_files) $(quality_files) $(load_files) $(run_files)
	$(report_it)
	@$(said_where)
ifneq ($(filter study-codec,$(goals)),)
$(if $(strip $(EXTERNAL)),,$(error study-codec needs EXTERNAL, for example EXTERNAL='cjxl=cjxl %i %o -q %q; djxl %i %o'))
endif

# ---- How fast is each variant, from what storage? A server's memory can't be emptied, so tables have no disk.

WORKERS ?= $(shell n=1; while [ $$n -lt $(JOBS) ] 2>&-; do echo $$n; n=$$((2 * n)); done; echo $(JOBS))
WORKERS := $(WORKERS)
tables := $(call table_of,$(DATASET))$(table)
STORAGES ?= memory $(if $(tables),,disk)
CACHES ?= 0 25 50 75 100
goal_settings += $(if $(filter study-loading,$(goals)),WORKERS STORAGES CACHES)
stages += loading
folders += loading
options_loading := $(names) $(ARCHS) $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(JOBS) $(ROUNDS) $(MEASURE) $(WORKERS) $(STORAGES) \
    $(CACHES) $(LOAD_FLAGS) $(TRAIN_FLAGS)
loading_file := $(out)/loading/.made
# What memory saves is a matter of whole epochs, and not of chance: once, from a disk that nothing else caches.
$(loading_file): private cells = \
    for s in $(STORAGES); do cold=; [ $$s = memory ] || cold=--cold; for w in $(WORKERS); do for n in $(names); do \
    at=$$(place $$n); echo load $$s/jobs-$$w/load/$$n $$w $$at --measure $(MEASURE) $$cold; \
    for a in $(ARCHS); do echo $$a $$s/jobs-$$w/$$a/$$n $$w $$at $$cold; done; done; done; done; \
    for c in $(CACHES); do for n in $(names); do \
    echo once cache-$$c/jobs-$(JOBS)/load/$$n $(JOBS) $$(place $$n) --epochs 2 $(if $(tables),,--cold) --cache $$c%; done; done
$(loading_file): $(made)/loading $(made)/dataset $(variant_files)
	$(measure_it)
study-loading: $(loading_file)
	$(report_it)
	@$(said_where)
ifneq ($(filter study-loading,$(goals)),)
$(if $(and $(tables),$(filter disk,$(STORAGES))),$(error STORAGES names disk, and a server keeps tables in its own \
    memory: leave it out))
endif

settings += $(goal_settings)
