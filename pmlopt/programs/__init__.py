"""The programs and methods, a folder for each kind: its builder, its certificate, and a file for each method.

`pmlopt.programs` offers what few programs need and the top of the package leaves out: how an answer ended
(`Status`), methods with options, and two builders next to better-known ones. The names are
declared in `__init__.pyi`, and loaded when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
