"""Designs with a sub-convex utility: a linear program in the weights of extreme columns."""
