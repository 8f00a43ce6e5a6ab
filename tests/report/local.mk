# tests of report
if HAVE_CMOCKA
check_PROGRAMS += tests/report/test_analysis
tests_report_test_analysis_SOURCES = tests/report/test_analysis.c
tests_report_test_analysis_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_report_test_analysis_LDADD = libreport.la $(CMOCKA_LIBS)
TESTS += tests/report/test_analysis
endif
TESTS += tests/report/report.sh
EXTRA_DIST += tests/report/report.sh tests/report/make_study.sh
