"""Exact arithmetic: integers, decimals, and the repair of a matrix until it meets its claim exactly."""
