"""Random results of every linear kind, whose proofs others can check, and single changes of a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.model import constraints
from pmlopt.model.privacy import (
    LDP,
    LIP,
    PMC,
    PML,
    ApproximatePML,
    GuessLeakage,
    MaximalLeakage,
    MetricPrivacy,
    Pufferfish,
    RatioBound,
    Requirement,
)
from pmlopt.model.uncertainty import AllPriors, Box, ConvexHull, L1Ball, MinimumMass, Polytope
from pmlopt.model.utility import ExpectedGain, ExpectedLoss, MutualInformation
from pmlopt.programs.designs import design
from pmlopt.programs.envelope.program import envelope, failure_after_processing
from pmlopt.programs.least_leakage.program import least_leakage, worst_case_utility
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve
from pmlopt.programs.worst_case.program import best_worst_case

SHARP = 3e-10
"""The gap that is asked of designs, as a share of the range of the utility."""


def rare_prior(rng: np.random.Generator, n: int) -> Prior:
    """A prior with one to a few letters as rare as 1e-9, or from counts."""
    if rng.integers(4) == 0:
        counts = rng.integers(1, 1000, size=n).tolist()
        return Prior.from_counts({f"letter {x}": count for x, count in enumerate(counts)})
    law = rng.dirichlet(np.ones(n))
    rare = rng.choice(n, size=int(rng.integers(0, n)), replace=False)
    law[rare] *= 10.0 ** -rng.uniform(0, 7, size=len(rare))
    law = np.maximum(law, 1e-9)
    return Prior(law / law.sum(), [f"x{place}" for place in range(n)])


def random_table(rng: np.random.Generator, n: int, m: int) -> Any:
    """A gain or a loss: uniform numbers, whole ones, or with a large common part."""
    table = rng.uniform(size=(n, m)) if rng.integers(3) else rng.integers(0, 4, size=(n, m)) * 1.0
    table[:, 0] += 1e-3  # no table is constant
    if rng.integers(5) == 0:
        table += 100.0
    return ExpectedGain(table) if rng.integers(2) else ExpectedLoss(table)


def random_level(rng: np.random.Generator) -> float:
    """A level of 0.01 to 3 nats."""
    return float(10 ** rng.uniform(-2, math.log10(3)))


def designed(
    requirement: Callable[[np.random.Generator, Prior], Requirement],
) -> Callable[[np.random.Generator, int], Result[Any]]:
    """Random designs under a requirement that is built for a prior."""

    def solved(rng: np.random.Generator, n: int) -> Result[Any]:
        prior = rare_prior(rng, n)
        m = int(rng.integers(2, n + 1))
        utility = random_table(rng, n, m)
        return solve(design(prior, requirement(rng, prior), utility), tolerance=SHARP)

    return solved


def ball(rng: np.random.Generator, prior: Prior) -> Requirement:
    return PML(random_level(rng), over=L1Ball(prior, float(10 ** rng.uniform(-3, -0.5))))


def box(rng: np.random.Generator, prior: Prior) -> Requirement:
    share = rng.uniform(0.1, 0.9)
    upper = np.minimum(1.0, prior.pmf / share + 0.01)
    return PML(random_level(rng), over=Box(prior.pmf * share, upper))


def hull(rng: np.random.Generator, prior: Prior) -> Requirement:
    others = rng.dirichlet(np.ones(prior.size), size=int(rng.integers(1, 4)))
    return PML(random_level(rng), over=ConvexHull([prior.pmf, *others]))


def polytope(rng: np.random.Generator, prior: Prior) -> Requirement:
    rows = rng.uniform(-1, 1, size=(int(rng.integers(1, 4)), prior.size))
    return PML(random_level(rng), over=Polytope(rows, rows @ prior.pmf + rng.uniform(0.01, 0.2)))


def least_mass(rng: np.random.Generator, prior: Prior) -> Requirement:
    return PML(random_level(rng), over=MinimumMass(prior.size, rng.uniform(0, 1) / prior.size))


def about_secret(rng: np.random.Generator, prior: Prior) -> Requirement:
    values = int(rng.integers(2, 4))
    given = rng.dirichlet(np.ones(values), size=prior.size).T
    secret = Secret(given * prior.pmf, labels=prior.labels)
    if rng.integers(2):
        return PML(random_level(rng), about=secret)
    pairs = [(secret.values[0], secret.values[1])]
    return (
        Pufferfish(random_level(rng), secret, pairs) if rng.integers(2) else Pufferfish(1.0, secret)
    )


def metric(rng: np.random.Generator, prior: Prior) -> Requirement:
    places = np.sort(rng.uniform(0, 3, size=prior.size)) + 0.05 * np.arange(prior.size)
    return MetricPrivacy(random_level(rng), np.abs(places[:, None] - places))


def pairs(rng: np.random.Generator, prior: Prior) -> Requirement:
    k = int(rng.integers(1, 6))
    above = rng.dirichlet(np.ones(prior.size), size=k)
    below = rng.dirichlet(np.ones(prior.size), size=k)
    return RatioBound(above, below, rng.uniform(0.05, 1.0, size=k))


def constrained(rng: np.random.Generator, n: int) -> Result[Any]:
    """A design with named constraints."""
    prior = rare_prior(rng, n)
    choices: Sequence[Sequence[constraints.Constraint]] = [
        [constraints.Invariant()],
        [constraints.Zeros([(prior.labels[0], prior.labels[-1])])],
        [constraints.OutcomeLeakage({prior.labels[0]: random_level(rng) / 3})],
        [constraints.CategoryRetention(0.05)],
        [constraints.Retention(0.2), constraints.OutcomeLeakage({prior.labels[1]: 0.4})],
    ]
    kept = choices[int(rng.integers(5))]
    utility = random_table(rng, n, n)
    return solve(design(prior, PML(1.0), utility, prior.labels, kept), tolerance=SHARP)


def own_rows(rng: np.random.Generator, n: int) -> Result[Any]:
    """A design with linear constraints of a person's own."""
    prior = rare_prior(rng, n)
    program = design(prior, PML(random_level(rng)), random_table(rng, n, n), prior.labels)
    law, mechanism = program.variables["output_law"], program.variables["mechanism"]
    program = program.with_constraints(
        often=law[0, 0] >= 0.3 / n, seldom=mechanism[0, 0] + mechanism[1, 1] <= 1.5
    )
    return solve(program, tolerance=SHARP)


