# SPDX-License-Identifier: BSD-2-Clause
# `make bundle`: everything in one folder that runs elsewhere. BUNDLE_CUDA=yes puts NVIDIA's libraries in (gigabytes), no leaves
# them to the machine; BUNDLE_FORMAT is xz or gz; it is put into BUNDLE_FOLDER. BUNDLE_PHOTOGRAPHS=yes puts in what device.py decodes
# and trains on. An archive of BUNDLE_LIMIT MiB or more is refused: a lent machine takes no more along; if it is empty, none is.
BUNDLE_CUDA = no
BUNDLE_PHOTOGRAPHS = $(BUNDLE_PHOTOGRAPHS_DEFAULT)
BUNDLE_LIMIT = $(if $(filter yes,$(BUNDLE_CUDA)),,48)
if HAVE_CUDA
BUNDLE_PHOTOGRAPHS_DEFAULT = yes
else
BUNDLE_PHOTOGRAPHS_DEFAULT = no
endif
BUNDLE_FORMAT = xz
BUNDLE_FOLDER = .
BUNDLE_NAME = $(PACKAGE)-$(VERSION)-$(host_cpu)
# Programs beside those that are installed: what share/dl2/device/device.py runs.
bundle_checks =
bundle_device_files =
BUNDLE_MAKE = $(MAKE) --no-print-directory
# Each goal has a folder of its own, since tests make both at once.
bundle_install = rm -rf $@.installed && $(BUNDLE_MAKE) -s install DESTDIR='$(abs_builddir)/$@.installed' >$@.log 2>&1 || \
	    { cat $@.log >&2; exit 1; }
bundle_run = cd '$(BUNDLE_FOLDER)' && BUNDLE_LIMIT='$(BUNDLE_LIMIT)' CC='$(CC)' PYTHON3='$(PYTHON3)' $(SHELL) $(abs_top_srcdir)/bundle/bundle.sh \
	    '$(abs_builddir)/$@.installed'
.PHONY: bundle bundle_checks wheel
bundle_checks: all $(bundle_checks)
bundle: all
	@$(if $(bundle_checks),$(BUNDLE_MAKE) -s $(bundle_checks))
	@$(bundle_install)
	@mkdir -p '$@.installed$(pkgdatadir)/device' && \
	    for file in $(bundle_device_files); do cp "$(srcdir)/$$file" '$@.installed$(pkgdatadir)/device'; done
	@test '$(BUNDLE_PHOTOGRAPHS)' = no || \
	    $(SHELL) $(srcdir)/tests/device/photographs.sh '$@.installed$(pkgdatadir)/device/photographs'
	@$(bundle_run) $(BUNDLE_NAME) $(BUNDLE_CUDA) $(BUNDLE_FORMAT) $(addprefix $(abs_builddir)/,$(bundle_checks))
	@rm -rf $@.installed $@.log

# The Python package with the programs as a wheel, for pip: dl2_images-VERSION-cp39-abi3-manylinux_2_GLIBC_CPU.whl in BUNDLE_FOLDER.
wheel: all
	@$(bundle_install)
	@$(bundle_run) $(PACKAGE)-$(VERSION) no whl
	@rm -rf $@.installed $@.log
EXTRA_DIST += bundle/README.bundle bundle/_programs.py bundle/bundle.sh bundle/launcher.sh bundle/wheel.py
CLEANFILES += bundle.log wheel.log
