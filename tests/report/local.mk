# SPDX-License-Identifier: BSD-2-Clause
# tests of report
if HAVE_CMOCKA
check_PROGRAMS += tests/report/test_accuracy_sizes
tests_report_test_accuracy_sizes_SOURCES = tests/report/test_accuracy_sizes.c
tests_report_test_accuracy_sizes_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_accuracy_sizes_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_accuracy_sizes
check_PROGRAMS += tests/report/test_analysis
tests_report_test_analysis_SOURCES = tests/report/test_analysis.c
tests_report_test_analysis_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_analysis_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_analysis
check_PROGRAMS += tests/report/test_codec_sizes
tests_report_test_codec_sizes_SOURCES = tests/report/test_codec_sizes.c
tests_report_test_codec_sizes_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_codec_sizes_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_codec_sizes
check_PROGRAMS += tests/report/test_harm
tests_report_test_harm_SOURCES = tests/report/test_harm.c
tests_report_test_harm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_harm_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_harm
check_PROGRAMS += tests/report/test_inference
tests_report_test_inference_SOURCES = tests/report/test_inference.c
tests_report_test_inference_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_inference_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_inference
check_PROGRAMS += tests/report/test_meta_analysis
tests_report_test_meta_analysis_SOURCES = tests/report/test_meta_analysis.c tests/report/meta_analysis_golden.inc
tests_report_test_meta_analysis_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_meta_analysis_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_meta_analysis
check_PROGRAMS += tests/report/test_metric_trust
tests_report_test_metric_trust_SOURCES = tests/report/test_metric_trust.c
tests_report_test_metric_trust_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_metric_trust_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_metric_trust
check_PROGRAMS += tests/report/test_speed
tests_report_test_speed_SOURCES = tests/report/test_speed.c
tests_report_test_speed_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_speed_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_speed
endif
TESTS += tests/report/browser.sh tests/report/latex.sh tests/report/several.sh tests/report/answer.sh tests/report/report.sh tests/report/figures.sh tests/report/contradictions.sh tests/report/divergence.sh tests/report/comparable.sh tests/report/claims.sh tests/report/plan.sh tests/report/sections.sh tests/report/search.sh tests/report/groups.sh tests/report/group_column.sh tests/report/harm.sh tests/report/metric.sh
EXTRA_DIST += tests/report/browser.sh tests/report/browser.py tests/report/page_text.py tests/report/latex.sh tests/report/figures.sh tests/report/divergence.sh tests/report/contradictions.sh tests/bench/report_page.py tests/report/several.sh tests/report/answer.sh tests/report/make_meta_analysis_golden.py tests/bench/check_forecast.py tests/report/report.sh tests/report/comparable.sh tests/report/search.sh tests/report/sections.sh tests/report/claims.sh tests/report/plan.sh tests/report/make_study.sh tests/report/groups.sh tests/report/group_column.sh tests/report/harm.sh tests/report/metric.sh

check_PROGRAMS += tests/report/fuzz_study
tests_report_fuzz_study_SOURCES = tests/report/fuzz_study.c
tests_report_fuzz_study_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_report_fuzz_study_LDADD = $(FUZZ_LIBS) libreport.la
TESTS += tests/report/fuzz_study.sh
EXTRA_DIST += tests/report/fuzz_study.sh

check_PROGRAMS += tests/report/fuzz_predictions
tests_report_fuzz_predictions_SOURCES = tests/report/fuzz_predictions.c
tests_report_fuzz_predictions_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LINK)
tests_report_fuzz_predictions_LDADD = $(FUZZ_LIBS) libreport.la
TESTS += tests/report/fuzz_predictions.sh
EXTRA_DIST += tests/report/fuzz_predictions.sh tests/report/predictions.py

check_PROGRAMS += tests/report/simulate
tests_report_simulate_SOURCES = tests/report/simulate.c
tests_report_simulate_LDADD = libreport.la
TESTS += tests/report/simulate
check_PROGRAMS += tests/report/simulate_harm
tests_report_simulate_harm_SOURCES = tests/report/simulate_harm.c
tests_report_simulate_harm_LDADD = libreport.la
TESTS += tests/report/simulate_harm

check_PROGRAMS += tests/report/simulate_speed
tests_report_simulate_speed_SOURCES = tests/report/simulate_speed.c
tests_report_simulate_speed_LDADD = libreport.la
TESTS += tests/report/simulate_speed

# The longer version: some ten minutes.
.PHONY: simulate
simulate: tests/report/simulate$(EXEEXT) tests/report/simulate_speed$(EXEEXT) tests/report/simulate_harm$(EXEEXT)
	./tests/report/simulate 4000
	./tests/report/simulate_speed 20000
	./tests/report/simulate_harm 4000
