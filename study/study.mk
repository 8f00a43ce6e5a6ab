# SPDX-License-Identifier: BSD-2-Clause
# How far can this dataset be compressed, and what does it cost?
#
#   make -f study.mk [GOAL...] [VARIABLE=value ...]     in a dl2 checkout: make GOAL VARIABLE=value ...
#
# dl2-study plans a study and has make do its steps: OUT/rules.mk. `help` explains goals and variables.

# Make splits its list of makefiles at blanks: this file is the longest end of the list that is one.
quote = '$(subst ','\'',$1)'
hash := \#
this := $(shell path=$(call quote,$(MAKEFILE_LIST)); until [ -f "$$path" ]; do \
    rest=$${path$(hash)* }; [ "$$rest" != "$$path" ] || break; path=$$rest; done; printf %s "$$path")
here := $(shell dirname -- $(call quote,$(this)))/

# The program: where PROGRAMS says, built or installed beside this file, or on the PATH.
dl2_study := $(shell for folder in $(if $(PROGRAMS),$(call quote,$(PROGRAMS)),\
    $(foreach f,.. ../build ../../bin,$(call quote,$(here)$f))); do \
    [ ! -x "$$folder/dl2-study" ] || { printf %s "$$folder/dl2-study"; break; }; done)
ifeq ($(dl2_study)$(PROGRAMS),)
dl2_study := $(shell command -v dl2-study)
endif
ifeq ($(dl2_study),)
$(error dl2's programs are neither beside $(this) nor on the PATH: say where with PROGRAMS=FOLDER)
endif

# Variables reach the program through the environment. csh exports a `group` of its own.
ifeq ($(origin GROUP),environment)
unexport GROUP
endif

goals := $(or $(MAKECMDGOALS),study)
.PHONY: $(goals) run-goals
.SUFFIXES:
# A command that does nothing, or make says of a second goal that there is nothing to do. With -q it would count.
$(goals): run-goals
	$(if $(findstring q,$(firstword -$(MAKEFLAGS))),,@:)
run-goals:
	+@$(if $(filter help,$(goals)),exec $(call quote,$(dl2_study)) --help,MAKE=$(call quote,$(MAKE)) \
	    exec $(call quote,$(dl2_study)) run --makefile $(call quote,$(this)) $(goals))
