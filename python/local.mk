# SPDX-License-Identifier: BSD-2-Clause
# The Python package dl2: python/dl2/, and in it the module over libdl2, _core.so.
python_package = \
	python/dl2/__init__.py \
	python/dl2/_core.pyi \
	python/dl2/_mix.py \
	python/dl2/_sheet.py \
	python/dl2/py.typed \
	python/dl2/torch.py
EXTRA_DIST += $(python_package)
if HAVE_PYTHON
dl2execdir = $(pyexecdir)/dl2
dl2exec_DATA = $(python_package)
dl2exec_LTLIBRARIES = python/dl2/_core.la
python_dl2__core_la_SOURCES = \
	python/py_array.c \
	python/py_dataset.c \
	python/py_dl2.h \
	python/py_loader.c \
	python/py_module.c \
	python/py_settings.c
python_dl2__core_la_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CPPFLAGS)
python_dl2__core_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -export-symbols-regex '^PyInit__core$$'
python_dl2__core_la_LIBADD = libdl2.la

# The package in the build's python/, as Python imports it: links to its files. They are no goals by
# name, since make would find them in the sources.
noinst_DATA = python/dl2/.libs/package
python/dl2/.libs/package: python/dl2/_core.la $(python_package)
	$(AM_V_GEN)ln -sf .libs/_core.so python/dl2/_core.so
	$(AM_V_at)test -e configure || for file in $(python_package); do \
	    ln -sf "$(abs_srcdir)/$$file" python/dl2/; done
	$(AM_V_at)touch $@
clean-local:
	-rm -rf python/dl2/_core.so python/dl2/__pycache__
	-test -e configure || rm -f $(python_package)

# Python loads _core.so; libtool's description of it is of no use among Python's modules, and taking
# it away at `make uninstall` takes _core.so along only while it is there.
install-exec-hook:
	rm -f '$(DESTDIR)$(dl2execdir)/_core.la'
uninstall-hook:
	rm -rf '$(DESTDIR)$(dl2execdir)/_core.so' '$(DESTDIR)$(dl2execdir)/__pycache__'
	-test ! -d '$(DESTDIR)$(dl2execdir)' || rmdir '$(DESTDIR)$(dl2execdir)'
endif