def expected_level(rng: np.random.Generator, n: int) -> Result[Any]:
    """A least leakage with a floor on the expected gain, between the best constant's and the most."""
    prior, table = rare_prior(rng, n), rng.uniform(size=(n, n))
    least, most = float((prior.pmf @ table).max()), float(prior.pmf @ table.max(axis=1))
    target = least + (most - least) * rng.uniform(0.1, 0.8)
    return solve(least_leakage(prior, ExpectedGain(table), expected=target), tolerance=SHARP)


def random_order(rng: np.random.Generator, n: int) -> FloatArray:
    return np.array([rng.permutation(n) + 1.0 for _ in range(n)])


def worst_level(rng: np.random.Generator, n: int) -> Result[Any]:
    """A least leakage of the mechanisms that emit no output below a rank."""
    order = random_order(rng, n)
    threshold = int(rng.integers(2, n + 1))
    return solve(worst_case_utility(rare_prior(rng, n), order, threshold), tolerance=SHARP)


def worst_level_over_ball(rng: np.random.Generator, n: int) -> Result[Any]:
    """The same over an l1 ball, which may exclude outputs that few letters have."""
    prior, order = rare_prior(rng, n), random_order(rng, n)
    threshold, over = int(rng.integers(2, n + 1)), L1Ball(prior, float(10 ** rng.uniform(-3, -0.5)))
    return solve(worst_case_utility(prior, order, threshold, over=over), tolerance=SHARP)


def worst_case(rng: np.random.Generator, n: int) -> Result[Any]:
    return solve(best_worst_case(rare_prior(rng, n), random_order(rng, n), random_level(rng)))


def least_epsilon(rng: np.random.Generator, n: int) -> Result[Any]:
    """The least level of LDP or maximal leakage at which a target is reached."""
    prior, table = rare_prior(rng, n), rng.uniform(size=(n, n))
    least, most = float((prior.pmf @ table).max()), float(prior.pmf @ table.max(axis=1))
    target = least + (most - least) * 0.4
    family = LDP if rng.integers(2) else MaximalLeakage
    return solve(least_leakage(prior, family, ExpectedGain(table), target), tolerance=SHARP)


def post_processing(rng: np.random.Generator, n: int) -> Result[Any]:
    """The envelope of a random mechanism, or the probability of a level after post-processing."""
    prior, matrix = rare_prior(rng, n), rng.dirichlet(np.ones(n), size=n)
    if rng.integers(2):
        return solve(envelope(prior, matrix, rng.uniform(0.02, 0.5)))
    return solve(failure_after_processing(prior, matrix, rng.uniform(0.1, 1.0)))


def informative(rng: np.random.Generator, n: int) -> Result[Any]:
    """A design for mutual information, of which the requirement is proved."""
    return solve(design(rare_prior(rng, min(n, 5)), PML(random_level(rng)), MutualInformation()))


