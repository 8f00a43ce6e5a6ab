# tests of quality
