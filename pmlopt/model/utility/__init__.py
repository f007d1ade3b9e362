"""Utilities, each in two forms: a number on a given mechanism, and what an optimization problem needs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
