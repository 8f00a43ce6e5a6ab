# SPDX-License-Identifier: BSD-2-Clause
# The Python package dl2: python/dl2/, and in it the module over libdl2, _core.so, and _decoders.so, which is
# imported where images are decoded on a card and alone needs a card's libraries.
python_package = \
	python/dl2/__init__.py \
	python/dl2/_labels.py \
	python/dl2/_mix.py \
	python/dl2/_sheet.py \
	python/dl2/hub.py \
	python/dl2/py.typed \
	python/dl2/study.py \
	python/dl2/torch.py
EXTRA_DIST += $(python_package) python/dl2/_core.pyi.in

# The module dl2.hub is a program, too, which needs nothing else of the package.
bin_SCRIPTS += dl2-hub
dl2-hub: python/dl2/hub.py
	$(AM_V_GEN)rm -f $@ && cp '$(srcdir)/python/dl2/hub.py' $@ && chmod +x $@
CLEANFILES += dl2-hub
if HAVE_PYTHON
bashcompletion_DATA += dl2-hub.bash
CLEANFILES += dl2-hub.bash
if HAVE_HELP2MAN
dl2-hub.1: dl2-hub
	$(AM_V_GEN)$(HELP2MAN) --no-info --help-option=--help=all --version-string='dl2-hub ($(PACKAGE)) $(VERSION)' --output=$@ \
	    --name='Copy Parquet files with images into shards, and make smaller twins of them' ./dl2-hub
man_MANS += dl2-hub.1
CLEANFILES += dl2-hub.1
endif
endif

if HAVE_PYTHON
dl2execdir = $(pyexecdir)/dl2
dl2exec_DATA = $(python_package) python/dl2/_core.pyi
dl2exec_LTLIBRARIES = python/dl2/_core.la python/dl2/_decoders.la
python_dl2__core_la_SOURCES = \
	python/py_arguments.c \
	python/py_array.c \
	python/py_card.c \
	python/py_dataset.c \
	python/py_dl2.h \
	python/py_loader.c \
	python/py_module.c \
	python/py_settings.c
# The stub has the arguments of dl2.Loader from the table of its settings.
noinst_PROGRAMS += python/write_stub
python_write_stub_SOURCES = python/py_arguments.c python/py_dl2.h python/write_stub.c
python_write_stub_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CPPFLAGS)
python_write_stub_LDADD = libdl2.la
python/dl2/_core.pyi: python/write_stub$(EXEEXT) python/dl2/_core.pyi.in
	$(AM_V_GEN)rm -f $@ $@.new && python/write_stub$(EXEEXT) <$(srcdir)/python/dl2/_core.pyi.in >$@.new && mv $@.new $@
CLEANFILES += python/dl2/_core.pyi
python_dl2__core_la_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CPPFLAGS)
python_dl2__core_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -export-symbols-regex '^PyInit__core$$'
python_dl2__core_la_LIBADD = libdl2.la
python_dl2__decoders_la_SOURCES = python/py_decoders.c
python_dl2__decoders_la_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CPPFLAGS)
python_dl2__decoders_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -export-symbols-regex '^PyInit__decoders$$'
python_dl2__decoders_la_LIBADD = $(DECODERS)
if HAVE_NVJPEG
# Of pixels/ what the transform's plan needs; $(DECODERS) has common/.
python_dl2__decoders_la_LIBADD += $(libpixels_la_OBJECTS) $(filter-out $(LIBDL2_ROOMS),$(libpixels_la_LIBADD))
endif

# The package in the build's python/, as Python imports it: links to its files. They are no goals by
# name, since make would find them in the sources.
noinst_DATA = python/dl2/.libs/package
python/dl2/.libs/package: python/dl2/_core.la python/dl2/_decoders.la $(python_package) python/dl2/_core.pyi
	$(AM_V_GEN)ln -sf .libs/_core.so python/dl2/_core.so
	$(AM_V_at)ln -sf .libs/_decoders.so python/dl2/_decoders.so
	$(AM_V_at)test -e configure || for file in $(python_package); do \
	    ln -sf "$(abs_srcdir)/$$file" python/dl2/; done
	$(AM_V_at)touch $@
clean-local:
	-rm -rf python/dl2/_core.so python/dl2/_decoders.so python/dl2/__pycache__
	-test -e configure || rm -f $(python_package)

# Python loads the .so files; libtool's descriptions of them are of no use among Python's modules, and taking
# them away at `make uninstall` takes the .so files along only while they are there.
install-exec-hook:
	cd '$(DESTDIR)$(dl2execdir)' && rm -f _core.la _decoders.la
uninstall-hook:
	for file in _core.so _decoders.so __pycache__; do rm -rf "$(DESTDIR)$(dl2execdir)/$$file"; done
	-test ! -d '$(DESTDIR)$(dl2execdir)' || rmdir '$(DESTDIR)$(dl2execdir)'
endif
