"""What of a result can be proved by linear programs over the rationals, kind by kind of certificate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch
from operator import attrgetter

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import PML, Requirement
from pmlopt.programs.certificate import Certificate, ListedCertificate
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.masses import RationalMechanism
from pmlopt.programs.least_leakage.certificate import LevelCertificate
from pmlopt.programs.least_leakage.epsilon_certificate import LeastEpsilonCertificate
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.proofs.duals import (
    DualPoint,
    complete_duals,
    compute_grid,
    find_separate_multipliers,
    list_costs,
    prove_bound,
    subtract_rows,
)
from pmlopt.programs.proofs.exact_program import ONE, ZERO, ExactProgram, RationalPowers, make_names
from pmlopt.programs.proofs.fixed_points import find_fixed_point_multipliers, has_one_limit
from pmlopt.programs.proofs.formats import ProvedProgram
from pmlopt.programs.proofs.mechanism_rows import (
    MechanismRows,
    add_affine_rows,
    add_requirement,
)
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


def build_program(
    prior: Prior,
    privacy: Requirement,
    mechanism: Mechanism,
    *,
    above: bool,
    allowed: BoolArray | None = None,
    table: FloatArray | None = None,
    maximised: bool = True,
) -> MechanismRows:
    """Build the rows of a requirement on a mechanism, with the expectation of a table as the objective."""
    program = ExactProgram(maximised, RationalPowers(above))
    rows = MechanismRows.build(program, prior, mechanism, allowed)
    add_requirement(privacy.for_prior(prior), rows, make_names([privacy.name])[0])
    if table is not None:
        program.objective = {
            cell: rows.prior[x] * Fraction(float(table[x, y]))
            for x, cells in enumerate(rows.cells)
            for y, cell in enumerate(cells)
            if cell >= 0 and table[x, y]
        }
    return rows


def prove_feasibility(rows: MechanismRows, sentence: str) -> ProvedProgram:
    """Prove that the mechanism meets the rows.

    Raises:
        ProgramError: it does not.
    """
    if (broken := rows.program.find_broken_row()) is not None:
        raise ProgramError(
            f"the mechanism breaks {broken} of the linear program: check it with `verify`"
        )
    return ProvedProgram("feasibility", rows.program, sentence, has_point=True)


@list_proofs.register
def _(certificate: ListedCertificate) -> list[ProvedProgram]:
    """Prove the requirement only: the utility is no linear function of the mechanism."""
    rows = build_program(certificate.prior, certificate.privacy, certificate.mechanism, above=False)
    sentence = (
        "The mechanism meets the requirement. Of its utility, where it has one, nothing is proved: that is "
        "no linear function of the mechanism."
    )
    return [prove_feasibility(rows, sentence)]


def _build_design(certificate: LinearCertificate, *, above: bool) -> tuple[MechanismRows, Fraction]:
    """Build the linear program of a design, and return by how much its added rows are relaxed."""
    rows = build_program(
        certificate.prior, certificate.privacy, certificate.mechanism,
        above=above, table=certificate.table, maximised=certificate.maximised,
    )  # fmt: skip
    if certificate.added_rows is None:
        raise ProgramError(
            "a constraint that was added to the design is not linear in the mechanism: prove it without"
        )
    added = certificate.added_rows
    slacks = [
        add_affine_rows(rows, name, one.coefficients, one.offset.tolist(), equal=one.equal)
        for name, one in zip(make_names([one.name for one in added]), added, strict=True)
    ]
    return rows, max(slacks, default=ZERO)


def _prove_optimum(certificate: LinearCertificate, rows: MechanismRows) -> DualPoint:
    """Prove the better of two bounds: from the certificate's multipliers, and of small designs from HiGHS."""
    prices, found = _list_prices(certificate, rows), []
    if prices:
        found.append(_prove_priced(rows, prices, _list_known(certificate, rows)))
    # of small designs one more linear program, of all outputs together, takes seconds
    if not prices or certificate.table.size <= 2500:
        found.append(prove_bound(rows.program))
    return min(found, key=attrgetter("bound"))


def _prove_priced(
    rows: MechanismRows, prices: list[Fraction], known: Mapping[int, Fraction]
) -> DualPoint:
    """Prove a bound from multipliers of the letters and of some rows; of PML at one prior without HiGHS."""
    program, costs = rows.program, list_costs(rows.program)
    priced = subtract_rows(program, costs, known)
    if has_one_limit(program):
        grid = compute_grid([*priced, *prices])
        found = find_fixed_point_multipliers(rows, priced, prices, grid)
    else:
        found = find_separate_multipliers(program, priced, prices, known)
    for row, value in known.items():
        found[row] = value
    return complete_duals(program, costs, found)


