# tests of loader
