"""Every leakage of a mechanism that is given, at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import PriorLike
from pmlopt.measures.leakage import ldp_level, lip_levels, maximal_leakage, mutual_information
from pmlopt.measures.posterior import MOST_TOLD, OutcomeTells, what_outcomes_tell


@dataclass(frozen=True)
class Audit:
    """What a mechanism leaks.

    Attributes:
        levels: in nats, by name: pml, ldp, lip_lower, lip_upper, maximal_leakage, mutual_information.
        outcomes: what each outcome tells of the letter, those that leak most first.
    """

    levels: Mapping[str, float]
    outcomes: tuple[OutcomeTells, ...]

    def __str__(self) -> str:
        """The levels, and what the outcomes that leak most tell."""
        levels = [f"{name} {level:.6g} nats" for name, level in self.levels.items()]
        return "\n".join([*levels, *map(str, self.outcomes[:MOST_TOLD])])


def audit(prior: PriorLike, mechanism: MechanismLike) -> Audit:
    """Every level of a mechanism under a prior, and what its outcomes tell.

    Args:
        prior: N letters.
        mechanism: (N, M).

    Examples:
        >>> found = audit([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        >>> {name: round(level, 6) for name, level in found.levels.items()}["ldp"]  # log 3
        1.098612
        >>> print(found.outcomes[0])
        If the output is 0, the true value is 0 with probability 0.75; before it was 0.5.
    """
    p, m = paired(prior, mechanism)
    lower, upper = lip_levels(p, m)
    levels = {
        "pml": upper,
        "ldp": ldp_level(m),
        "lip_lower": lower,
        "lip_upper": upper,
        "maximal_leakage": maximal_leakage(m),
        "mutual_information": mutual_information(p, m),
    }
    return Audit(levels, tuple(what_outcomes_tell(p, m)))
