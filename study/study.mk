# SPDX-License-Identifier: BSD-2-Clause
# How far can this dataset be compressed, and what does it cost?
#
#   make -f study.mk [GOAL] [VARIABLE=value ...]        in a dl2 checkout: make GOAL VARIABLE=value ...
#
# Goals, each with what it needs:
#   study        everything; ends with the report (the default)
#   survey       what is in the dataset: formats, sizes, JPEG qualities, near duplicates, unreadable files
#                (OUT/survey.txt); not a part of `study`
#   variants     the dataset transcoded with every codec at every quality
#   quality      PSNR and SSIM of every variant
#   load         the input pipeline's speed on every variant and on the original
#   throughput   how fast each variant loads and trains, measured with the machine to itself, in rounds
#                of all variants (OUT/throughput)
#   analyze      what training from each variant would wait for, without training: storage, decoding or
#                the device (OUT/analysis/NETWORK.txt); not a part of `study`
#   train        every network, from every seed, on every variant and on the original
#   matrix       each of these networks validated on every variant and on the original, without training
#                (train/.../evaluation); not a part of `study`
#   report       OUT/report/report.html and the plots beside it
#   new-plan     gives up the plan that a report wrote (OUT/report/plan.json): the next one is the first
#                look of another, and says that a plan was given up
#   clean-study  deletes what a study made in OUT, also its plan
#   help         this text, and more goals
#
# Variables:
#   DATASET      demo           pieces of the photographs of Debian's lomiri-wallpapers-16.04
#                fashion-mnist  Debian's dataset-fashion-mnist
#                imagenette     downloaded (about 95 MB)
#                a folder       train/CLASS/... and val/CLASS/..., or CLASS/... that is then split;
#                               or of tar shards or GulpIO chunks; or one such file
#                a table        postgresql://HOST/DATABASE?table=NAME, without a password
#   OUT          where all results go: study-out/DATASET, or study-out/NAME of a table
#   VARIANTS     where variants go, if not to OUT/variants: postgresql://HOST/DATABASE?table=NAME makes
#                them the tables NAME_CODEC_QUALITY, which clean-study leaves there
#   CODECS       jpeg webp avif jp2, or some of them
#   EXTERNAL     one more codec, as two commands: 'cjxl=cjxl %i %o -q %q; djxl %i %o' (docs/transcode.md)
#   QUALITIES    1 to 100, higher is better, the same for all codecs
#   TRAIN_ON     variants to train on, all unless named: jpeg-10 webp-50 ...
#   ARCHS        networks, as `dl2-train --list archs` names them
#   EPOCHS       of each training
#   SEEDS        of the trainings, 1 2 3 4 unless named; two at least, so that chance can be told from
#                effect; two are rarely enough
#   DECIDE       yes: begins with two of SEEDS (1 to 8 unless named) and adds seeds only to variants
#                whose verdict is open, until none is
#   FORECAST     yes, with DECIDE: makes `forecast`, and trains what it finds to lose too much last
#   BUDGET       with DECIDE: 90s, 30m or 2h, after which no more seeds are added
#   IMAGE_SIZE   pixels that the networks see, squared
#   BATCH        images a step
#   DEVICE       auto, or what `dl2-train --list devices` names
#   JOBS         threads in all
#   TRAINERS     trainings at once; each has JOBS / TRAINERS threads
#   ROUNDS       of throughput; two at least, so that rates have intervals; with an even number a steady
#                drift of the machine favours no variant
#   MEASURE      seconds of each of its measurements, and as many before to warm up
#   TOLERANCE    points of top-1 accuracy that may be lost, for the report's recommendation
#   GROUP        validation images that count as one in the report: what `dl2-report --group` takes, or
#                survey, the groups of near duplicates that `survey` finds
#   TRANSCODE_FLAGS, QUALITY_FLAGS, LOAD_FLAGS, TRAIN_FLAGS, REPORT_FLAGS   further options
#   PROGRAMS     folder of the programs: beside this file or on the PATH
#   V            1 shows the commands
#
# Files are what make goes by: what is there and up to date isn't made again, whatever was
# interrupted is gone on with, and a changed variable redoes what depends on it. Images that are
# deleted from DATASET are deleted from the variants. OUT belongs to one dataset, and to one make at
# a time; neither OUT nor DATASET may lie in the other. All variables are checked before anything is made.

