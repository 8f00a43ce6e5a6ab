# SPDX-License-Identifier: BSD-2-Clause
# By itself, since the extension of PostgreSQL needs no more of this room.
noinst_LTLIBRARIES += libreuse.la
libreuse_la_SOURCES = transcode/colors.c transcode/colors.h transcode/reuse.c transcode/reuse.h

noinst_LTLIBRARIES += libtranscode.la
libtranscode_la_SOURCES = \
	transcode/annotations.c transcode/annotations.h \
	transcode/clip_packer.c transcode/clip_packer.h \
	transcode/copy.c transcode/copy.h \
	transcode/encode_clip.c \
	transcode/encode_image.c \
	transcode/encode_volume.c \
	transcode/finish_image.c \
	transcode/frames.c transcode/frames.h \
	transcode/masks.c transcode/masks.h \
	transcode/preprocess.c transcode/preprocess.h \
	transcode/source_image.c \
	transcode/survey.c transcode/survey.h \
	transcode/transcode.c transcode/transcode.h \
	transcode/transcoder.h \
	transcode/tables/fit_sensitivity.c transcode/tables/fit_sensitivity.h \
	transcode/tables/fit_steps.c transcode/tables/fit_steps.h \
	transcode/tables/fit_tables.c transcode/tables/fit_tables.h \
	transcode/target/target.c transcode/target/target.h \
	transcode/target/target_curves.c \
	transcode/target/target_search.c transcode/target/target_search.h \
	transcode/variant/output_folder.c transcode/variant/output_folder.h \
	transcode/variant/server_parts.c transcode/variant/server_parts.h \
	transcode/variant/sidecar_files.c transcode/variant/sidecar_files.h \
	transcode/variant/source_items.c transcode/variant/source_items.h \
	transcode/variant/staged.c transcode/variant/staged.h \
	transcode/variant/variant.c transcode/variant/variant.h \
	transcode/variant/variant_load.c \
	transcode/variant/variant_state.h \
	transcode/variant/variant_write.c
libtranscode_la_LIBADD = libreuse.la libquality.la libannotations.la libcodec.la libdataset.la libranks.la libcommon.la

bin_PROGRAMS += dl2-transcode
dl2_commands += dl2-transcode
dl2_transcode_SOURCES = \
	transcode/dl2_transcode.c \
	transcode/target/select_targets.c transcode/target/select_targets.h \
	transcode/transcode_options.c transcode/transcode_options.h
dl2_transcode_LDADD = libtranscode.la
