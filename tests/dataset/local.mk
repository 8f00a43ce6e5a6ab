# tests of dataset
