"""Exact random sampling from integer arithmetic: random bits, categorical draws and grid noise."""
