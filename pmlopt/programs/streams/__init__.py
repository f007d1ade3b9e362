"""Designs of the releases of a moving secret, one after the other, under what was released before."""
