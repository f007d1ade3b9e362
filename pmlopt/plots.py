"""Pictures: the names of `pmlopt.programs.plots`, by a shorter path."""

from pmlopt.core.aliases import delegate_to

__getattr__, __dir__, __all__ = delegate_to("pmlopt.programs.plots")
