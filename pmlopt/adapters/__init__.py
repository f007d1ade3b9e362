"""Mechanisms where people work: scikit-learn, Polars and OpenDP, each imported by anyone who uses it.

Each module needs its package: `pip install 'pmlopt[sklearn]'`, `'pmlopt[polars]'` or `'pmlopt[opendp]'`.
"""