DATASET ?= demo
# table=NAME of a table's address; nothing of a path
table_of = $(if $(filter postgresql://% postgres://%,$1),$(firstword $(filter table=%,$(subst ?, ,$(subst &, ,$1))) table=))
called := $(or $(patsubst table=%,%,$(call table_of,$(DATASET))),$(notdir $(lastword $(abspath $(DATASET)))))
OUT ?= study-out/$(called)
CODECS ?= $(or $(codecs_$(DATASET)),jpeg)
QUALITIES ?= $(or $(qualities_$(DATASET)),10 25 50 75 85)
TRAIN_ON ?= $(variants)
ARCHS ?= $(or $(archs_$(DATASET)),resnet10)
EPOCHS ?= $(or $(epochs_$(DATASET)),30)
SEEDS ?= $(or $(if $(DECIDE),1 2 3 4 5 6 7 8),$(seeds_$(DATASET)),1 2 3 4)
IMAGE_SIZE ?= $(or $(image_size_$(DATASET)),64)
BATCH ?= $(or $(batch_$(DATASET)),64)
DEVICE ?= auto
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
TRAINERS ?= $(if $(filter auto ref cpu,$(DEVICE)),$(shell \
    seeds=$(words $(SEEDS)); [ $$seeds -lt $(JOBS) ] 2>&- && echo $$seeds || echo $(JOBS)),1)
TOLERANCE ?= $(or $(tolerance_$(DATASET)),1)
TRAIN_FLAGS ?= $(train_flags_$(DATASET))
ROUNDS ?= 5
MEASURE ?= $(or $(measure_$(DATASET)),2)

# The demo is to end within minutes on two processors, and yet to say something: small images, crops
# that keep most of one, and a tolerance that 1,306 validation images can tell.
codecs_demo := jpeg webp
qualities_demo := 5 25 75
archs_demo := convnet
epochs_demo := 6
image_size_demo := 32
batch_demo := 32
train_flags_demo := --crop-area 0.5,1 --validate-every 3
tolerance_demo := 2
measure_demo := 0.5
about_demo := The images are tiles of 15 photographs, and which photograph a tile is cut out of is its class. The \
    tiles for validation are from other parts of the same photographs as those for training, so the answer is about \
    these photographs, not about photographs in general.
archs_fashion-mnist := convnet
epochs_fashion-mnist := 5
image_size_fashion-mnist := 28

# Worked out by a shell once, and not at every use.
JOBS := $(JOBS)
TRAINERS := $(TRAINERS)

# Make splits its list of makefiles at blanks: this file is the longest end of the list that is one.
quote = '$(subst ','\'',$1)'
hash := \#
this := $(shell path=$(call quote,$(MAKEFILE_LIST)); until [ -f "$$path" ]; do \
    rest=$${path$(hash)* }; [ "$$rest" != "$$path" ] || break; path=$$rest; done; printf %s "$$path")
here := $(shell dirname -- $(call quote,$(this)))/
goals := $(or $(MAKECMDGOALS),study)

.PHONY: study survey variants quality load throughput analyze train matrix report new-plan clean-study help FORCE
.SUFFIXES:
study: report

ifneq ($(filter-out help,$(goals)),)

# ---- What was asked for

# Commands and results show addresses.
has_password = $(shell address=$(call quote,$1); case $$address in (*password=*) echo yes ;; (postgres*://*) \
    user=$${address$(hash)*//}; case $${user%%/*} in (*:*@*) echo yes ;; esac ;; esac)
$(foreach v,DATASET VARIANTS GROUP,$(if $(call has_password,$($v)),$(error $v has a password, which commands and \
    results would show: leave it to ~/.pgpass or a service file)))
# Make's file names can't have blanks or its own punctuation; in an address they are written as in any URI.
comma := ,
punctuation := " ' \ ; | < > * ( ) { } ` ! ~ $(hash) $$
without = $(if $(word 2,[$($1)]),$(error $1 is "$($1)": make can't work with blanks in $3 any))$(foreach c,$2,$(if \
    $(findstring $c,$($1)),$(error $1 is "$($1)": make can't work with $c in $3 it)))$(if $(strip $($1)),,$(error \
    $1 is empty))
one_word = $(call without,$1,: % & ? [ ] = $(punctuation),a path; use a symbolic link without)
one_address = $(call without,$1,$(comma) $(punctuation),an address; write a percent sign and two digits instead of)
$(call $(if $(call table_of,$(DATASET)),one_address,one_word),DATASET)
$(call one_word,OUT)
table := $(call table_of,$(VARIANTS))
$(if $(VARIANTS),$(if $(table),$(call one_address,VARIANTS),$(error VARIANTS is "$(VARIANTS)": name a table, \
    postgresql://HOST/DATABASE?table=NAME, or leave it out)))
out := $(OUT:%/=%)
made := $(out)/.make
ifeq ($(origin GROUP),environment) # csh exports one of its own
GROUP :=
endif
$(if $(word 2,[$(GROUP)]),$(error GROUP is "$(GROUP)": it can't have blanks; in an expression write [[:blank:]]))
group_file := $(if $(filter survey,$(GROUP)),$(out)/survey-groups.tsv,$(if $(filter \
    regex:% postgresql://% postgres://%,$(GROUP)),,$(GROUP)))
$(if $(group_file),$(call one_word,GROUP))
group := $(if $(GROUP),--group $(call quote,$(or $(group_file),$(GROUP))))

ifneq ($(filter demo imagenette,$(DATASET)),)
data := $(out)/data
identity := $(DATASET)
else ifeq ($(DATASET),fashion-mnist)
data := /usr/share/datasets/fashion-mnist
identity := $(DATASET)
else ifneq ($(call table_of,$(DATASET)),)
data := $(DATASET)
identity := $(DATASET)
else
data := $(DATASET:%/=%)
identity := $(realpath $(data))
ifeq ($(identity),)
$(error DATASET is "$(DATASET)", which is neither a folder nor shards, a table, or one of demo, fashion-mnist, imagenette)
endif
endif
source := $(call quote,$(data))

$(if $(wildcard $(out)),$(if $(wildcard $(out)/.),,$(error OUT is "$(OUT)", which is a file: name a folder)))
owner := $(file <$(made)/owner)
ifneq ($(filter-out clean-study,$(goals)),)
# What lies in DATASET is read as images, and what lies in OUT is the study's to delete.
ifeq ($(filter demo fashion-mnist imagenette,$(DATASET))$(call table_of,$(DATASET)),)
apart := $(shell data=$(call quote,$(identity))/ out=$$(realpath -m -- $(out))/; \
    case $$out in ("$$data"*) echo OUT DATASET; exit; esac; \
    case $$data in ("$$out"*) echo DATASET OUT; esac)
$(if $(apart),$(error $(firstword $(apart)) is "$($(firstword $(apart)))", which lies in \
    $(lastword $(apart)), "$($(lastword $(apart)))": name another folder with OUT=))
endif
ifneq ($(owner),)
ifneq ($(owner),$(identity))
$(error $(out) holds a study of $(owner), not of $(identity): name another folder with OUT=, or \
    delete that study with 'make clean-study OUT=$(out)')
endif
endif
endif

# The programs: built beside this file, installed beside it, or on the PATH.
ifeq ($(origin PROGRAMS),undefined)
PROGRAMS := $(shell for folder in .. ../build ../../bin; do folder=$(call quote,$(here))$$folder; \
    [ ! -x "$$folder/dl2-transcode" ] || { printf %s "$$folder"; break; }; done)
endif
program = $(call quote,$(if $(PROGRAMS),$(PROGRAMS)/)$1)
ifneq ($(filter-out clean-study,$(goals)),)
ifeq ($(shell command -v $(call program,dl2-transcode)),)
$(error dl2's programs are neither beside $(this) nor on the PATH: say where with PROGRAMS=FOLDER)
endif
# What is in a dataset that the study doesn't make itself: its fingerprint is the last word.
identify :=
ifneq ($(data),$(out)/data)
identify := $(call program,dl2-transcode) --identify $(source)
identified := $(shell $(identify) 2>&1)
fingerprint := $(if $(filter fingerprint,$(identified)),$(lastword $(identified)))
$(if $(and $(call table_of,$(DATASET)),$(if $(fingerprint),,no)),$(error DATASET: $(identified)))
$(if $(findstring complete	no,$(identified)),$(error DATASET is "$(DATASET)", a variant that is not finished: run \
    the dl2-transcode that writes it again))
endif
lossless := $(shell $(call program,dl2-transcode) --list codecs | awk '$$2 == "lossless" { print $$1 }')
endif

# An external codec stands behind the others, and every program is told how to decode its files. Without
# %q in its commands it has no quality.
external := $(firstword $(subst =, ,$(EXTERNAL)))
ungraded := $(lossless) $(if $(findstring %q,$(EXTERNAL)),,$(external))
decoding := $(if $(EXTERNAL),--decoder $(call quote,$(external)=$(shell \
    printf %s $(call quote,$(EXTERNAL)) | sed 's/^[^;]*;[[:blank:]]*//')))

# jpeg-05: the lossless codecs have no quality in their names.
two_digits = $(if $(filter 1 2 3 4 5 6 7 8 9,$1),0$1,$1)
variants := $(foreach c,$(CODECS) $(external),$(if $(filter $(ungraded),$c),$c,$(foreach \
    q,$(QUALITIES),$c-$(call two_digits,$q))))
names := raw $(variants)
unknown_variants := $(filter-out $(variants),$(TRAIN_ON))
$(if $(unknown_variants),$(error TRAIN_ON names $(unknown_variants): not among the variants $(variants)))
# decide.sh names them itself.
runs := $(or $(RUNS),$(foreach n,raw $(TRAIN_ON),$(foreach a,$(ARCHS),$(foreach s,$(SEEDS),$n/$a/seed-$s))))
# Where a variant or the original lies, in quotes: the table that dl2-transcode makes, or a folder.
in_table = $(subst ?$(table),?$(table)_$1,$(subst &$(table),&$(table)_$1,$(VARIANTS)))
place_of = $(if $(filter raw,$1),$(source),$(if $(table),$(call quote,$(call in_table,$(subst -,_,$1))),$(out)/variants/$1))
# place NAME: the same for recipes.
places = place() { case $$1 in $(foreach n,$(names),($n) printf %s $(call place_of,$n) ;;) esac; };

variant_files := $(variants:%=$(out)/variants/%/dl2-variant.json)
quality_files := $(variants:%=$(out)/quality/%.json)
crops_file := $(out)/crops/crops.json
load_files := $(names:%=$(out)/load/%.json)
throughput_file := $(out)/throughput/.made
analysis_files := $(ARCHS:%=$(out)/analysis/%.json)
run_files := $(runs:%=$(out)/train/%/experiment_report.json)
matrix_files := $(runs:%=$(out)/train/%/evaluation/evaluation_report.json)
report_file := $(out)/report/report.html
# $(call on_their_data,FOLDER,FILES): reports of trainings in FOLDER/train need what they train on.
on_their_data = $(eval $(filter $1/train/raw/%,$2): $(made)/dataset)$(foreach v,$(variants),$(eval \
    $(filter $1/train/$v/%,$2): $(out)/variants/$v/dl2-variant.json))
# Those that were cut short say so in their files.
cut_short = $(if $(wildcard $2),$(filter $(shell grep -sL '"$1": *true' $(wildcard $2)),$2))

# $(call take_turns,FILES): trainers take these trainings in turn.
trainers := $(shell seq $(TRAINERS) 2>&-)
take_turns = $(eval turns :=)$(foreach f,$1,$(eval turns := $(or $(turns),$(trainers)))$(eval \
    $f: trainer := $(firstword $(turns)))$(eval turns := $(wordlist 2,$(words $(turns)),$(turns))))

# What goals.mk adds to.
settings := CODECS EXTERNAL QUALITIES ARCHS EPOCHS SEEDS DECIDE DECIDER FORECAST BUDGET IMAGE_SIZE BATCH \
    DEVICE JOBS TRAINERS TOLERANCE GROUP ROUNDS MEASURE TRANSCODE_FLAGS QUALITY_FLAGS LOAD_FLAGS TRAIN_FLAGS REPORT_FLAGS \
    PROGRAMS
stages := transcode $(if $(external),external) quality load throughput analyze train matrix report
folders := variants quality crops load throughput analysis train report
goal_settings :=
include $(subst $(empty) ,\ ,$(here))goals.mk

# All variables are checked before anything is made: trainings come last, and a mistake in theirs would
# show after hours of other work.
ifneq ($(filter-out clean-study,$(goals)),)
problem := $(shell sh $(call quote,$(here)check.sh) $(foreach v,$(settings),$v=$(call quote,$($v))) \
    DATA=$(source))
$(if $(problem),$(error $(problem)))
endif

# Two makes at once would take each other's unfinished files for their own. A process is known by its
# number and its start time, so a killed make blocks nobody. -n and -q only look, and may do so any time.
ifeq ($(findstring n,$(firstword -$(MAKEFLAGS)))$(findstring q,$(firstword -$(MAKEFLAGS))),)
busy := $(shell began() { cut -d ' ' -f 22 "/proc/$$1/stat" 2>/dev/null; }; \
    $(if $(filter-out clean-study,$(goals)),mkdir -p $(made);) test -d $(made) || exit; \
    exec 9>>$(made)/at-work && flock 9 && { read -r pid since <$(made)/at-work; \
    if [ "$$pid" ] && [ "$$pid" != $$PPID ] && [ "$$since" ] && [ "$$(began $$pid)" = "$$since" ]; \
    then [ "$$pid" = "$(DECIDER)" ] || echo "$$pid"; else echo "$$PPID $$(began $$PPID)" >$(made)/at-work; fi; })
$(if $(busy),$(error another make, process $(busy), is at work in $(out): wait until it ends, or name \
    another folder with OUT=))
endif

# ---- How recipes run

Q := $(if $(V),,@)
threads = $$(($(JOBS) / $(at_once) + ($(JOBS) < $(at_once))))
# Without -j this file chooses how much goes on at once.
ifeq ($(filter -j% --jobserver%,$(shell printf %s "$$MAKEFLAGS")),)
MAKEFLAGS += -j$(TRAINERS)
endif
# What uses all processors, or measures time, runs alone; TRAINERS trainings share the machine;
# whatever -j says.
alone := exec 9>$(made)/machine.lock && flock -x 9
share = exec 9>$(made)/machine.lock && flock -s 9 && exec 8>$(made)/trainer-$(trainer).lock && flock 8
install := sh $(call quote,$(here)packages.sh)
# 3: packages were installed.
installed = { $(install) $1 || [ $$? -eq 3 ]; }

# A stamp for each stage's options: its time is when they last changed.
options_transcode := $(TRANSCODE_FLAGS) $(VARIANTS)
options_external := $(EXTERNAL)
options_quality := $(QUALITY_FLAGS)
options_load := $(IMAGE_SIZE) $(BATCH) $(JOBS) $(LOAD_FLAGS)
options_throughput := raw $(TRAIN_ON) $(ARCHS) $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(JOBS) $(ROUNDS) $(MEASURE) \
    $(LOAD_FLAGS) $(TRAIN_FLAGS)
options_analyze := $(IMAGE_SIZE) $(BATCH) $(JOBS) $(DEVICE) $(TRAIN_FLAGS)
options_train := $(EPOCHS) $(IMAGE_SIZE) $(BATCH) $(DEVICE) $(TRAIN_FLAGS)
options_matrix := $(names) $(DEVICE)
options_report := $(TOLERANCE) $(names) $(runs) $(LOOKS) $(GROUP) $(about_$(DATASET)) $(REPORT_FLAGS)
same = $(and $(findstring [$1],[$2]),$(findstring [$2],[$1]))
$(foreach s,$(stages),$(if $(call same,$(strip $(options_$s)),$(strip $(file <$(made)/$s))),$(if \
    $(wildcard $(made)/$s),,$(eval $(made)/$s: FORCE)),$(eval $(made)/$s: FORCE)))
$(stages:%=$(made)/%):
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(strip $(options_$(@F))))' >$@

# ---- The dataset

# The stamp is as old as the last look at the dataset was, so that a change made since is seen.
$(made)/dataset:
	@mkdir -p $(made)
	@printf '%s\n' $(call quote,$(identity)) >$(made)/owner
	@touch $@.looked
	$(Q)$(get_$(if $(filter demo fashion-mnist imagenette,$(DATASET)),$(DATASET),folder))
	@$(if $(identify),$(identify) 2>/dev/null | sed -n 's/^fingerprint.//p') >$@.new
	@touch -r $@.looked $@.new && mv $@.new $@ && rm $@.looked

get_folder = :
get_fashion-mnist = $(call installed,fashion-mnist)
get_demo = $(call installed,demo) && echo 'Cutting the demo dataset' && \
    JOBS=$(JOBS) sh $(call quote,$(here)demo-dataset.sh) $(data)
# fast.ai's; the sum is the one that torchvision checks it with.
imagenette := https://s3.amazonaws.com/fast-ai-imageclas/imagenette2-160.tgz
imagenette_md5 := e793b78cc4c9e9a4ccc0c1155377a412
get_imagenette = $(call installed,imagenette) && { test -d $(data) || { \
    archive=$(out)/imagenette2-160.tgz; echo 'Downloading $(imagenette)'; \
    { test -f $$archive || { curl -fsSL --retry 2 --connect-timeout 20 -o $$archive.part \
        $(imagenette) && mv $$archive.part $$archive; }; } || { \
        echo 'DATASET=imagenette needs the internet, and the download failed. Where there is none,' \
             'unpack a copy of that file and name its folder: DATASET=.../imagenette2-160' >&2; \
        exit 1; }; \
    echo "$(imagenette_md5)  $$archive" | md5sum --quiet -c - || { \
        echo "$$archive is not the file that was expected: delete it and try again" >&2; exit 1; }; \
    rm -rf $(data).tmp && mkdir $(data).tmp && \
    tar -xzf $$archive -C $(data).tmp --strip-components=1 && mv $(data).tmp $(data); }; }

ifneq ($(wildcard $(made)/dataset),)
ifneq ($(data),$(out)/data)
# A file that failed may be readable now without looking newer, for example after chmod.
changed := $(if $(and $(fingerprint),$(call same,$(fingerprint),$(file <$(made)/dataset))),,yes)$(shell \
    sed -n '/"failed": \[/,/\]/s/^ *"path": "\(.*\)",*$$/\1/p' $(out)/variants/*/dl2-variant.json 2>/dev/null | \
    sort -u | while read -r name; do find -L $(source)/"$$name" -cnewer $(made)/dataset 2>/dev/null; done)
else
changed := $(if $(wildcard $(data)/$(if $(filter demo,$(DATASET)),.tiles-96,train/.)),,gone)
endif
$(made)/dataset: $(if $(changed),FORCE)
endif

# ---- What is in it

# Unreadable files are in the survey: no error.
$(out)/survey.json $(out)/survey-groups.tsv &: $(made)/dataset
	$(Q)$(alone) && rm -f $(out)/survey.json $(out)/survey-groups.tsv && { $(call program,dl2-transcode) --survey \
	    -j $(JOBS) --quiet --groups $(out)/survey-groups.tsv --json $(out)/survey.json $(source) \
	    >$(out)/survey.txt || [ $$? -eq 1 ]; } && test -e $(out)/survey.json && test -e $(out)/survey-groups.tsv

# ---- Variants: a source image is decoded once for all that are missing

$(call cut_short,complete,$(variant_files)): FORCE

# The codecs of a set are $codecs; other commands make an external codec's variants anew.
name_external = case ,$$codecs, in *,$(external),*) \
    codecs=$$(echo ",$$codecs," | sed 's/,$(external),/,/; s/^,//; s/,$$//'); \
    codecs=$${codecs:+$$codecs,}$(call quote,$(EXTERNAL)) ;; esac;
as_external = case $$variant in $(external) | $(external)-*) ! [ $$file -ot $(made)/external ] ;; esac &&
$(if $(external),$(eval $(variant_files): $(made)/external))

# If any variant is missing, dl2-transcode runs for all: it leaves alone what is there, and TRANSCODE_FLAGS
# may have options that only some of the codecs have. Images that can't be read don't end a study: the
# report names them. A run that failed as a whole prints no table, so only variants in a table are up to
# date, whatever older runs have left. Other flags may ask for another container; dl2-transcode refuses to
# write one over the other, so the old one is removed.
in_commas = $(subst $(empty) ,$(comma),$(strip $1))
$(variant_files) &: $(made)/dataset $(made)/transcode
	$(Q)$(alone); missing= ended=; \
	for variant in $(variants); do \
	    folder=$(out)/variants/$$variant file=$(out)/variants/$$variant/dl2-variant.json; \
	    if grep -qs '"complete": *true' $$file && ! [ $$file -ot $(made)/dataset ] && \
	        $(if $(external),$(as_external)) ! [ $$file -ot $(made)/transcode ]; then continue; fi; \
	    missing="$$missing $$variant"; \
	    if [ -d $$folder ] && { ! [ -e $$file ] || [ $$file -ot $(made)/transcode ]; }; then \
	        case $(if $(table),--container,$(call quote,$(TRANSCODE_FLAGS))) in *--con*) rm -rf $$folder; esac; \
	        grep -qs '"codec"' $$file && ! grep -qs '"container"' $$file || rm -rf $$folder; \
	    fi; \
	done; \
	[ -z "$$missing" ] || { codecs=$(call in_commas,$(CODECS) $(external)); $(if $(external),$(name_external)) \
	    table=$$($(call program,dl2-transcode) -j $(JOBS) --codec "$$codecs" \
	        $(if $(filter-out $(ungraded),$(CODECS) $(external)),--q $(call in_commas,$(QUALITIES))) \
	        $(if $(table),--facts $(out)/variants,--prune) $(TRANSCODE_FLAGS) $(source) \
	        $(if $(table),$(call quote,$(VARIANTS)),$(out)/variants) </dev/null) || [ $$? -eq 1 ] || exit 1; \
	    printf '%s\n' "$$table"; \
	    ended=$$(printf '%s\n' "$$table" | cut -d ' ' -f 1); } && \
	for variant in $$missing; do \
	    file=$(out)/variants/$$variant/dl2-variant.json; \
	    case " $$(echo $$ended) " in *" $$variant "*) ;; *) file=/dev/null; esac; \
	    grep -qs '"complete": *true' $$file && touch $$file || { \
	        echo "$$variant could not be made: see above" >&2; exit 1; }; \
	done

# ---- Quality: a reference image is decoded once for all variants

$(quality_files) &: $(variant_files) $(made)/quality
	@mkdir -p $(out)/quality
	$(Q)$(alone); $(places) set --; missing=; \
	for variant in $(variants); do \
	    file=$(out)/quality/$$variant.json; \
	    if [ -e $$file ] && ! [ $$file -ot $(out)/variants/$$variant/dl2-variant.json ] && \
	        ! [ $$file -ot $(made)/quality ]; then :; \
	    else rm -f $$file; missing="$$missing $$file"; set -- "$$@" "$$(place $$variant)"; fi; \
	done; \
	[ $$# -eq 0 ] || $(call program,dl2-quality) -j $(JOBS) --json-dir $(out)/quality \
	    $(decoding) $(QUALITY_FLAGS) $(source) "$$@" || [ $$? -eq 1 ] || exit 1; \
	for file in $$missing; do \
	    [ -e $$file ] || { echo "$$file could not be made: see above" >&2; exit 1; }; \
	done

# Crops for people to look at, by these scores.
$(crops_file): $(quality_files)
	$(Q)$(alone) && rm -rf $(@D) && $(call program,dl2-quality) $(decoding) $(QUALITY_FLAGS) --crops $(@D) --json-dir $(out)/quality \
	    $(source) $(foreach v,$(variants),$(call place_of,$v))

# ---- The input pipeline's speed

$(load_files): $(made)/load
$(out)/load/raw.json: $(made)/dataset
$(variants:%=$(out)/load/%.json): $(out)/load/%.json: $(out)/variants/%/dl2-variant.json
$(load_files): $(out)/load/%.json:
	@mkdir -p $(@D)
	$(Q)$(alone) && echo 'Loading $*' && rm -f $@ && { $(call program,dl2-load) -j $(JOBS) \
	    --image-size $(IMAGE_SIZE) --batch $(BATCH) --name $* --json $@ --quiet $(decoding) $(LOAD_FLAGS) \
	    bench $(call place_of,$*) >$(made)/load.log 2>&1 || [ $$? -eq 1 ]; } && test -e $@ || \
	    { cat $(made)/load.log >&2; exit 1; }

# ---- How fast variants load and train, alone on the machine

# Measures what lies in the folder of $@ (measure.sh). What it measures is what the command `cells` prints.
define measure_it
	$(Q)$(alone) && { $(places) $(cells); } | \
	LOAD=$(call quote,$(call program,dl2-load) --image-size $(IMAGE_SIZE) --batch $(BATCH) $(decoding) $(LOAD_FLAGS)) \
	TRAIN=$(call quote,$(call program,dl2-train) --measure $(MEASURE) --batch $(BATCH) --image-size $(IMAGE_SIZE) \
	    --device $(DEVICE) --threads $(JOBS) $(decoding) $(TRAIN_FLAGS)) \
	BYTES=$$(sed -n 's/^  "source_bytes": *\([0-9]*\).*/\1/p' $(firstword $(variant_files)) 2>/dev/null) \
	sh $(call quote,$(here)measure.sh) $(@D) $(ROUNDS) $(filter-out FORCE,$^)
endef
$(throughput_file): private cells = for n in raw $(TRAIN_ON); do at=$$(place $$n); \
    echo load load/$$n $(JOBS) $$at --measure $(MEASURE); for a in $(ARCHS); do echo $$a $$a/$$n $(JOBS) $$at; done; done
$(throughput_file): $(made)/throughput $(made)/dataset $(TRAIN_ON:%=$(out)/variants/%/dl2-variant.json)
	$(measure_it)

# ---- What training would wait for

# The device's rate from noise, of which thirty batches do; the first of four passes does not count.
$(analysis_files): $(variant_files) $(quality_files) $(made)/analyze
$(analysis_files): $(out)/analysis/%.json:
	@mkdir -p $(out)/analysis/$*
	$(Q)$(alone) && echo 'Analyzing $*' && rm -f $@ && { $(call program,dl2-train) --restart \
	    --loader synthetic --images $$((30 * $(BATCH))) --arch $* --epochs 4 --batch $(BATCH) \
	    --image-size $(IMAGE_SIZE) --device $(DEVICE) --threads $(JOBS) --out $(out)/analysis/$* \
	    --quiet $(TRAIN_FLAGS) && { $(call program,dl2-load) analyze -j $(JOBS) --quiet $(decoding) --device-report \
	    $(out)/analysis/$*/experiment_report.json --quality $(out)/quality --json $@ $(source) \
	    $(foreach v,$(variants),$(call place_of,$v)) >$(@:.json=.txt) || [ $$? -eq 1 ]; }; \
	} >$(out)/analysis/$*/log 2>&1 && test -e $@ || { cat $(out)/analysis/$*/log >&2; exit 1; }

# ---- Training

$(call cut_short,completed,$(run_files)): FORCE
# Trainings come last: what is measured or waited for shouldn't stand in their queue.
$(run_files): $(made)/train | $(if $(filter study report,$(goals)),$(quality_files) $(load_files) $(throughput_file))
$(call on_their_data,$(out),$(run_files))
$(call take_turns,$(run_files))

# Validates on the variant itself, which is what counts, and on the original. What was interrupted is
# resumed, unless options or images have changed since. A goal of goals.mk sets for its own trainings what
# differs: `lock`, `at_once`, `trained_on`, `lasting`, as private to them: their prerequisites may be trainings, too.
part = $(word $2,$(subst /, ,$(lastword $(subst /train/, ,$1))))
variant = $(call part,$(@D),1)
lock = $(share)
at_once = $(TRAINERS)
trained_on = --data $(call place_of,$(variant))
lasting = --epochs $(EPOCHS)
define train_it
	@mkdir -p $(@D)
	$(Q)$(lock) && how=--restart began=$(made)/trainer-$(trainer).began && touch $$began && \
	if grep -qs '"completed": *false' $@; then how=--resume; \
	    for than in $(filter-out FORCE,$^); do [ ! $@ -ot $$than ] || how=--restart; done; fi && \
	{ $(call program,dl2-train) $$how $(trained_on) \
	    --val $(call place_of,$(variant)) $(if $(filter raw,$(variant)),,--val $(source)) \
	    --arch $(call part,$(@D),2) --seed $(patsubst seed-%,%,$(call part,$(@D),3)) \
	    $(lasting) --batch $(BATCH) --image-size $(IMAGE_SIZE) --device $(DEVICE) \
	    --threads $(threads) -j $(threads) --out $(@D) --quiet --trainers $(at_once) \
	    $(decoding) $(TRAIN_FLAGS) >$(@D)/log 2>&1; } && \
	! [ $@ -ot $$began ] && grep -qs '"completed": *true' $@ && \
	echo "Trained $*: $$(sed -n 's/^.*: \(top-1 [0-9.]*%\).*/\1/p' $(@D)/log | head -n 1)" || { \
	    cat $(@D)/log; echo 'Training $* failed: its output is above, and in $(@D)/log'; exit 1; } >&2
endef
$(run_files): $(out)/train/%/experiment_report.json:
	$(train_it)

# ---- Every network on every variant

$(matrix_files): $(out)/train/%/evaluation/evaluation_report.json: \
    $(out)/train/%/experiment_report.json $(made)/matrix $(variant_files)
	$(Q)$(alone) && echo 'Evaluating $*' && { $(call program,dl2-train) \
	    --evaluate $(<D)/checkpoint.safetensors $(foreach n,$(names),--val $(call place_of,$n)) \
	    --device $(DEVICE) --threads $(JOBS) -j $(JOBS) --out $(@D) --quiet $(decoding) \
	    >$(made)/evaluation.log 2>&1 || { cat $(made)/evaluation.log >&2; exit 1; }; }

# ---- The report

said := DATASET OUT $(if $(VARIANTS),VARIANTS) CODECS $(if $(external),EXTERNAL) QUALITIES $(if $(filter-out $(TRAIN_ON),$(variants)),TRAIN_ON) ARCHS EPOCHS \
    SEEDS $(if $(DECIDER),DECIDE) IMAGE_SIZE BATCH DEVICE TOLERANCE $(if $(GROUP),GROUP) \
    $(foreach v,$(if $(DECIDER),FORECAST BUDGET) $(foreach v,ROUNDS MEASURE,$(if $(filter-out file,$(origin $v)),$v)) \
    $(goal_settings) TRANSCODE_FLAGS QUALITY_FLAGS LOAD_FLAGS TRAIN_FLAGS \
    REPORT_FLAGS,$(if $($v),$v))
# As seen from the checkout, or from anywhere. Links keep their names where that leads to the same place.
checkout := $(shell cd $(call quote,$(here)..) && test ! -e configure.ac || pwd -P)
from_checkout = $(shell path=$$(realpath -ms -- $1); [ $1 -ef "$$path" ] || path=$$(realpath -m -- $1); \
    checkout=$(call quote,$(checkout)); [ -z "$$checkout" ] || path=$${path$(hash)"$$checkout"/}; printf %s "$$path")
said_DATASET = $(if $(filter demo fashion-mnist imagenette,$(DATASET)),$(DATASET),$(if $(call \
    table_of,$(DATASET)),$(source),$(call from_checkout,$(data))))
said_VARIANTS = $(call quote,$(VARIANTS))
said_DECIDE := yes
said_GROUP = $(call quote,$(subst $$,$$$$,$(GROUP)))
said_OUT = $(call from_checkout,$(out))
in_quotes = $(if $(word 2,$1),"$(strip $1)",$(strip $1))
in_shell = $(if $(word 2,$1)$(findstring ',$1),$(call quote,$1),$1)
command = make$(if $(checkout),, -f $(call in_shell,$(shell realpath -s -- $(call quote,$(this))))) $(or $(filter study-% forecast,$(goals)),study) \
    $(foreach v,$(said),$v=$(call in_quotes,$(or $(said_$v),$($v))))
# A report that names broken results isn't up to date. Its answer is printed at once; that of any other one at the end of
# its goal, also if there was nothing to do.
define report_it
	@mkdir -p $(out)/report
	$(Q)$(call program,dl2-report) --tolerance $(TOLERANCE) --title '$(called)' \
	    --command '$(subst ','\'',$(command))' --variants '$(names)' --trainings '$(runs)' \
	    $(if $(LOOKS),--interim $(LOOKS)) $(group) $(if $(about_$(DATASET)),--about '$(about_$(DATASET))') $(REPORT_FLAGS) -o $(report_file) $(out) >$(made)/answer || \
	    { status=$$?; cat $(made)/answer; test ! -e $(report_file) || touch -d @0 $(report_file); exit $$status; }
endef
# Evaluations are shown as they are; only `matrix` makes them.
evaluated := $(wildcard $(matrix_files))
$(report_file): $(variant_files) $(quality_files) $(crops_file) $(load_files) $(throughput_file) $(run_files) \
    $(made)/report $(wildcard $(out)/survey.json) $(group_file) $(if $(wildcard $(out)/report/answer.json),,FORCE) \
    $(if $(evaluated),$(if $(shell find $(evaluated) -newer $(report_file) -print -quit 2>/dev/null),FORCE))
	$(report_it)
said_where := $(call program,dl2-report) --answer $(out) && echo 'The report: $(abspath $(report_file))'

survey: $(out)/survey.json
	@cat $(out)/survey.txt
variants: $(variant_files)
quality: $(quality_files)
load: $(load_files)
throughput: $(throughput_file)
analyze: $(analysis_files)
	@cat $(^:.json=.txt)
ifeq ($(DECIDE),)
train: $(run_files) $(if $(DECIDER),$(group_file))
matrix: $(matrix_files)
report: $(report_file)
	@$(said_where)
else
# The trainings are named look by look, each time to a make of its own.
decide = $(Q)OUT=$(out) NAMES='$(names)' TRAINED='raw $(TRAIN_ON)' ARCHS='$(ARCHS)' SEEDS='$(SEEDS)' \
    TOLERANCE=$(TOLERANCE) BUDGET='$(BUDGET)' FORECAST=$(FORECAST) REPORT=$(call program,dl2-report) \
    GROUPED=$(if $(GROUP),$(call quote,$(or $(group_file),$(GROUP)))) \
    sh $(call quote,$(here)decide.sh) $@ $(MAKE) --no-print-directory -f $(call quote,$(this)) \
    TRAINERS=$(TRAINERS) DECIDE= DECIDER=$$PPID
train matrix report:
	+$(decide)
endif

new-plan:
	$(Q)$(call program,dl2-report) --new-plan $(out)
	@test ! -e $(report_file) || touch -d @0 $(report_file)

# Others' files stay.
clean-study:
	@if test -e $(made)/owner; then \
	    rm -rf $(addprefix $(out)/,survey.json survey.txt survey-groups.tsv $(folders) \
	        $(if $(filter demo imagenette,$(owner)),data data.tmp data.parts imagenette2-160.tgz imagenette2-160.tgz.part)) && \
	    rm -rf $(made) && { rmdir $(out) 2>/dev/null || echo '$(out) holds other files, too: left there'; }; \
	elif test -e $(out); then echo '$(out) is not a study: left alone' >&2; exit 1; fi

endif

help:
	@for text in $(call quote,$(this)) $(call quote,$(here)goals.mk); do sed -n '2,/^$$/s/^#\( \|$$\)//p' "$$text"; done
