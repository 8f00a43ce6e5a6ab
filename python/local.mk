# SPDX-License-Identifier: BSD-2-Clause
# The Python module over libdl2, dl2.so.
if HAVE_PYTHON
pyexec_LTLIBRARIES = python/dl2.la
python_dl2_la_SOURCES = \
	python/py_array.c \
	python/py_dataset.c \
	python/py_dl2.h \
	python/py_loader.c \
	python/py_module.c
python_dl2_la_CPPFLAGS = $(AM_CPPFLAGS) $(PYTHON_CPPFLAGS)
python_dl2_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -export-symbols-regex '^PyInit_dl2$$'
python_dl2_la_LIBADD = libdl2.la
# Python loads dl2.so; libtool's description of it is of no use among Python's modules, and taking
# it away at `make uninstall` takes dl2.so along only while it is there.
install-exec-hook:
	rm -f '$(DESTDIR)$(pyexecdir)/dl2.la'
uninstall-hook:
	rm -f '$(DESTDIR)$(pyexecdir)/dl2.so'
endif
