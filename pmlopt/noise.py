"""Noise: the names of `pmlopt.releases.noise`, by a shorter path."""

from pmlopt.core.aliases import delegate_to

__getattr__, __dir__, __all__ = delegate_to("pmlopt.releases.noise")
