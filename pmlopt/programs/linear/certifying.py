"""Certificates of linear designs: repair, recomputed numbers, the best dual bound, optimal closed forms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pmlopt.core.arrays import FloatArray, rounding_of
from pmlopt.core.loaded_later import cp
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.data.symmetry.prior import PairSpace
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.requirement import Witness
from pmlopt.programs.exact.repair import LARGEST_SINGLE_MIXING, Change, Repair, least_mixing, polished_repair
from pmlopt.programs.linear.certificate import (
    RESIDUAL,
    AffineConstraint,
    LinearCertificate,
    StatedConstraint,
    SymmetricCertificate,
    priced,
)
from pmlopt.programs.linear.columns import ReducedColumns
from pmlopt.programs.linear.program import (
    Expectation,
    LinearDesign,
    SymmetricDesign,
    gradients_of,
    has_expression,
)


def repair_orbits(
    space: PairSpace, columns: ReducedColumns, privacy: Requirement, lifts: FloatArray
) -> tuple[OrbitMechanism, Change]:
    """Find the nearest mechanism by orbits of a simple kind that satisfies the requirement exactly.

    Each column that breaks the bound by little is mixed with its own mean as far as it must, rows are
    renormalised, and the whole is mixed with one law of the output with the smallest share that will do:
    the law that it has, or the uniform one on the orbits of outputs that occur. Last, the masses of orbits of
    pairs become whole numbers that sum to a power of two.

    Returns:
        The mechanism, and what was done to reach it.

    Raises:
        MechanismError: a row's sum is off one by 0.5 or more, or a number is not finite.
    """
    output = columns.orbits.output
    mended = _mended(columns, _normalised(columns, lifts))

    def holds(candidate: OrbitMechanism) -> bool:
        """Return whether a mechanism meets the requirement, exactly and in a checker's floating point."""
        levels = columns.levels(candidate.lifts)
        within = all(levels[name] <= limit for name, limit in privacy.limits.items())
        return within and columns.hold_exactly(candidate.masses)

    def mixed(law: FloatArray) -> tuple[float, OrbitMechanism]:
        def mixture(theta: float) -> OrbitMechanism:
            found = (1 - theta) * mended + theta * law[output]
            return in_whole_numbers(space, found, columns.means(found))

        def missing(lifts: FloatArray) -> float:
            return float(_needed(columns, lifts, law).max())

        return least_mixing(missing(mended), mixture, holds, lambda candidate: missing(candidate.lifts))

    own = columns.means(mended)
    theta, mechanism = min(map(mixed, (own, (own > 0) / (own > 0).sum())), key=lambda found: found[0])
    return mechanism, Change(theta, float(np.abs(mechanism.lifts - lifts).max()))


