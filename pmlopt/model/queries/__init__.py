"""Queries on a dataset of records, the number of datasets behind each value, and mechanisms that answer."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
