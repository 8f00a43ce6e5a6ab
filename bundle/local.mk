# SPDX-License-Identifier: BSD-2-Clause
# `make bundle`: everything in one folder that runs elsewhere. BUNDLE_CUDA=yes puts NVIDIA's libraries in (gigabytes), no leaves
# them to the machine; BUNDLE_FORMAT is xz or gz; it is put into BUNDLE_FOLDER.
BUNDLE_CUDA = no
BUNDLE_FORMAT = xz
BUNDLE_FOLDER = .
BUNDLE_NAME = $(PACKAGE)-$(VERSION)-$(host_cpu)
# Programs beside those that are installed: what share/dl2/device/device.py runs.
bundle_checks =
bundle_device_files =
BUNDLE_MAKE = $(MAKE) --no-print-directory
.PHONY: bundle bundle_checks
bundle_checks: all $(bundle_checks)
bundle: all
	@$(if $(bundle_checks),$(BUNDLE_MAKE) -s $(bundle_checks))
	@rm -rf bundle.installed && $(BUNDLE_MAKE) -s install DESTDIR='$(abs_builddir)/bundle.installed' >bundle.log 2>&1 || \
	    { cat bundle.log >&2; exit 1; }
	@mkdir -p 'bundle.installed$(pkgdatadir)/device' && \
	    for file in $(bundle_device_files); do cp "$(srcdir)/$$file" 'bundle.installed$(pkgdatadir)/device'; done
	@cd '$(BUNDLE_FOLDER)' && CC='$(CC)' $(SHELL) $(abs_top_srcdir)/bundle/bundle.sh '$(abs_builddir)/bundle.installed' \
	    $(BUNDLE_NAME) $(BUNDLE_CUDA) $(BUNDLE_FORMAT) $(addprefix $(abs_builddir)/,$(bundle_checks))
	@rm -rf bundle.installed bundle.log
EXTRA_DIST += bundle/bundle.sh bundle/launcher.sh bundle/README.bundle
CLEANFILES += bundle.log