def in_whole_numbers(space: PairSpace, lifts: FloatArray, law: FloatArray) -> OrbitMechanism:
    """Round the lifts to integers, rows summing to exactly one.

    What a row lacks goes to the likeliest orbit of outputs, in equal parts on all of these, so that a
    constant stays one; or, where that would be negative or no whole number, to its largest mass.
    """
    # Binary digits of a lift in whole numbers: lifts down to 2^-67 keep all of theirs.
    digits = 120
    orbits = space.orbits
    whole = [(above << digits) // below for above, below in map(float.as_integer_ratio, lifts.tolist())]
    likeliest = orbits.of_output(int(law.argmax()))
    common = math.lcm(*orbits.letters)
    sums, largest = [0] * len(orbits.letters), [-1] * len(orbits.letters)
    letters = orbits.letter.tolist()
    for place, (lift, n, x) in enumerate(zip(whole, orbits.counts, letters, strict=True)):
        sums[x] += lift * n
        if largest[x] < 0 or lift * n > whole[largest[x]] * orbits.counts[largest[x]]:
            largest[x] = place
    lacking = [(size << digits) - found for size, found in zip(orbits.letters, sums, strict=True)]
    own = list(range(likeliest.start, likeliest.stop))
    parts = [divmod(rest, size) for rest, size in zip(lacking, orbits.letters, strict=True)]
    able = [True] * len(orbits.letters)
    for place in own:
        able[letters[place]] &= whole[place] + parts[letters[place]][0] >= 0
    for place in own:
        if able[x := letters[place]]:
            whole[place] += parts[x][0]
    masses = [lift * n * (common // orbits.letters[x])
              for lift, n, x in zip(whole, orbits.counts, letters, strict=True)]  # fmt: skip
    for x, place in enumerate(largest):
        masses[place] += (parts[x][1] if able[x] else lacking[x]) * (common // orbits.letters[x])
    return OrbitMechanism(space, masses, common << digits)


def _normalised(columns: ReducedColumns, lifts: FloatArray) -> FloatArray:
    """Remove negative entries, and divide rows by their sums."""
    if not np.isfinite(lifts).all():
        raise MechanismError("the orbits to repair have an entry that is not finite")
    clean = np.maximum(lifts, 0.0)
    sums = columns.sums(clean)
    if not (np.abs(sums - 1) < 0.5).all():
        raise MechanismError(
            f"the orbits to repair have a row that sums to {sums[np.abs(sums - 1).argmax()]:.3g}: they are "
            "no mechanism, not even roughly"
        )
    return columns.normalised(clean)


def _mended(columns: ReducedColumns, lifts: FloatArray) -> FloatArray:
    """Mix columns that miss the bound by little with their means, one by one, and normalize the rows."""
    output, starts = columns.orbits.output, columns.orbits.starts[:-1]
    means = columns.means(lifts)
    share = _needed(columns, lifts, means)
    spread = np.maximum.reduceat(lifts, starts) - np.minimum.reduceat(lifts, starts)
    share = np.where(share * spread <= LARGEST_SINGLE_MIXING, share, 0.0)
    return _normalised(columns, (1 - share[output]) * lifts + (share * means)[output])


def _needed(columns: ReducedColumns, lifts: FloatArray, means: FloatArray) -> FloatArray:
    """Compute (K,) the share of a constant that each column needs mixed in, by the chord of the violation."""
    over = columns.excess(lifts)
    slack = np.maximum(-columns.excess(means[columns.orbits.output]), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(over > 0, over / (over + slack), 0.0)


CLOSED = 1e-10
"""A gap of this share of the gain's range leaves nothing to look for: a closed form is then optimal."""


def certify_linear(
    program: LinearDesign, matrix: FloatArray, multipliers: FloatArray | None, witness: Witness | None = None
) -> LinearCertificate:
    """Repair a matrix, recompute every number from it, and bound the optimum.

    Args:
        program: where constraints were added to it, they hold their multipliers.
        matrix: (N, M) a solver's answer, or any mechanism.
        multipliers: (N,) any rho for the centred gains, best the multipliers of the row sums over p. A few
            others are tried too, and the best kept.
        witness: for these multipliers, where the solver has it: then no other bound is looked for.

    Raises:
        MechanismError: the matrix is no mechanism even roughly.
    """
    fixed = _repaired(program, matrix)
    mechanism = Mechanism(fixed.matrix, program.prior.labels, program.outputs)
    gains, constant, residuals, added = _with_added(program, fixed.matrix)
    gain = program.columns.expectation(program.centred, fixed.matrix)
    enough = gain - constant + CLOSED * program.scale
    if witness is not None and multipliers is not None:
        free = {name: np.zeros_like(array) for name, array in witness.items()}  # as if nothing were private
        tried = (multipliers, witness), (gains.max(axis=1), free)
        proofs = [_Proof.of(program, gains, *one) for one in tried]
    else:
        rho, best = _best(program, gains, fixed.matrix, multipliers, enough)
        proofs = [_witnessed(program, gains, rho, best)]
        if proofs[0].bound > enough:
            proofs.append(_priced(program, gains))
    proof = min(proofs, key=lambda one: one.bound)
    return LinearCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=program.compute_value(fixed.matrix),
        bound=program.compute_bound(constant + proof.bound),
        multipliers=proof.rho,
        maximised=program.maximised,
        table=program.table,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max()), **residuals},
        repair=fixed.change,
        witness=proof.witness,
        added=added,
    )


def _repaired(program: LinearDesign, matrix: FloatArray) -> Repair:
    """Repair a matrix; where that costs a share of the range, perhaps with the small entries kept.

    Small entries are taken for noise, and where a bound is on all columns together all of them pay for it.
    """
    fixed = polished_repair(program.prior, program.privacy, matrix, gains=program.centred)
    if program.added and _broken(program, fixed.matrix) > RESIDUAL:  # small entries may be what keeps them
        kept = polished_repair(program.prior, program.privacy, matrix, 0.0, program.centred)
        return min(fixed, kept, key=lambda one: _broken(program, one.matrix))
    if program.privacy.has_ratios or program.added:  # bounds on each column by itself
        return fixed
    worth = [program.columns.expectation(program.centred, one) for one in (matrix, fixed.matrix)]
    # a repair that costs less than 3e-9 of the range needs no second one
    if worth[0] - worth[1] <= 3e-9 * program.scale:
        return fixed
    kept = polished_repair(program.prior, program.privacy, matrix, 0.0, program.centred)
    return kept if program.columns.expectation(program.centred, kept.matrix) > worth[1] else fixed


def _broken(program: LinearDesign, matrix: FloatArray) -> float:
    """Compute the largest violation of the added constraints by a mechanism, relative to their sizes."""
    with program.holding(matrix):
        return max(_residuals(program, matrix, affine_constraints(program)).values())


def _residuals(
    program: LinearDesign, matrix: FloatArray, affine: tuple[AffineConstraint, ...] | None
) -> dict[str, float]:
    """Compute by how much of its size a mechanism violates each constraint that was added."""
    if affine is not None:  # by the numbers that a file holds, so that its check finds the same
        return {one.name: one.violation(matrix) for one in affine}
    return {name: float(np.max(one.violation())) / unit(one) for name, one in program.added.items()}


def certify_symmetric(
    program: SymmetricDesign, lifts: FloatArray, multipliers: FloatArray | None
) -> SymmetricCertificate:
    """Repair (C,) lifts on orbits of pairs, recompute every number, and bound the optimum by multipliers.

    Raises:
        MechanismError: the numbers are no mechanism even roughly.
    """
    mechanism, change = repair_orbits(program.space, program.columns, program.privacy, lifts)
    gain = program.columns.expectation(program.centred, mechanism.lifts)
    rho, best = _best(program, program.centred, mechanism.lifts, multipliers, gain + CLOSED * program.scale)
    return SymmetricCertificate(
        mechanism=mechanism,
        value=program.compute_value(mechanism.lifts),
        bound=program.compute_bound(best),
        privacy=program.privacy,
        multipliers=rho,
        table=program.table,
        maximised=program.maximised,
        repair=change,
    )


def _with_added(
    program: LinearDesign, matrix: FloatArray
) -> tuple[FloatArray, float, dict[str, float], tuple[AffineConstraint | StatedConstraint, ...] | None]:
    """Return the gains and the constant of the bound, and the added constraints with their violations.

    Added constraints enter the bound through their multipliers.
    """
    if not program.added:
        return program.centred, 0.0, {}, ()
    with program.holding(matrix):
        gains, constant = lagrangian(program)
        affine = affine_constraints(program)
        residuals = _residuals(program, matrix, affine)
        stated = None if affine is None else tuple(program.told(one) for one in affine)
        return gains, constant, residuals, stated


@dataclass(frozen=True, eq=False)
class _Proof:
    """A bound on the gain, with the multipliers and the dual certificate that prove it."""

    bound: float
    rho: FloatArray | None
    witness: Witness

    @classmethod
    def of(cls, program: LinearDesign, gains: FloatArray, rho: FloatArray, witness: Witness) -> _Proof:
        """Compute what multipliers and a dual certificate prove, with an allowance for rounding."""
        columns = program.columns
        return cls(columns.proved(gains, rho, witness) + columns.rounding_in(gains, rho), rho, witness)


def _witnessed(program: LinearDesign, gains: FloatArray, rho: FloatArray | None, best: float) -> _Proof:
    """Compute a bound that these multipliers prove, with a dual certificate where there is one.

    Where a letter is so rare that digits cancel in the search, a closed form proves more: no witness then.
    """
    witness = {} if rho is None or not math.isfinite(best) else program.columns.witness(gains, rho)
    if rho is not None and witness:
        proof = _Proof.of(program, gains, rho, witness)
        # a dual certificate may raise the bound by 1e-10 of the gain's range
        if proof.bound <= best + 1e-10 * program.scale:
            return proof if proof.bound >= best else replace(proof, bound=best)
    return _Proof(best, rho, {})


def _priced(program: LinearDesign, gains: FloatArray) -> _Proof:
    """Compute the bound that prices of all columns at once prove, where pairs prove it."""
    p = program.prior.pmf
    ratios = program.privacy.ratios(p) if program.privacy.by_pairs else None
    found = None if ratios is None else ratios.prices(p, gains)
    if found is None:
        return _Proof(math.inf, None, {})
    return _Proof.of(program, gains, found[0], {"weights": found[1]})


RARE = (1e-14, 1e-11, 1e-8, 1e-5)
"""Probabilities below which a solver's multiplier of a letter may be noise."""


def _guesses(
    program: Expectation[Any], gains: FloatArray, lifts: FloatArray, given: FloatArray | None
) -> Iterator[FloatArray]:
    """Iterate over multipliers to try: the solver's, each letter's own gain, and others for rare letters."""
    columns = program.columns
    own = columns.by_letter(gains, lifts)
    if given is None or not np.isfinite(given).all():
        yield own
        return
    yield from (given, own)
    for rare in RARE:
        if (columns.masses < rare).any():
            yield np.where(columns.masses < rare, columns.largest(gains), given)


def _best(
    program: Expectation[Any], gains: FloatArray, lifts: FloatArray, given: FloatArray | None, enough: float
) -> tuple[FloatArray | None, float]:
    """Select the multipliers with the least bound, and that bound; the first of at most `enough`."""
    best: tuple[FloatArray | None, float] = (None, math.inf)
    for rho in _guesses(program, gains, lifts, given):
        bound = program.columns.raw_bound(gains, rho)
        if bound < best[1]:  # rounding only adds to it
            bound += program.columns.rounding_in(gains, rho)
            if bound < best[1]:
                best = (rho, bound)
        if best[1] <= enough:
            break
    return best


def lagrangian(program: LinearDesign) -> tuple[FloatArray, float]:
    """Build gains and a constant whose sum bounds the expected gain wherever the added constraints hold.

    With multipliers m >= 0 of convex constraints c(P) <= 0 (any sign for equalities),
    E[g] <= E[g] - <m, c(P)>, and c(P) is at least its linearisation at the point in hand. What is
    linear in P and in q = p P joins the gains; other variables take their best value within their bounds.

    The variables of the program must have their values. No solver is trusted: any multipliers do.

    Returns:
        (N, M) gains and the constant; the constant is inf where a constraint is of a kind that has no
        expression (a cone) or moves a variable without bounds.
    """
    slopes: dict[int, FloatArray] = {}
    variables: dict[int, cp.Variable] = {}
    stated = stated_constraints(program)
    if stated is None:
        return program.centred, math.inf
    priced_gains, constant = priced(stated, program.centred, program.prior.pmf)
    # of these the rows are known exactly, and not by values that cvxpy has rounded
    size = sum(float(np.abs(one.prices) @ np.abs(one.offset)) + _slope_size(one) for one in stated)
    for constraint in (one for name, one in program.added.items() if name not in program.stated):
        gradients = gradients_of(constraint) if has_expression(constraint) else None
        if gradients is None or constraint.dual_value is None:
            return program.centred, math.inf
        equality = isinstance(constraint, cp.constraints.Equality)
        multiplier = np.asarray(constraint.dual_value, dtype=float).flatten(order="F")
        multiplier = multiplier if equality else np.maximum(multiplier, 0.0)
        constant -= float(multiplier @ np.asarray(constraint.expr.value).flatten(order="F"))
        size += float(np.abs(multiplier).sum()) * _largest(constraint.expr)
        for variable, gradient in gradients.items():
            slope = np.asarray(gradient @ multiplier).reshape(variable.shape, order="F")
            slopes[variable.id] = slopes.get(variable.id, 0.0) + slope
            variables[variable.id] = variable
            constant += float((slope * variable.value).sum())
            terms = np.asarray(abs(gradient) @ np.abs(multiplier)).reshape(variable.shape, order="F")
            size += float((terms * _reach(variable)).sum())
    # what rounding may have taken off these sums and slopes, by the size of what went into them
    constant += rounding_of(program.table.size, size)
    p = program.prior.pmf[:, None]
    gains = priced_gains - slopes.pop(program.mechanism.id, np.zeros(program.table.shape)) / p
    gains = gains - slopes.pop(program.variables["output_law"].id, np.zeros((1, program.table.shape[1])))
    own = {variable.id for variable in program.variables.values()}
    for key, slope in slopes.items():
        lower, upper = (0.0, 1.0) if key in own else _bounds(variables[key])
        with np.errstate(invalid="ignore"):
            best = np.where(slope == 0, 0.0, np.maximum(-slope * lower, -slope * upper))
        constant += float(best.sum())
    return gains, constant


def unit(constraint: cp.Constraint) -> float:
    """Return the largest coefficient of a constraint at the current point; one where there is none.

    A violation of 1e-14 is small in a constraint of size one and everything in one of size 1e-13.
    """
    gradients = gradients_of(constraint) if has_expression(constraint) else None
    largest = max((abs(gradient).max() for gradient in (gradients or {}).values()), default=1.0)
    return float(largest) or 1.0


def _largest(expression: cp.Expression) -> float:
    """Return the largest number that occurs while an expression is evaluated."""
    return max([float(np.abs(expression.value).max()), *map(_largest, expression.args)])


def _reach(variable: cp.Variable) -> FloatArray:
    """Bound how far a variable's entries may be from zero or from their values."""
    span = np.abs(_bounds(variable)).sum(axis=0)
    return np.asarray(np.maximum(1 + np.abs(variable.value), np.where(np.isfinite(span), span, 0.0)))


def _bounds(variable: cp.Variable) -> tuple[FloatArray, FloatArray]:
    lower, upper = variable.get_bounds()
    return np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)


