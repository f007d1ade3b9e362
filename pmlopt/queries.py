"""Queries: the names of `pmlopt.model.queries`, by a shorter path."""

from pmlopt.core.aliases import delegate_to

__getattr__, __dir__, __all__ = delegate_to("pmlopt.model.queries")