def _list_known(certificate: LinearCertificate, rows: MechanismRows) -> dict[int, Fraction]:
    """Return the multipliers that a certificate has of the added rows, by the places of these."""
    added, found = certificate.added_rows or (), {}
    places = {row.name: place for place, row in enumerate(rows.program.rows)}
    for name, one in zip(make_names([one.name for one in added]), added, strict=True):
        for number, value in enumerate(map(Fraction, one.effective_multipliers.tolist())):
            place, back = places[f"added[{name},{number}]"], f"added_back[{name},{number}]"
            found[place] = value if rows.program.rows[place].equal else max(value, ZERO)
            if back in places:
                found[places[back]] = max(-value, ZERO)
    return found


def _list_prices(certificate: LinearCertificate, rows: MechanismRows) -> list[Fraction]:
    """Return the multipliers of the letters that a certificate has; none where there are added rows.

    The certificate has them over the prior, and of the table less the least value of each letter.
    """
    rho = certificate.multipliers
    if rho is None:
        return []
    sign = 1 if certificate.maximised else -1
    offsets = certificate.columns.min_by_letter(certificate.table)
    return [
        share * (Fraction(price) + sign * Fraction(offset))
        for share, price, offset in zip(rows.prior, rho.tolist(), offsets.tolist(), strict=True)
    ]


def _describe_slack(slack: Fraction) -> str:
    """Describe by how much added constraints are relaxed."""
    if not slack:
        return ""
    return f" Added constraints are relaxed by what the mechanism breaks them, at most {float(slack):.3g}."


@list_proofs.register
def _(certificate: LinearCertificate) -> list[ProvedProgram]:
    """Prove that the mechanism meets the rows, and that none is better by more than a gap."""
    (rows, slack), (wider, _) = (_build_design(certificate, above=above) for above in (False, True))
    value, more = rows.program.value, "gain" if certificate.maximised else "loss"
    first = prove_feasibility(
        rows,
        f"The mechanism meets the requirement, and its expected {more} is {float(value):.15g}."
        f"{_describe_slack(slack)}",
    )
    duals = _prove_optimum(certificate, wider)
    gap = float(duals.bound - (value if certificate.maximised else -value))
    relation = "above" if certificate.maximised else "below"
    bound = duals.bound if certificate.maximised else -duals.bound
    sentence = (
        f"No mechanism that meets the requirement has an expected {more} {relation} {float(bound):.15g}: the "
        f"mechanism is optimal up to {gap:.2g}.{_describe_slack(slack)}"
    )
    return [first, ProvedProgram("optimum", wider.program, sentence, has_point=True, duals=duals)]


def _refute_target(rows: MechanismRows, target: Fraction, duals: DualPoint) -> DualPoint | None:
    """Add a row that a target is reached, and return a contradiction; None where it is in reach."""
    program = rows.program
    sign = 1 if program.is_maximised else -1
    if not duals.bound < sign * target:
        return None
    terms = {column: -sign * value for column, value in program.objective.items()}
    program.add_row("target[all]", terms, -sign * target)
    program.objective = {}
    return DualPoint([*duals.rows, ONE], duals.signs, duals.bound - sign * target)


def _refute_level(certificate: LevelCertificate, level: float) -> ProvedProgram | None:
    """Prove that no mechanism has a level, or less, and all that is demanded; None where no proof is found.

    With no costs a bound below 0 is a contradiction: the probabilities of all letters sum to one.
    """
    expected, multipliers = certificate.expected, certificate.multipliers
    if multipliers is None:
        return None
    rows = build_program(
        certificate.prior, PML(level, certificate.privacy.over), certificate.mechanism,
        above=True, allowed=certificate.allowed,
        table=None if expected is None else expected.table,
        maximised=expected is None or expected.maximised,
    )  # fmt: skip
    prices = [
        -share * Fraction(price)
        for share, price in zip(rows.prior, multipliers.tolist(), strict=True)
    ]
    duals: DualPoint | None
    if expected is None:
        found = _prove_priced(rows, prices, {})
        duals = found if found.bound < 0 else None
    else:
        prices = _price_target(certificate, prices)
        found = _prove_priced(rows, prices, {}) if prices else prove_bound(rows.program)
        duals = _refute_target(rows, Fraction(expected.value), found)
    if duals is None:
        return None
    demand = _describe_demand(certificate)
    sentence = f"No mechanism has a level of {level:.15g} nats or less and {demand}."
    return ProvedProgram(
        "infeasibility", rows.program, sentence, duals=duals, is_infeasible=True, level=level
    )


def _describe_demand(certificate: LevelCertificate) -> str:
    """Describe what a least leakage demands next to the level."""
    expected, found = certificate.expected, []
    if expected is not None:
        word, side = ("gain", "least") if expected.maximised else ("loss", "most")
        found.append(f"an expected {word} of at {side} {expected.value:.15g}")
    if expected is None or not certificate.allowed.all():
        found.append("only outputs that each letter may have")
    return " and ".join(found)


