"""Designs with a sub-convex utility: a linear program over weights of extreme columns."""
