"""What of a result can be proved by linear programs over the rationals, kind by kind of certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

import numpy as np

from pmlopt.errors import ProgramError
from pmlopt.model.privacy import PML
from pmlopt.programs.certificate import Certificate, ListedCertificate
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.epsilon_certificate import LeastEpsilonCertificate
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.proofs.duals import DualPoint, prove_bound
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, Terms, make_names
from pmlopt.programs.proofs.formats import ProvedProgram
from pmlopt.programs.proofs.mechanism_rows import MechanismRows
from pmlopt.programs.proofs.post_processing import build_post_processing
from pmlopt.programs.proofs.requirement_rows import add_requirement
from pmlopt.programs.worst_case.certificate import ThresholdCertificate

LEVEL_STEPS = (0.0, *(10.0**-digits for digits in range(15, 5, -1)))
"""By how much of a nat a level is moved, at most, until a proof that holds strictly below it exists."""


@singledispatch
def list_proofs(certificate: Certificate) -> list[ProvedProgram]:
    """List the linear programs by which the claims of a certificate are proved.

    Raises:
        ProgramError: its claims are about no linear program on listed letters.
    """
    raise ProgramError(
        f"a certificate of the kind {certificate.kind!r} has no proof by a linear program on listed letters: "
        "designs, least leakages, worst cases and envelopes of listed priors have"
    )


def prove_feasibility(
    program: ExactProgram, sentence: str, level: float | None = None
) -> ProvedProgram:
    """Prove that the point of a program meets its rows.

    Raises:
        ProgramError: it does not.
    """
    if (broken := program.find_broken_row()) is not None:
        raise ProgramError(
            f"the result breaks {broken} of the linear program: check it with `verify`"
        )
    return ProvedProgram(program, sentence, level=level)


@list_proofs.register
def _(certificate: ListedCertificate) -> list[ProvedProgram]:
    """Prove the requirement only: the utility is no linear function of the mechanism."""
    prior, privacy = certificate.prior, certificate.privacy
    rows = MechanismRows.build(prior, certificate.mechanism, above=False)
    add_requirement(privacy.for_prior(prior), rows, make_names([privacy.name])[0])
    sentence = (
        "The mechanism meets the requirement. Of its utility, where it has one, nothing is proved: that is "
        "no linear function of the mechanism."
    )
    return [prove_feasibility(rows.program, sentence)]


def _build_design(certificate: LinearCertificate, *, above: bool) -> tuple[MechanismRows, str]:
    """Build the linear program of a design, and describe by how much its added rows are relaxed."""
    if certificate.added_rows is None:
        raise ProgramError(
            "a constraint that was added to the design is not linear in the mechanism: prove it without"
        )
    prior, privacy, slack = certificate.prior, certificate.privacy, ZERO
    rows = MechanismRows.build(prior, certificate.mechanism, above=above)
    names = make_names([one.name for one in certificate.added_rows])
    for name, one in zip(names, certificate.added_rows, strict=True):
        own = rows.add_affine_rows(name, one.coefficients, one.offset.tolist(), equal=one.equal)
        slack = max(slack, own)
    add_requirement(privacy.for_prior(prior), rows, make_names([privacy.name])[0])
    rows.program.objective = rows.weigh_table(certificate.table)
    rows.program.is_maximised = certificate.maximised
    if not slack:
        return rows, ""
    text = " Added constraints are relaxed by what the mechanism breaks them, at most"
    return rows, f"{text} {float(slack):.3g}."


def _list_known(certificate: LinearCertificate, rows: MechanismRows) -> list[Fraction]:
    """List the multipliers that a certificate has of the rows of the letters, and of the added ones.

    The certificate has them over the prior, and of the table less the least value of each letter.
    """
    if certificate.multipliers is None:
        return []
    sign = 1 if certificate.maximised else -1
    offsets = certificate.columns.min_by_letter(certificate.table).tolist()
    prices = zip(rows.shares, certificate.multipliers.tolist(), offsets, strict=True)
    found = [share * (Fraction(rho) + sign * Fraction(least)) for share, rho, least in prices]
    added = certificate.added_rows or ()
    values = (Fraction(value) for one in added for value in one.effective_multipliers.tolist())
    for row in rows.program.rows[len(found) :]:
        if row.name.startswith("added["):
            value = next(values)
            found.append(value if row.equal else max(value, ZERO))
        elif row.name.startswith("added_back["):
            found.append(max(-value, ZERO))
    return found


@list_proofs.register
def _(certificate: LinearCertificate) -> list[ProvedProgram]:
    """Prove that the mechanism meets the rows, and that none is better by more than a gap."""
    (rows, slack), (wider, _) = (_build_design(certificate, above=above) for above in (False, True))
    value = rows.program.value
    more, relation = ("gain", "above") if certificate.maximised else ("loss", "below")
    first = prove_feasibility(
        rows.program,
        f"The mechanism meets the requirement, and its expected {more} is {float(value):.15g}.{slack}",
    )
    duals = prove_bound(wider.program, _list_known(certificate, wider))
    second = ProvedProgram(wider.program, "", duals)
    assert second.bound is not None
    sentence = (
        f"No mechanism that meets the requirement has an expected {more} {relation} "
        f"{float(second.bound):.15g}: the mechanism is optimal up to "
        f"{float(abs(second.bound - value)):.2g}.{slack}"
    )
    return [first, replace(second, sentence=sentence)]


def _refute(
    program: ExactProgram, target: Terms, right: Fraction, known: list[Fraction]
) -> DualPoint | None:
    """Add the row `target <= right`, and return a contradiction; None where none is found."""
    program.is_maximised = True
    program.objective = {column: -value for column, value in target.items()}
    duals = prove_bound(program, known)
    program.objective = {}
    if duals.bound + right >= 0:
        return None
    program.add_row("target[all]", target, right)
    return DualPoint([*duals.rows, ONE], duals.signs, duals.bound + right)


def _describe_demand(certificate: LevelCertificate) -> str:
    """Describe what a least leakage demands next to the level."""
    expected, found = certificate.expected, []
    if expected is not None:
        word, side = ("gain", "least") if expected.maximised else ("loss", "most")
        found.append(f"an expected {word} of at {side} {expected.value:.15g}")
    if expected is None or not certificate.allowed.all():
        found.append("only outputs that each letter may have")
    return " and ".join(found)


def _build_level(certificate: LevelCertificate, level: float, *, above: bool) -> MechanismRows:
    """Build the rows of a level with the pairs that may occur."""
    rows = MechanismRows.build(
        certificate.prior, certificate.mechanism, above=above, allowed=certificate.allowed
    )
    add_requirement(PML(level, certificate.privacy.over), rows, "pml")
    return rows


def _list_target(certificate: LevelCertificate, rows: MechanismRows) -> tuple[Terms, Fraction]:
    """Return the terms and the right side of the row that a target on the expectation is.

    Without one it is that the probabilities of all letters sum to one.
    """
    expected = certificate.expected
    if expected is None:
        return rows.weigh_table(-np.ones(certificate.allowed.shape)), -ONE
    sign = -1.0 if expected.maximised else 1.0
    return rows.weigh_table(sign * expected.table), Fraction(sign * expected.value)


def _prove_level(certificate: LevelCertificate, level: float) -> ProvedProgram:
    """Prove that a mechanism has a level and meets what is demanded, the target up to rounding."""
    rows, more = _build_level(certificate, level, above=False), ""
    if certificate.expected is not None:
        target, right = _list_target(certificate, rows)
        slack = max(rows.program.evaluate(target) - right, ZERO)
        rows.program.add_row("target[all]", target, right + slack)
        more = f" The target is relaxed by {float(slack):.3g}, its rounding." if slack else ""
    demand = _describe_demand(certificate)
    sentence = f"The mechanism has a level of at most {level:.15g} nats and {demand}.{more}"
    return prove_feasibility(rows.program, sentence, level)


def _refute_level(certificate: LevelCertificate, level: float) -> ProvedProgram | None:
    """Prove that no mechanism has a level, or less, and all that is demanded; None where no proof is found."""
    rows = _build_level(certificate, level, above=True)
    target, right = _list_target(certificate, rows)
    program, letters = rows.program, rows.program.rows[: len(rows.letters)]
    if certificate.expected is None:
        # of rows that sum to at most one, how near to one can all of them be?
        program.rows[: len(letters)] = [replace(row, equal=False) for row in letters]
    duals = _refute(program, target, right, _list_prices(certificate, rows))
    program.rows[: len(letters)] = letters
    if duals is None:
        return None
    demand = _describe_demand(certificate)
    sentence = f"No mechanism has a level of {level:.15g} nats or less and {demand}."
    return ProvedProgram(program, sentence, duals, is_infeasible=True, level=level)


def _list_prices(certificate: LevelCertificate, rows: MechanismRows) -> list[Fraction]:
    """List the multipliers of the letters that a certificate has, in the unit of a target."""
    floor, weight = certificate.normalized_floor, Fraction(certificate.weight)
    if certificate.multipliers is None:
        return []
    rho = [Fraction(price) for price in certificate.multipliers.tolist()]
    if floor is None:
        largest = max(*rho, Fraction(1))
        return [
            share * (1 - price / largest) for share, price in zip(rows.shares, rho, strict=True)
        ]
    if weight <= 0:
        return []
    sign = 1.0 if floor.expected.maximised else -1.0
    best = np.where(certificate.allowed, sign * floor.expected.table, -np.inf).max(axis=1).tolist()
    return [
        share * (Fraction(gain) - price * Fraction(floor.unit) / weight)
        for price, share, gain in zip(rho, rows.shares, best, strict=True)
    ]


def _find_refuted_level(certificate: LevelCertificate) -> Iterator[ProvedProgram]:
    """Yield the proof for the largest level up to the bound for which one is found; none at 0."""
    for step in LEVEL_STEPS if certificate.bound > 0 else ():
        level = certificate.bound - step * max(1.0, certificate.bound)
        proof = _refute_level(certificate, level) if level >= 0 else None
        if proof is not None:
            yield proof
            return


@list_proofs.register
def _(certificate: LevelCertificate) -> list[ProvedProgram]:
    """Prove that the level is reached, and that none below the bound is."""
    first = _prove_level(certificate, certificate.privacy.epsilon)
    return [first, *_find_refuted_level(certificate)]


@list_proofs.register
def _(certificate: ThresholdCertificate) -> list[ProvedProgram]:
    """Prove that the threshold is kept, and that the next one is not within the level."""
    level = max(certificate.epsilon, certificate.kept.value)
    threshold = f"it emits no rank below {certificate.threshold}"
    sentence = f"The mechanism has a level of at most {level:.15g} nats, and {threshold}."
    found = [replace(_prove_level(certificate.kept, level), sentence=sentence)]
    if certificate.beyond is not None:
        proof = _refute_level(certificate.beyond, certificate.epsilon)
        sentence = (
            f"No mechanism within {certificate.epsilon:.15g} nats emits only ranks above "
            f"{certificate.max_possible_rank}."
        )
        found += [] if proof is None else [replace(proof, sentence=sentence)]
    return found


@list_proofs.register
def _(certificate: LeastEpsilonCertificate) -> list[ProvedProgram]:
    """Prove that the target is reached, and, of linear utilities, that it is not at the bound."""
    first = list_proofs(certificate.witness)[0]
    levels = f"It has the level {certificate.value:.15g}; the target is {certificate.reach:.15g}."
    found = [
        replace(first, sentence=f"{first.sentence} {levels}", level=certificate.value),
    ]
    design = certificate.proof
    if isinstance(design, LinearCertificate):
        rows, slack = _build_design(design, above=True)
        sign, known = -1 if design.maximised else 1, _list_known(design, rows)
        target = {column: sign * value for column, value in rows.program.objective.items()}
        duals = _refute(rows.program, target, sign * Fraction(certificate.reach), known)
        sentence = (
            f"No mechanism within {certificate.bound:.15g} nats reaches the target "
            f"{certificate.reach:.15g}.{slack}"
        )
        if duals is not None:
            level = certificate.bound
            found.append(ProvedProgram(rows.program, sentence, duals, True, level))
    return found


@list_proofs.register
def _(certificate: ProcessedFailureCertificate) -> list[ProvedProgram]:
    """Prove the probability of outcomes that leak a level or more, from both sides."""
    first, second = (
        build_post_processing(certificate, certificate.epsilon, above=above)
        for above in (True, False)
    )
    duals = prove_bound(second)
    what = f"become outcomes that leak {certificate.epsilon:.15g} nats or more"
    reached = f"Outputs {what} with a probability of {float(first.value):.15g}."
    most = f"No post-processing lets outputs {what} with a probability above {float(duals.bound):.15g}."
    return [prove_feasibility(first, reached), ProvedProgram(second, most, duals)]


@list_proofs.register
def _(certificate: EnvelopeCertificate) -> list[ProvedProgram]:
    """Prove that outcomes of the probability delta leak the value, and fewer more than the bound."""
    first = build_post_processing(certificate, certificate.value, above=True)
    sentence = (
        f"Outcomes with a probability of {float(first.value):.15g}, at least {certificate.delta:g}, leak "
        f"{certificate.value:.15g} nats or more."
    )
    found = [prove_feasibility(first, sentence, certificate.value)]
    for step in LEVEL_STEPS:
        level = certificate.bound + step * max(1.0, certificate.bound)
        second = build_post_processing(certificate, level, above=False)
        duals = prove_bound(second)
        if duals.bound < Fraction(certificate.delta):
            sentence = (
                f"Outcomes that leak {level:.15g} nats or more have a probability of at most "
                f"{float(duals.bound):.15g}, less than {certificate.delta:g}, after any post-processing."
            )
            found.append(ProvedProgram(second, sentence, duals, level=level))
            break
    return found
