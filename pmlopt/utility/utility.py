"""The interface of utilities: a number on a given mechanism, and the sense of optimization."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pmlopt.mechanism import MechanismLike
from pmlopt.prior import PriorLike


class Utility(ABC):
    """A utility of mechanisms, and whether it is maximised or minimised."""

    maximised: ClassVar[bool]

    @abstractmethod
    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """The utility of a given mechanism, in the units of the utility."""
