"""Estimates from releases: the names of `pmlopt.releases.estimation`, by a shorter path."""

from pmlopt.core.aliases import delegate_to

__getattr__, __dir__, __all__ = delegate_to("pmlopt.releases.estimation")
