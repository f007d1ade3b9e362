"""Tables of people and counts: the names of `pmlopt.data.tables`, by a shorter path."""

from pmlopt.core.aliases import delegate_to

__getattr__, __dir__, __all__ = delegate_to("pmlopt.data.tables")
