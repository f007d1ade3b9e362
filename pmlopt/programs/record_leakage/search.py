"""What every search for a record's largest leakage has: the best law so far, and a bound with its proof."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from pmlopt.arrays import FloatArray
from pmlopt.backends.clock import Clock
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.local_ascent import climb
from pmlopt.programs.record_leakage.proof import KindProof


@dataclass
class Search(ABC):
    """A search for one kind of records.

    Attributes:
        best: (A, T) a law within the entropy bound.
        value: what it leaks.
        nodes: how many relaxations were solved.
        compile_seconds, solve_seconds: what they took.
    """

    adversary: Adversary
    best: FloatArray
    value: float
    nodes: int = field(default=0, kw_only=True)
    compile_seconds: float = field(default=0.0, kw_only=True)
    solve_seconds: float = field(default=0.0, kw_only=True)

    @property
    @abstractmethod
    def bound(self) -> float:
        """What no law leaks more than."""

    @abstractmethod
    def run(self, target: float, tolerance: float, nodes: int, clock: Clock) -> str:
        """Split the cell of the largest bound until that is near the value.

        Args:
            target: a value in hand from other records: bounds below it need not fall.
            tolerance: how near, in nats.
            nodes: at most so many relaxations.
            clock: what is left of the time.

        Returns:
            What was done, in words.
        """

    @abstractmethod
    def proof(self, record: int) -> KindProof:
        """The proof so far, for the records of the kind of this one."""

    def improve(self, joints: FloatArray, iterations: int, clock: Clock) -> None:
        """Climb from some laws and keep the best."""
        climbed, values = climb(self.adversary, joints, iterations, clock=clock)
        best = int(values.argmax())
        self.offer(self.adversary.allowed(climbed[best]))

    def offer(self, joint: FloatArray) -> None:
        """Keep a law within the entropy bound where it leaks more than the best so far."""
        value = self.adversary.leaked(joint)
        if value > self.value:
            self.best, self.value = joint, value
