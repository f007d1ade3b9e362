"""Noise that is added to numbers, to answers of queries and to counts, calibrated to a PML level."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
