# SPDX-License-Identifier: BSD-2-Clause
noinst_LTLIBRARIES += libannotations.la
libannotations_la_SOURCES = \
	annotations/annotations.h annotations/class_names.c annotations/coco.c \
	annotations/data_yaml.c annotations/yolo.c \
	annotations/instance_masks.c annotations/instance_masks.h
libannotations_la_CFLAGS = $(AM_CFLAGS) $(YAML_CFLAGS)
libannotations_la_LIBADD = libdataset.la libcommon.la $(YAML_LIBS)
