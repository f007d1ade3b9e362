"""Closed-form mechanisms and values: warm starts, and oracles for verification."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
