"""The best utility of a mechanism whose post-processings leak at most epsilon but with a probability."""
