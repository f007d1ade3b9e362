"""Matrices with labels in files: one module for each format, and their table in `formats`."""
