"""Sets of priors: their least means as numbers, and as cvxpy constraints."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
