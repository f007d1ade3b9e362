"""Leakage per record against expected distortion: the least of one within a limit on the other."""