def _price_target(certificate: LevelCertificate, prices: list[Fraction]) -> list[Fraction]:
    """Return multipliers of the letters in the unit of the objective, from those next to a floor's."""
    floor, weight = certificate.normalized_floor, Fraction(certificate.weight)
    if floor is None or weight <= 0:
        return []
    sign = 1.0 if floor.expected.maximised else -1.0
    best = np.where(certificate.allowed, sign * floor.expected.table, -np.inf).max(axis=1)
    weights = certificate.prior.weights
    return [
        price * Fraction(floor.unit) / weight + Fraction(share) / sum(weights) * Fraction(gain)
        for price, share, gain in zip(prices, weights, best.tolist(), strict=True)
    ]


def _find_refuted_level(certificate: LevelCertificate) -> Iterator[ProvedProgram]:
    """Yield the proof for the largest level up to the bound for which one is found; none at 0."""
    for step in LEVEL_STEPS if certificate.bound > 0 else ():
        level = certificate.bound - step * max(1.0, certificate.bound)
        proof = _refute_level(certificate, level) if level >= 0 else None
        if proof is not None:
            yield proof
            return


def _prove_level(certificate: LevelCertificate, privacy: PML) -> ProvedProgram:
    """Prove that a mechanism has a level and meets what is demanded, the target up to rounding."""
    expected, more = certificate.expected, ""
    rows = build_program(
        certificate.prior, privacy, certificate.mechanism,
        above=False, allowed=certificate.allowed,
    )  # fmt: skip
    if expected is not None:
        sign = -1.0 if expected.maximised else 1.0
        terms = {
            cell: Fraction(sign * float(expected.table[x, y])) * rows.prior[x]
            for x, cells in enumerate(rows.cells)
            for y, cell in enumerate(cells)
            if cell >= 0
        }
        right = Fraction(sign * expected.value)
        slack = max(rows.program.evaluate(terms) - right, ZERO)
        rows.program.add_row("target[all]", terms, right + slack)
        more = f" The target is relaxed by {float(slack):.3g}, its rounding." if slack else ""
    demand = _describe_demand(certificate)
    sentence = (
        f"The mechanism has a level of at most {privacy.epsilon:.15g} nats and {demand}.{more}"
    )
    return replace(prove_feasibility(rows, sentence), level=privacy.epsilon)


@list_proofs.register
def _(certificate: LevelCertificate) -> list[ProvedProgram]:
    """Prove that the level is reached, and that none below the bound is."""
    return [_prove_level(certificate, certificate.privacy), *_find_refuted_level(certificate)]


@list_proofs.register
def _(certificate: ThresholdCertificate) -> list[ProvedProgram]:
    """Prove that the threshold is kept, and that the next one is not within the level."""
    kept = certificate.kept
    level = max(certificate.epsilon, kept.value)
    first = _prove_level(kept, PML(level, kept.privacy.over))
    threshold = f"it emits no rank below {certificate.threshold}"
    found = [
        replace(
            first,
            sentence=f"The mechanism has a level of at most {level:.15g} nats, and {threshold}.",
        )
    ]
    if certificate.beyond is not None:
        proof = _refute_level(certificate.beyond, certificate.epsilon)
        if proof is not None:
            sentence = (
                f"No mechanism within {certificate.epsilon:.15g} nats emits only ranks above "
                f"{certificate.max_possible_rank}."
            )
            found.append(replace(proof, sentence=sentence))
    return found


@list_proofs.register
def _(certificate: LeastEpsilonCertificate) -> list[ProvedProgram]:
    """Prove that the target is reached, and, of linear utilities, that it is not at the bound."""
    first = list_proofs(certificate.witness)[0]
    levels = f"It has the level {certificate.value:.15g}; the target is {certificate.reach:.15g}."
    text = f"{first.sentence} {levels}"
    found = [replace(first, sentence=text, level=certificate.value)]
    if isinstance(certificate.proof, LinearCertificate):
        rows, slack = _build_design(certificate.proof, above=True)
        optimum = _prove_optimum(certificate.proof, rows)
        duals = _refute_target(rows, Fraction(certificate.reach), optimum)
        if duals is not None:
            sentence = (
                f"No mechanism within {certificate.bound:.15g} nats reaches the target "
                f"{certificate.reach:.15g}.{_describe_slack(slack)}"
            )
            found.append(
                ProvedProgram(
                    "infeasibility", rows.program, sentence,
                    duals=duals, is_infeasible=True, level=certificate.bound,
                )
            )  # fmt: skip
    return found


