"""pmlopt designs privacy mechanisms by convex optimization, and proves the bound it claims.

The public names are declared once, in `__init__.pyi`: each is loaded from its module when it is first used,
for cvxpy takes a second to import.
"""

from importlib import import_module
from importlib.metadata import version
from typing import Any

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("pmlopt")

_ROOMS = {
    "closed_forms": "model",
    "estimation": "releases",
    "noise": "releases",
    "plots": "programs",
    "privacy": "model",
    "queries": "model",
    "symmetry": "data",
    "tables": "data",
    "uncertainty": "model",
    "utility": "model",
}
"""The rooms of the public subpackages with a short name, such as `pmlopt.noise`."""


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{_ROOMS[name]}.{name}")
    return _attribute(name)