def affine_constraints(program: LinearDesign) -> tuple[AffineConstraint, ...] | None:
    """List the added constraints with their multipliers; None where one is not affine in the mechanism only.

    The variables of the program must have their values, and the constraints their multipliers.
    """
    found = {}
    for name, constraint in program.added.items():
        if name in program.stated:
            continue
        rows = program.affine(constraint)
        if rows is None or constraint.dual_value is None:
            return None
        equal = isinstance(constraint, cp.constraints.Equality)
        multipliers = np.asarray(constraint.dual_value, dtype=float).flatten(order="F")
        coefficients = rows[0].toarray().reshape(-1, *program.table.shape)
        found[name] = AffineConstraint(name, equal, coefficients, rows[1], multipliers)
    stated = stated_constraints(program)
    if stated is None:
        return None
    found |= {one.name: one for one in stated}
    return tuple(found[name] for name in program.added)


def stated_constraints(program: LinearDesign) -> tuple[AffineConstraint, ...] | None:
    """List the stated constraints as rows; None where a solver left no multipliers of one."""
    found = [program.stated_constraint(name) for name in program.stated]
    known = [one for one in found if one is not None]
    return tuple(known) if len(known) == len(found) else None


def _slope_size(one: AffineConstraint) -> float:
    """Bound what the prices of a constraint may add to the expected gain: one cell for each letter."""
    sizes = np.tensordot(np.abs(one.prices), np.abs(one.coefficients), axes=1)
    return float(sizes.max(axis=1).sum())
