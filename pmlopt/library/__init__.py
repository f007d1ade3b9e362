"""The problem library: problem files, their schema, and the programs they declare.

A problem file is TOML and holds one claim: a design problem, where it comes from, and what is known
of its optimum. Unknown keys are errors, and names are looked up in tables, never evaluated.
"""

from pmlopt.library.instances import (
    BASES,
    RELATIONS,
    ExpectedOptimum,
    Instance,
    find,
    library,
    load,
    load_all,
)
from pmlopt.model.closed_forms.catalogue import CLOSED_FORMS

__all__ = [
    "BASES",
    "CLOSED_FORMS",
    "RELATIONS",
    "ExpectedOptimum",
    "Instance",
    "find",
    "library",
    "load",
    "load_all",
]
