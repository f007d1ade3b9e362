"""Adapters for scikit-learn, Polars, OpenDP and data engines, imported on demand.

Each module needs its package: the extra `sklearn`, `polars` or `opendp`.
"""
