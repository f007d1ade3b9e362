"""The problem library: problem files, their schema, and the programs they declare.

A problem file is TOML and holds one claim: a design problem, where it comes from, and what is known
of its optimum. Unknown keys are errors, and names are looked up in tables, never evaluated.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
