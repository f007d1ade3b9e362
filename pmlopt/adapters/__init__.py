"""Adapters for scikit-learn, Polars, OpenDP and data engines, imported on demand.

Each module needs its package: `pip install 'pmlopt[sklearn]'`, `'pmlopt[polars]'` or `'pmlopt[opendp]'`.
"""
