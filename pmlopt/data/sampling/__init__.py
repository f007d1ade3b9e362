"""Exact sampling: random bits, draws from the rows of a matrix, and noise on a grid, all in integers."""
