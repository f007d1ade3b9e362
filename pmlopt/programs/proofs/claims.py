"""What of a result can be proved by linear programs over the rationals, kind by kind of certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch
from itertools import islice

import numpy as np

from pmlopt.errors import ProgramError
from pmlopt.model.privacy import PML
from pmlopt.programs.certificate import Certificate, ListedCertificate
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.masses import RationalMechanism
from pmlopt.programs.exact.rounding import scale_to_integers
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.epsilon_certificate import LeastEpsilonCertificate
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.proofs.duals import complete_multipliers, find_least_size, prove_bound
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, ProvedProgram
from pmlopt.programs.proofs.readme import format_sentence, round_digits
from pmlopt.programs.proofs.requirement_rows import (
    MechanismProgram,
    add_named_requirement,
    add_requirement,
)
from pmlopt.programs.worst_case.certificate import ThresholdCertificate
from pmlopt.solvers.mps import make_names

_to_fractions = np.vectorize(Fraction, otypes=[object])


@singledispatch
def iterate_proofs(certificate: Certificate) -> Iterator[ProvedProgram]:
    """Yield the linear programs by which the claims of a certificate are proved.

    Raises:
        ProgramError: its claims are about no linear program on listed letters.
    """
    raise ProgramError(
        f"a certificate of the kind {certificate.kind!r} has no proof by a linear program on listed letters: "
        "designs, least leakages, worst cases and envelopes of listed priors have"
    )


@iterate_proofs.register
def _(certificate: ListedCertificate) -> Iterator[ProvedProgram]:
    """Prove the requirement only: the utility is no linear function of the mechanism."""
    program = MechanismProgram(certificate.prior, certificate.mechanism, above=False)
    add_named_requirement(certificate.privacy, certificate.prior, program)
    yield ProvedProgram("feasibility", program, format_sentence("requirement"))


def _build_design(certificate: LinearCertificate, *, above: bool) -> tuple[ExactProgram, str]:
    """Build the linear program of a design, and describe by how much its added rows are relaxed."""
    if certificate.added_rows is None:
        raise ProgramError(
            "a constraint that was added to the design is not linear in the mechanism: prove it without"
        )
    program = MechanismProgram(certificate.prior, certificate.mechanism, above=above)
    slack = ZERO
    names = make_names([one.name for one in certificate.added_rows])
    for name, one in zip(names, certificate.added_rows, strict=True):
        own = program.add_affine_rows(name, one.coefficients, one.offset.tolist(), equal=one.equal)
        slack = max(slack, own)
    add_named_requirement(certificate.privacy, certificate.prior, program)
    program.objective = program.weigh_table(certificate.table, program.shares)
    program.sign = 1 if certificate.maximised else -1
    return program, _describe_slack("slack", slack)


def _describe_slack(name: str, slack: Fraction) -> str:
    """Describe by how much rows are relaxed, where they are."""
    return " " + format_sentence(name, slack=round_digits(slack, 3, up=True)) if slack else ""


@iterate_proofs.register
def _(certificate: LinearCertificate) -> Iterator[ProvedProgram]:
    """Prove that the mechanism meets the rows, and that none is better by more than a gap."""
    (program, slack), is_gain = _build_design(certificate, above=False), certificate.maximised
    more, relation, side = ("gain", "above", "least") if is_gain else ("loss", "below", "most")
    value = program.value
    shown = round_digits(value, 15, up=not is_gain)
    text = format_sentence("design", more=more, side=side, value=shown, slack=slack)
    yield ProvedProgram("feasibility", program, text)
    program, _ = _build_design(certificate, above=True)
    duals = prove_bound(program, program.costs)
    exact = program.sign * program.sum_right_sides(duals)
    bound = round_digits(exact, 15, up=is_gain)
    gap = round_digits(abs(exact - value), 2, up=True)
    names = {"more": more, "relation": relation}
    text = format_sentence("optimum", **names, bound=bound, gap=gap, slack=slack)
    yield ProvedProgram("optimum", program, text, duals)


def _add_target(program: ExactProgram, value: float, *, relaxed: bool = False) -> Fraction:
    """Replace the objective by the row that it is no worse than a value.

    Where it is to be relaxed by what the point breaks it, that is returned.
    """
    target = {column: -value for column, value in program.costs.items()}
    right = Fraction(-program.sign * value)
    slack = max(program.evaluate(target) - right, ZERO) if relaxed else ZERO
    program.sign = 1
    program.objective = {}
    program.add_row("target[all]", target, right + slack)
    return slack


def _describe_demand(certificate: LevelCertificate) -> str:
    """Describe what a least leakage demands next to the level."""
    expected = certificate.expected
    found = []
    if expected is not None:
        name = "expected-gain" if expected.maximised else "expected-loss"
        found.append(format_sentence(name, value=expected.value))
    if not found or not certificate.allowed.all():
        found.append(format_sentence("pairs"))
    return " and ".join(found)


def _build_level(certificate: LevelCertificate, level: float, *, above: bool) -> MechanismProgram:
    """Build the rows of a level with the pairs that may occur."""
    program = MechanismProgram(
        certificate.prior, certificate.mechanism, above=above, allowed=certificate.allowed
    )
    add_requirement(PML(level, certificate.privacy.over), program, "pml")
    if (expected := certificate.expected) is not None:
        program.objective = program.weigh_table(expected.table, program.shares)
        program.sign = 1 if expected.maximised else -1
    return program


def _prove_level(certificate: LevelCertificate, level: float) -> ProvedProgram:
    """Prove that a mechanism has a level and meets what is demanded, the target up to rounding."""
    program = _build_level(certificate, level, above=False)
    text = ""
    if certificate.expected is not None:
        slack = _add_target(program, certificate.expected.value, relaxed=True)
        text = _describe_slack("rounded-target", slack)
    demand = _describe_demand(certificate)
    sentence = format_sentence("level", level=level, demand=demand, slack=text)
    return ProvedProgram("feasibility", program, sentence, level=level)


def _refute_level(certificate: LevelCertificate, level: float) -> ProvedProgram | None:
    """Prove that no mechanism has a level and all that is demanded; None where the multipliers do not."""
    if not 0 <= level <= certificate.bound or certificate.bound == 0:
        return None
    program = _build_level(certificate, level, above=True)
    duals = _contradict_level(certificate, program, program.get_power(level))
    if duals is None:
        return None
    sentence = format_sentence("no-level", level=level, demand=_describe_demand(certificate))
    return ProvedProgram("infeasibility", program, sentence, duals, level)


def _contradict_level(
    certificate: LevelCertificate, program: MechanismProgram, ratio: Fraction
) -> list[Fraction] | None:
    """Return the multipliers of a contradiction between a level and what is demanded, or None.

    What the multipliers of the letters and of the floor give above a little less than their mean is above 0
    for all columns together; by the law of an output it is not for a column of it within the level.
    """
    assert certificate.multipliers is not None
    shares = np.array(program.shares)
    values = _to_fractions(certificate.multipliers)
    price = ZERO
    target = ZERO
    gains = np.full(certificate.allowed.shape, ZERO)
    if (floor := certificate.normalized_floor) is not None:
        price = Fraction(max(certificate.weight, 0.0)) / Fraction(floor.unit)
        gains = price * program.sign * _to_fractions(floor.expected.table)
        target = price * program.sign * Fraction(floor.expected.value)
        # the multipliers of the letters are for gains less the best of each letter
        values = values - np.where(certificate.allowed, gains, -np.inf).max(axis=1)
        _add_target(program, floor.expected.value)
    step = max(shares * abs(values)) / 2**100
    mean = shares @ values + target - step
    found = [ZERO] * len(program.rows)
    costs = shares[:, None] * (values[:, None] + gains - mean)
    found[-1] = price
    found[: len(shares)] = shares * (mean - values)
    places = {row.name: place for place, row in enumerate(program.rows)}
    for y, least_mean in enumerate(program.least_means.values()):
        law, multipliers = least_mean.prove(certificate.get_law(y))
        used = np.flatnonzero(certificate.allowed[:, y])
        own = costs[used, y]
        raised = ratio * np.array(law)[used]
        if (size := find_least_size(own, raised)) is None:
            return None
        for x, value in zip(used.tolist(), own + size * raised, strict=True):
            place = places[f"most[pml,{program.letters[x]},{program.outputs[y]}]"]
            found[place] = max(value, ZERO)
        for row, multiplier in multipliers.items():
            found[row] = size * ratio * multiplier
    complete_multipliers(program, {}, found, 1 / step)
    return found


def _iterate_levels(bound: float, sign: int) -> Iterator[float]:
    """Yield levels next to a bound on one side, the nearest first."""
    steps = (0.0, *(10.0**-digits for digits in range(15, 5, -1)))
    yield from (bound + sign * step * max(1.0, bound) for step in steps)


@iterate_proofs.register
def _(certificate: LevelCertificate) -> Iterator[ProvedProgram]:
    """Prove that the level is reached, and that none below the bound is."""
    yield _prove_level(certificate, certificate.privacy.epsilon)
    levels = _iterate_levels(certificate.bound, -1)
    yield from islice(filter(None, (_refute_level(certificate, level) for level in levels)), 1)


@iterate_proofs.register
def _(certificate: ThresholdCertificate) -> Iterator[ProvedProgram]:
    """Prove that the threshold is kept, and that the next one is not within the level."""
    level = max(certificate.epsilon, certificate.kept.value)
    beyond = certificate.beyond
    text = format_sentence("rank", level=level, rank=certificate.threshold)
    yield replace(_prove_level(certificate.kept, level), sentence=text)
    if beyond is not None and (proof := _refute_level(beyond, certificate.epsilon)) is not None:
        rank = certificate.max_possible_rank
        text = format_sentence("no-rank", level=certificate.epsilon, rank=rank)
        yield replace(proof, sentence=text)


@iterate_proofs.register
def _(certificate: LeastEpsilonCertificate) -> Iterator[ProvedProgram]:
    """Prove that the target is reached, and, of linear utilities, that it is not at the bound."""
    value = certificate.value
    level = certificate.bound
    reach = certificate.reach
    first = next(iterate_proofs(certificate.witness))
    text = format_sentence("reached", sentence=first.sentence, level=value, target=reach)
    yield replace(first, sentence=text, level=value)
    if isinstance(certificate.proof, LinearCertificate):
        program, slack = _build_design(certificate.proof, above=True)
        duals = [*prove_bound(program, program.costs), ONE]
        _add_target(program, reach)
        if program.sum_right_sides(duals) < 0:
            text = format_sentence("not-reached", level=level, target=reach, slack=slack)
            yield ProvedProgram("infeasibility", program, text, duals, level)


def _build_post_processing(
    certificate: EnvelopeCertificate | ProcessedFailureCertificate, level: float, *, above: bool
) -> ExactProgram:
    """Build the program of the outcomes of a post-processing that leak a level, with the attack as its point.

    Source: [saeidian2026envelopes, Theorem 1].

    Raises:
        ProgramError: it is over a set of priors.
    """
    if certificate.over is not None:
        raise ProgramError(
            "an envelope over a set of priors is no single linear program: prove it for one prior"
        )
    exact = RationalMechanism.from_floats(certificate.prior, certificate.mechanism.matrix)
    unit = Fraction(1, exact.total)
    program = ExactProgram(above)
    columns = exact.columns * unit
    law = exact.laws[0] * unit
    ratio = program.get_power(level)
    given = scale_to_integers(certificate.attack.matrix) * ONE
    given = given / given.sum(axis=1)[:, None]
    # an outcome leaks through the letter of which it is likeliest
    joint = columns @ given
    letters = make_names(certificate.prior.labels)
    leaking = (joint.max(axis=0) >= ratio * (law @ given)).astype(bool)
    outputs = make_names(certificate.mechanism.outputs)
    used = np.flatnonzero(law)
    for x, (letter, column) in enumerate(zip(letters, columns, strict=True)):
        own = given[:, leaking & (joint.argmax(axis=0) == x)].sum(axis=1)
        cells = [program.add_column(f"take[{letter},{outputs[y]}]", own[y]) for y in used]
        leaks = (ratio * law - column)[used]
        program.add_row(f"leak[{letter}]", dict(zip(cells, leaks, strict=True)))
        program.objective |= dict(zip(cells, law[used], strict=True))
    for place, y in enumerate(used):
        takes = range(place, len(program.columns), len(used))
        program.add_row(f"taken[{outputs[y]}]", dict.fromkeys(takes, ONE), ONE)
    return program


@iterate_proofs.register
def _(certificate: EnvelopeCertificate | ProcessedFailureCertificate) -> Iterator[ProvedProgram]:
    """Prove the probability of outcomes that leak a level or more, from both sides.

    Of an envelope, it is at least delta at the value, and less next to the bound.
    """
    if isinstance(certificate, EnvelopeCertificate):
        kind = "envelope"
        level = certificate.value
        delta = certificate.delta
        levels = _iterate_levels(certificate.bound, 1)
    else:
        kind = "mass"
        level = certificate.epsilon
        delta = math.inf
        levels = iter([level])
    claims_level = delta < math.inf
    program = _build_post_processing(certificate, level, above=True)
    mass = round_digits(program.value, 15, up=False)
    text = format_sentence(kind, mass=mass, delta=delta, level=level)
    yield ProvedProgram("feasibility", program, text, level=level if claims_level else None)
    for level in levels:
        program = _build_post_processing(certificate, level, above=False)
        duals = prove_bound(program, program.costs)
        if (most := program.sum_right_sides(duals)) < delta:
            mass = round_digits(most, 15, up=True)
            text = format_sentence(f"{kind}-bound", mass=mass, delta=delta, level=level)
            yield ProvedProgram("optimum", program, text, duals, level if claims_level else None)
            return
