# SPDX-License-Identifier: BSD-2-Clause
# By itself, since the extension of PostgreSQL needs no more of this room.
noinst_LTLIBRARIES += libreuse.la
libreuse_la_SOURCES = transcode/colours.c transcode/colours.h transcode/reuse.c transcode/reuse.h

noinst_LTLIBRARIES += libtranscode.la
libtranscode_la_SOURCES = \
	transcode/annotations.c transcode/annotations.h \
	transcode/sidecar_files.c transcode/sidecar_files.h \
	transcode/clip_packer.c transcode/clip_packer.h \
	transcode/copy.c transcode/copy.h \
	transcode/encode_clip.c transcode/encode_image.c transcode/encode_volume.c \
	transcode/finish_image.c \
	transcode/fit_sensitivity.c transcode/fit_sensitivity.h \
	transcode/fit_steps.c transcode/fit_steps.h \
	transcode/fit_tables.c transcode/fit_tables.h \
	transcode/frames.c transcode/frames.h \
	transcode/masks.c transcode/masks.h \
	transcode/output_folder.c transcode/output_folder.h \
	transcode/source_image.c \
	transcode/source_items.c transcode/source_items.h \
	transcode/staged.c transcode/staged.h \
	transcode/survey.c transcode/survey.h \
	transcode/target.c transcode/target.h \
	transcode/target_curves.c \
	transcode/target_search.c transcode/target_search.h \
	transcode/transcode.c transcode/transcode.h \
	transcode/transcoder.h \
	transcode/variant.c transcode/variant.h \
	transcode/variant_load.c transcode/variant_state.h \
	transcode/variant_write.c
libtranscode_la_LIBADD = libreuse.la libquality.la libcodec.la libdataset.la libranks.la libcommon.la

bin_PROGRAMS += dl2-transcode
dl2_commands += dl2-transcode
dl2_transcode_SOURCES = \
	transcode/dl2_transcode.c \
	transcode/select_targets.c transcode/select_targets.h \
	transcode/transcode_options.c transcode/transcode_options.h
dl2_transcode_LDADD = libtranscode.la