def _build_post_processing(
    certificate: EnvelopeCertificate | ProcessedFailureCertificate, level: float, *, above: bool
) -> ExactProgram:
    """Build the program of the outcomes of a post-processing that leak a level, with the attack as its point.

    Source: [saeidian2026envelopes, Theorem 1].
    """
    if certificate.over is not None:
        raise ProgramError(
            "an envelope over a set of priors is no single linear program: prove it for one prior"
        )
    exact = RationalMechanism.from_floats(certificate.prior, certificate.mechanism.matrix)
    columns = [[Fraction(int(v), exact.total) for v in row] for row in exact.columns]
    law = [Fraction(int(v), exact.total) for v in exact.laws[0]]
    program = ExactProgram(True, RationalPowers(above))
    ratio = program.powers(level)
    letters, outputs = (
        make_names(certificate.prior.labels),
        make_names(certificate.mechanism.outputs),
    )
    shares = _assign_outcomes(certificate.attack, columns, law, ratio)
    used = [y for y, mass in enumerate(law) if mass]
    cells = {
        (x, y): program.add_column(f"take[{letter},{outputs[y]}]", shares[x][y])
        for x, letter in enumerate(letters)
        for y in used
    }
    for y in used:
        pairs = [(cells[x, y], ONE) for x in range(len(letters))]
        support = program.add_row(f"taken[{outputs[y]}]", dict(pairs), ONE)
        for cell, _ in pairs:
            program.supports[cell] = (support,)
    for x, letter in enumerate(letters):
        pairs = [(cells[x, y], ratio * law[y] - columns[x][y]) for y in used]
        program.add_row(f"leak[{letter}]", dict(pairs))
    program.objective = {cells[x, y]: law[y] for x in range(len(letters)) for y in used}
    return program


def _assign_outcomes(
    attack: Mechanism, columns: list[list[Fraction]], law: list[Fraction], ratio: Fraction
) -> list[list[Fraction]]:
    """Return for each letter the shares of outputs that become outcomes which leak through it."""
    given = [[Fraction(value) for value in row] for row in attack.matrix.tolist()]
    given = [[value / sum(row) for value in row] for row in given]
    found = [[ZERO] * len(law) for _ in columns]
    for z in range(len(attack.outputs)):
        taken = [row[z] for row in given]
        mass = sum((q * s for q, s in zip(law, taken, strict=True)), ZERO)
        joint = [sum((v * s for v, s in zip(row, taken, strict=True)), ZERO) for row in columns]
        best = max(range(len(joint)), key=joint.__getitem__)
        if mass and joint[best] >= ratio * mass:
            found[best] = [own + s for own, s in zip(found[best], taken, strict=True)]
    return found


@list_proofs.register
def _(certificate: ProcessedFailureCertificate) -> list[ProvedProgram]:
    """Prove the probability of outcomes that leak a level or more, from both sides."""
    first, second = (
        _build_post_processing(certificate, certificate.epsilon, above=above)
        for above in (True, False)
    )
    duals = prove_bound(second)
    what = f"become outcomes that leak {certificate.epsilon:.15g} nats or more"
    return [
        _prove_attack(first, f"Outputs {what} with a probability of {float(first.value):.15g}."),
        ProvedProgram(
            "optimum", second, f"No post-processing lets outputs {what} with a probability above "
            f"{float(duals.bound):.15g}.", has_point=True, duals=duals,
        ),
    ]  # fmt: skip


def _prove_attack(program: ExactProgram, sentence: str) -> ProvedProgram:
    """Prove that a post-processing has the outcomes that are claimed."""
    if (broken := program.find_broken_row()) is not None:
        raise ProgramError(f"the post-processing breaks {broken}: check the file with `verify`")
    return ProvedProgram("feasibility", program, sentence, has_point=True)


@list_proofs.register
def _(certificate: EnvelopeCertificate) -> list[ProvedProgram]:
    """Prove that outcomes of the probability delta leak the value, and fewer more than the bound."""
    first = _build_post_processing(certificate, certificate.value, above=True)
    sentence = (
        f"Outcomes with a probability of {float(first.value):.15g}, at least {certificate.delta:g}, leak "
        f"{certificate.value:.15g} nats or more."
    )
    found = [replace(_prove_attack(first, sentence), level=certificate.value)]
    for step in LEVEL_STEPS:
        level = certificate.bound + step * max(1.0, certificate.bound)
        second = _build_post_processing(certificate, level, above=False)
        duals = prove_bound(second)
        if duals.bound < Fraction(certificate.delta):
            sentence = (
                f"Outcomes that leak {level:.15g} nats or more have a probability of at most "
                f"{float(duals.bound):.15g}, less than {certificate.delta:g}, after any post-processing."
            )
            found.append(ProvedProgram("optimum", second, sentence, duals=duals, level=level))
            break
    return found
