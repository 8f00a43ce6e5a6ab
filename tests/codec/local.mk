# tests of codec
