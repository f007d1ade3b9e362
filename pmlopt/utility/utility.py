"""What every utility offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pmlopt.mechanism import MechanismLike
from pmlopt.prior import PriorLike


class Utility(ABC):
    """What must stay useful: a number on every mechanism, and whether more of it is better."""

    maximised: ClassVar[bool]

    @abstractmethod
    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """The utility of a given mechanism, in its own units."""
