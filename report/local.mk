# SPDX-License-Identifier: BSD-2-Clause
# The results of a study as a page. A library, so that tests reach its parts.
noinst_LTLIBRARIES += libreport.la
libreport_la_SOURCES = \
	report/accuracy_plot.c report/accuracy_plot.h \
	report/analysis.c report/analysis.h \
	report/claims.c report/claims.h \
	report/collect.c report/collect.h \
	report/comparable.c report/comparable.h \
	report/conditions.c report/conditions.h \
	report/evaluation.c report/evaluation.h \
	report/forecast.c report/forecast.h \
	report/html.c report/html.h \
	report/inference.c report/inference.h \
	report/loading.c report/loading.h \
	report/metric_trust.c report/metric_trust.h \
	report/page.c report/page.h \
	report/parts.c report/parts.h \
	report/plot.c report/plot.h \
	report/prediction_table.c report/prediction_table.h \
	report/rounds.c report/rounds.h \
	report/search_results.c report/search_results.h \
	report/sections.h \
	report/section_accuracy.c \
	report/section_answer.c \
	report/section_bytes.c \
	report/section_codecs.c \
	report/section_crops.c \
	report/section_distortion.c \
	report/section_failures.c \
	report/section_forecast.c \
	report/section_loading.c \
	report/section_making.c \
	report/section_matrix.c \
	report/section_metrics.c \
	report/section_quality.c \
	report/section_regimens.c \
	report/section_search.c \
	report/section_survey.c \
	report/section_throughput.c \
	report/section_time.c \
	report/section_timelines.c \
	report/section_training.c \
	report/section_variants.c \
	report/sentence.h \
	report/speed.c report/speed.h \
	report/study.c report/study.h
libreport_la_LIBADD = libcommon.la

bin_PROGRAMS += dl2-report
dl2_commands += dl2-report
dl2_report_SOURCES = report/dl2_report.c
dl2_report_LDADD = libreport.la
