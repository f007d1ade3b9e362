"""Estimation from released data: frequencies with errors, tables, and levels from samples."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
