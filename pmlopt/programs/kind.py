"""How programs of one kind are solved: its methods, in the order in which they are tried, with reasons."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from numpy.typing import NDArray

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.errors import PmloptError, ProgramError, SolverUnavailableError
from pmlopt.program import Program
from pmlopt.result import C_co, Certificate, ClosedForm, WarmStart

P = TypeVar("P", bound=Program[Any])
C = TypeVar("C", bound=Certificate)
S = TypeVar("S")
"""What the methods of a kind may start from."""


class MethodError(PmloptError):
    """A method has nothing to show; the message says why. `solve` goes on to the next one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Found(Generic[C_co]):
    """What a method found, certified: its own account of how, and nothing that is believed without proof.

    Attributes:
        certificate: what is claimed.
        finished: whether it ended by itself, and not by a limit.
        message: how it ended, in words.
        detail: what the reason of the result says besides the method's own.
        iterations: its own count, where it has one.
        warm_started: whether it started from something in hand.
        compile_seconds, solve_seconds, certify_seconds: what it took.
        closed_form: the optimum by formula, where one is known.
        arrays: what a next program of the kind may start from, by name.
    """

    certificate: C_co
    finished: bool
    message: str
    detail: str = ""
    iterations: int | None = None
    warm_started: bool = False
    compile_seconds: float = 0.0
    solve_seconds: float = 0.0
    certify_seconds: float = 0.0
    closed_form: ClosedForm | None = None
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def certified(certificate: C, closed_form: ClosedForm | None = None) -> Found[C]:
    """What `certify` makes of a matrix from anywhere, which may be a start for the next program."""
    return Found(
        certificate=certificate,
        finished=True,
        message="a matrix that was given",
        closed_form=closed_form,
        arrays={"matrix": certificate.mechanism.matrix},
    )


class Method(ABC, Generic[P, S, C_co]):
    """One way to solve a program.

    Attributes:
        name: by which it is asked for.
        reason: why it is taken where nobody asked for it.
    """

    name: str
    reason: str

    @abstractmethod
    def run(self, program: P, options: Options, start: S) -> Found[C_co]:
        """Solve, and certify what was found.

        Raises:
            MethodError: there is nothing to show.
            InfeasibleError: the constraints that a person added allow nothing.
        """


class Kind(ABC, Generic[P, S, C_co]):
    """The methods for one kind of program.

    Attributes:
        names: of the methods that are pmlopt's own.
        gap_is_an_answer: whether a result whose gap is above the tolerance is returned with the status that
            says so; else `solve` raises a SolverError that carries it.
    """

    names: ClassVar[tuple[str, ...]]
    gap_is_an_answer: ClassVar[bool] = True

    @abstractmethod
    def start(self, program: P, warm_start: WarmStart) -> S:
        """What the methods may start from.

        Raises:
            InputError: what a person gave does not fit the program; a `Restart` that does not is left out.
        """

    @abstractmethod
    def automatic(self, program: P, start: S) -> Sequence[Method[P, S, C_co]]:
        """The methods that `auto` tries, in order, until one reaches a certified gap within tolerance."""

    def others(self, program: P) -> Sequence[Method[P, S, C_co]]:
        """Methods that are run where they are asked for by name only."""
        return ()

    def named(self, program: P, name: str, start: S) -> Method[P, S, C_co]:
        """The method of a name.

        Raises:
            SolverUnavailableError: there is none, or it cannot take this program; the message lists others.
        """
        known = [*self.automatic(program, start), *self.others(program)]
        for method in known:
            if method.name == name:
                return method
        names = ", ".join(dict.fromkeys(method.name for method in known))
        raise SolverUnavailableError(
            f"{name!r} does not solve {program!r}, or is not installed; there are: auto, {names}"
        )

    def believes(self, program: P, found: Found[C_co]) -> bool:
        """Whether what a method finished with is an answer though its gap is above the tolerance."""
        return self.gap_is_an_answer and found.finished

    def certify(self, program: P, matrix: FloatArray, multipliers: FloatArray | None) -> Found[C_co]:
        """The certificate of a matrix from anywhere; none unless a kind says how.

        Raises:
            MechanismError, ProgramError: it is nothing that the program asks for, not even roughly.
        """
        raise ProgramError("there is no way to certify a matrix for this kind of program")
