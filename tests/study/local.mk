# tests of study
