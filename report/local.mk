# SPDX-License-Identifier: BSD-2-Clause
# The results of a study as a page. A library, so that tests reach its parts.
noinst_LTLIBRARIES += libreport.la
libreport_la_SOURCES = \
	report/page/accuracy_plot.c report/page/accuracy_plot.h \
	report/page/answer.c report/page/answer.h \
	report/accuracy_sizes.c report/accuracy_sizes.h \
	report/accuracy_text.c report/accuracy_text.h \
	report/advice.c report/advice.h \
	report/analysis.c report/analysis.h \
	report/bd_rate.c report/bd_rate.h \
	report/brief.c report/brief.h \
	report/claims.c report/claims.h \
	report/class_harm.c report/class_harm.h \
	report/clip_speeds.c report/clip_speeds.h \
	report/codec_sizes.c report/codec_sizes.h \
	report/collect.c \
	report/comparable.c \
	report/conditions.c report/conditions.h \
	report/page/document.c report/page/document.h \
	report/differences.c report/differences.h \
	report/divergence.c report/divergence.h \
	report/equal_bytes.c report/equal_bytes.h \
	report/forecast.c report/forecast.h \
	report/groups.c report/groups.h \
	report/hypotheses.c report/hypotheses.h \
	report/image_histograms.c report/image_histograms.h \
	report/image_scores.c report/image_scores.h \
	report/inference.c report/inference.h \
	report/outcome_table.c report/outcome_table.h \
	report/plan.c report/plan.h \
	report/power.c report/power.h \
	report/loaders.c report/loaders.h \
	report/loading.c report/loading.h \
	report/loss_change.c report/loss_change.h \
	report/machine_logs.c report/machine_logs.h \
	report/matrix.c report/matrix.h \
	report/metric_trust.c report/metric_trust.h \
	report/page/page.c report/page/page.h \
	report/page/parts.c report/page/parts.h \
	report/page/plot.c report/page/plot.h \
	report/prediction_table.c report/prediction_table.h \
	report/repetitions.c report/repetitions.h \
	report/result_files.c report/result_files.h \
	report/detectable.c report/detectable.h \
	report/rounds.c report/rounds.h \
	report/search_results.c report/search_results.h \
	report/page/sections.h \
	report/page/section_about.c \
	report/page/section_accuracy.c \
	report/page/section_answer.c \
	report/page/section_bytes.c \
	report/page/section_choices.c \
	report/page/section_classes.c \
	report/page/section_codecs.c \
	report/page/section_crops.c \
	report/page/section_distortion.c \
	report/page/section_equal_accuracy.c \
	report/page/section_equal_quality.c \
	report/page/section_failures.c \
	report/page/section_forecast.c \
	report/page/section_loading.c \
	report/page/section_machine.c \
	report/page/section_making.c \
	report/page/section_matrix.c \
	report/page/section_metrics.c \
	report/page/section_quality.c \
	report/page/section_regimens.c \
	report/page/section_search.c \
	report/page/section_sizes.c \
	report/page/section_survey.c \
	report/page/section_tables.c \
	report/page/section_throughput.c \
	report/page/section_time.c \
	report/page/section_timelines.c \
	report/page/section_training.c \
	report/page/section_transfer.c \
	report/page/section_variants.c \
	report/page/several_page.c \
	report/page/timeline_panels.c report/page/timeline_panels.h \
	report/sentence.h \
	report/several_studies.c report/several_studies.h \
	report/speed.c report/speed.h \
	report/study.c report/study.h \
	report/timeline.c report/timeline.h \
	report/text_table.c report/text_table.h \
	report/whole_study.c \
	report/transfer.c report/transfer.h
nodist_libreport_la_SOURCES = report/page/page_template.c
libreport_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
libreport_la_LIBADD = libcommon.la $(XXHASH_LIBS)


# The page's style and script are a file that browsers show; the program has it in itself.
report/page/page_template.c: $(srcdir)/report/page/page.html
	$(AM_V_at)$(MKDIR_P) report/page
	$(AM_V_GEN){ echo '#include <stddef.h>'; echo 'extern const unsigned char dl2_page_template[];'; \
	    echo 'extern const size_t dl2_page_template_size;'; \
	    echo 'const unsigned char dl2_page_template[] = {'; \
	    od -An -v -tu1 $(srcdir)/report/page/page.html | sed 's/[0-9][0-9]*/&,/g'; \
	    echo '};'; echo 'const size_t dl2_page_template_size = sizeof dl2_page_template;'; } >$@.new
	$(AM_V_at)mv $@.new $@
EXTRA_DIST += report/page/page.html
CLEANFILES += report/page/page_template.c

bin_PROGRAMS += dl2-report
dl2_commands += dl2-report
dl2_report_SOURCES = report/dl2_report.c
dl2_report_LDADD = libreport.la libdataset.la