KINDS: Mapping[str, Callable[[np.random.Generator, int], Result[Any]]] = {
    "pml": designed(lambda rng, prior: PML(random_level(rng))),
    "letter-budgets": designed(
        lambda rng, prior: PML(rng.uniform(0.05, 1.0, size=prior.size).tolist())
    ),
    "l1-ball": designed(ball),
    "box": designed(box),
    "least-mass": designed(least_mass),
    "all-priors": designed(lambda rng, prior: PML(random_level(rng), over=AllPriors(prior.size))),
    "hull": designed(hull),
    "polytope": designed(polytope),
    "ldp": designed(lambda rng, prior: LDP(random_level(rng))),
    "lip": designed(lambda rng, prior: LIP(random_level(rng), random_level(rng))),
    "pmc": designed(lambda rng, prior: PMC(random_level(rng))),
    "maximal-leakage": designed(lambda rng, prior: MaximalLeakage(random_level(rng))),
    "secret": designed(about_secret),
    "metric": designed(metric),
    "ratio-bound": designed(pairs),
    "approximate": designed(
        lambda rng, prior: ApproximatePML(random_level(rng), float(10 ** rng.uniform(-4, -1)))
    ),
    "guesses": designed(
        lambda rng, prior: GuessLeakage(int(rng.integers(1, 4)), random_level(rng))
    ),
    "conjunction": designed(lambda rng, prior: PML(random_level(rng)) & LDP(random_level(rng))),
    "constraints": constrained,
    "own-rows": own_rows,
    "expected-level": expected_level,
    "worst-level": worst_level,
    "worst-level-over-ball": worst_level_over_ball,
    "worst-case": worst_case,
    "least-epsilon": least_epsilon,
    "post-processing": post_processing,
    "information": informative,
}
"""Random results of each kind, by a generator and a number of letters."""


def tamper(text: str, rng: np.random.Generator) -> tuple[str, str]:
    """A certificate with one number changed that its proof uses, and which number that is.

    Another coefficient, of a row that the derivation does not use, makes another linear program, of which the
    same is proved: such are left.
    """
    words = [line.split(" ") for line in text.split("\n")]
    places = {line[0]: place for place, line in enumerate(words) if line[0].isupper()}
    choices = ["bound"]
    # the point of no outcome is all zeros: what it proves is that the largest mass is at least nothing
    if words[places["SOL"]][1] == "1" and words[places["SOL"] + 1][1] != "0":
        choices.append("entry")
    if words[places["DER"]][1] == "1":
        choices += ["multiplier", "coefficient"]
    kind = str(rng.choice(choices))
    if kind == "entry":
        line = words[places["SOL"] + 1]
        place = 2 + 2 * int(rng.integers(int(line[1])))
        name = words[places["VAR"] + 1 + int(line[place])][0]
        # the probabilities of a letter sum to one; other variables may have slack, but no sign to lose
        if name.startswith("P["):
            change(line, place + 1)
        else:
            line[place + 1] = str(-Fraction(line[place + 1]))
    elif kind == "multiplier":
        line = words[places["DER"] + 1]
        start = line.index("lin") + 1
        change(line, start + 2 * int(rng.integers(int(line[start]))) + 2)
    elif kind == "coefficient":
        line = words[places["DER"] + 1]
        start = line.index("lin") + 1
        used = [int(word) for word in line[start + 1 : -2 : 2]]
        row = words[places["CON"] + 1 + int(rng.choice(used))]
        change(row, 3 + 2 * int(rng.integers(int(row[3]))) + 2)
    else:
        line = words[places["RTP"]]
        if line[1] == "infeas":
            line[1:] = ["range", "-1", "-2"]
        else:
            tighten(
                line, minimised=words[places["OBJ"]][1] == "min", derived="multiplier" in choices
            )
    return "\n".join(" ".join(line) for line in words), kind


def change(line: list[str], place: int) -> None:
    """Move a rational by 1e-12, or by that share of it."""
    number = Fraction(line[place])
    line[place] = str(number * (1 + TINY) if number else TINY)


TINY = Fraction(1, 10**12)


def tighten(line: list[str], *, minimised: bool, derived: bool) -> None:
    """Move an end of a range beyond what is proved."""
    ends = [(2, 1), (3, -1)]
    if not derived:
        ends = [ends[1 if minimised else 0]]
    for place, sign in ends:
        if not line[place].endswith("inf"):
            number = Fraction(line[place])
            line[place] = str(number + sign * abs(number) * TINY + sign * TINY)
            return
