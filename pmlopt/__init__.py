"""pmlopt designs privacy mechanisms by convex optimization, and proves the bound it claims.

The public names are declared once, in `__init__.pyi`: each is loaded from its module when it is first used,
for cvxpy takes a second to import.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("pmlopt")
