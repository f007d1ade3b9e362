"""Leakage and utility measures of a given mechanism, in numpy, in nats."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
