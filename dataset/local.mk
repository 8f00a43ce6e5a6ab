# dataset
