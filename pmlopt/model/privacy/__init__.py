"""Privacy requirements: leakage levels of a mechanism, and the matching optimization constraints."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
