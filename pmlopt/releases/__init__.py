"""The accounting of releases: joint leakage of several mechanisms, attributes, people and clear columns.

The names are declared in `__init__.pyi`, and loaded when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
