"""Certificates of linear designs: repair, recomputed numbers, the best dual bound, optimal closed forms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding
from pmlopt.data.mechanism import Mechanism, wrap_checked_matrix
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.data.symmetry.prior import PairSpace
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.requirement import Witness
from pmlopt.programs.exact.rounding import (
    MAX_COLUMN_CHANGE,
    RepairedMatrix,
    RepairRecord,
    min_mixing_weight,
    polish_and_repair,
)
from pmlopt.programs.linear.added_rows import compute_gradients, has_expression
from pmlopt.programs.linear.certificate import (
    MAX_RELATIVE_RESIDUAL,
    AffineConstraint,
    LinearCertificate,
    StatedConstraint,
    SymmetricCertificate,
    price_constraints,
)
from pmlopt.programs.linear.columns import OrbitColumns
from pmlopt.programs.linear.program import ExpectationProgram, LinearDesign, SymmetricDesign


def repair_orbits(
    space: PairSpace, columns: OrbitColumns, privacy: Requirement, lifts: FloatArray
) -> tuple[OrbitMechanism, RepairRecord]:
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
    mended = _mix_orbit_columns(columns, _normalize_lifts(columns, lifts))

    def meets_requirement(candidate: OrbitMechanism) -> bool:
        """Return whether a mechanism meets the requirement, exactly and in a checker's floating point."""
        levels = columns.compute_levels(candidate.scaled_entries)
        within = all(levels[name] <= limit for name, limit in privacy.limits.items())
        return within and columns.is_met_exactly(candidate.masses)

    def mix_with_law(law: FloatArray) -> tuple[float, OrbitMechanism]:
        def round_mixture(theta: float) -> OrbitMechanism:
            found = (1 - theta) * mended + theta * law[output]
            return round_lifts_to_integers(space, found, columns.mean_by_output(found))

        def needed_share(lifts: FloatArray) -> float:
            return float(_needed_orbit_shares(columns, lifts, law).max())

        return min_mixing_weight(
            needed_share(mended),
            round_mixture,
            meets_requirement,
            lambda candidate: needed_share(candidate.scaled_entries),
        )

    # two candidates for the constant: either may need the smaller share
    own = columns.mean_by_output(mended)
    theta, mechanism = min(
        map(mix_with_law, (own, (own > 0) / (own > 0).sum())), key=lambda found: found[0]
    )
    return mechanism, RepairRecord(theta, float(np.abs(mechanism.scaled_entries - lifts).max()))


def round_lifts_to_integers(space: PairSpace, lifts: FloatArray, law: FloatArray) -> OrbitMechanism:
    """Round the lifts to integers, rows summing to exactly one.

    What a row lacks goes to the likeliest orbit of outputs, in equal parts on all of these, so that a
    constant stays one; or, where that would be negative or no whole number, to its largest mass.
    """
    # Binary digits of a lift in whole numbers: lifts down to 2^-67 keep all of theirs.
    digits = 120
    orbits = space.orbits
    # exact: a float is a ratio of integers, so that the floor has no rounding
    whole = [
        (above << digits) // below for above, below in map(float.as_integer_ratio, lifts.tolist())
    ]
    likeliest = orbits.orbits_of_output(int(law.argmax()))
    # a common denominator for all orbits of letters: masses become integers
    common = math.lcm(*orbits.letters)
    sums, largest = [0] * len(orbits.letters), [-1] * len(orbits.letters)
    letters = orbits.letter.tolist()
    for place, (lift, n, x) in enumerate(zip(whole, orbits.counts, letters, strict=True)):
        sums[x] += lift * n
        if largest[x] < 0 or lift * n > whole[largest[x]] * orbits.counts[largest[x]]:
            largest[x] = place
    # what rounding down took off each row, exactly
    lacking = [(size << digits) - found for size, found in zip(orbits.letters, sums, strict=True)]
    own = list(range(likeliest.start, likeliest.stop))
    parts = [divmod(rest, size) for rest, size in zip(lacking, orbits.letters, strict=True)]
    able = [True] * len(orbits.letters)
    for place in own:
        # equal parts keep a constant one, but must not make an entry negative
        able[letters[place]] &= whole[place] + parts[letters[place]][0] >= 0
    for place in own:
        if able[x := letters[place]]:
            whole[place] += parts[x][0]
    masses = [lift * n * (common // orbits.letters[x])
              for lift, n, x in zip(whole, orbits.counts, letters, strict=True)]  # fmt: skip
    for x, place in enumerate(largest):
        masses[place] += (parts[x][1] if able[x] else lacking[x]) * (common // orbits.letters[x])
    return OrbitMechanism(space, masses, common << digits)


def _normalize_lifts(columns: OrbitColumns, lifts: FloatArray) -> FloatArray:
    """Remove negative entries, and divide rows by their sums."""
    if not np.isfinite(lifts).all():
        raise MechanismError("the orbits to repair have an entry that is not finite")
    clean = np.maximum(lifts, 0.0)
    sums = columns.row_sums(clean)
    if not (np.abs(sums - 1) < 0.5).all():
        raise MechanismError(
            f"the orbits to repair have a row that sums to {sums[np.abs(sums - 1).argmax()]:.3g}: they are "
            "no mechanism, not even roughly"
        )
    return columns.normalize_rows(clean)


def _mix_orbit_columns(columns: OrbitColumns, lifts: FloatArray) -> FloatArray:
    """Mix columns that miss the bound by little with their means, one by one, and normalize the rows."""
    output, starts = columns.orbits.output, columns.orbits.starts[:-1]
    means = columns.mean_by_output(lifts)
    weights = _needed_orbit_shares(columns, lifts, means)
    spread = np.maximum.reduceat(lifts, starts) - np.minimum.reduceat(lifts, starts)
    # a column that would change by much is left to the mixture of the whole matrix
    weights = np.where(weights * spread <= MAX_COLUMN_CHANGE, weights, 0.0)
    return _normalize_lifts(columns, (1 - weights[output]) * lifts + (weights * means)[output])


def _needed_orbit_shares(columns: OrbitColumns, lifts: FloatArray, means: FloatArray) -> FloatArray:
    """Compute (K,) the weight of the constant that each column must be mixed with to meet its bound."""
    over = columns.max_violations(lifts)
    slack = np.maximum(-columns.max_violations(means[columns.orbits.output]), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # the violation is convex: on the chord to the constant it vanishes at this share
        return np.where(over > 0, over / (over + slack), 0.0)


CLOSED_FORM_GAP = 1e-10
"""A gap of this share of the gain's range leaves nothing to look for: a closed form is then optimal."""


def certify_linear(
    program: LinearDesign,
    matrix: FloatArray,
    multipliers: FloatArray | None,
    witness: Witness | None = None,
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
    fixed = _repair_for_program(program, matrix)
    fixed.matrix.setflags(write=False)  # it is nobody else's, and not copied
    mechanism = wrap_checked_matrix(fixed.matrix, program.prior.labels, program.outputs)
    gains, constant, residuals, added = (
        _price_added(program, fixed.matrix)
        if program.added
        else (program.centered_gains, 0.0, {}, ())
    )
    gain = program.columns.compute_expectation(program.centered_gains, fixed.matrix)
    # a bound of this much closes the gap: others are not tried
    enough = gain - constant + CLOSED_FORM_GAP * program.scale
    if witness is not None and multipliers is not None:
        # as if nothing were private
        free = {name: np.zeros_like(array) for name, array in witness.items()}
        tried = (multipliers, witness), (gains.max(axis=1), free)
        proofs = [_BoundProof.compute(program, gains, *one) for one in tried]
    else:
        rho, best = _select_best_multipliers(program, gains, fixed.matrix, multipliers, enough)
        proofs = [_certify_multipliers(program, gains, rho, best)]
        if proofs[0].bound > enough:
            proofs.append(_price_columns(program, gains))
    # each of them is valid, so that the least is, too
    proof = min(proofs, key=attrgetter("bound"))
    return LinearCertificate(
        prior=program.prior,
        privacy=program.privacy,
        mechanism=mechanism,
        value=program.compute_value(fixed.matrix, gain),
        bound=program.compute_bound(constant + proof.bound),
        multipliers=proof.rho,
        maximised=program.maximised,
        table=program.table,
        residuals={"rows": float(np.abs(fixed.matrix.sum(axis=1) - 1).max()), **residuals},
        repair=fixed.to_record,
        witness=proof.witness,
        added=added,
    )


def replace_mechanism(
    program: LinearDesign, certificate: LinearCertificate, matrix: FloatArray
) -> LinearCertificate:
    """Return a certificate with another mechanism: its value and violations, and the same proof."""
    residuals = {"rows": float(np.abs(matrix.sum(axis=1) - 1).max())}
    if program.added:
        with program.temporarily_assigned(matrix):
            residuals |= _compute_residuals(program, matrix, certificate.added_rows)
    return replace(
        certificate,
        mechanism=Mechanism(matrix, program.prior.labels, program.outputs),
        value=program.compute_value(matrix),
        residuals=residuals,
    )


def _repair_for_program(program: LinearDesign, matrix: FloatArray) -> RepairedMatrix:
    """Repair a matrix; where that costs a share of the range, perhaps with the small entries kept.

    Small entries are taken for noise, and where a bound is on all columns together all of them pay for it.
    """
    repair = partial(
        polish_and_repair, program.prior, program.privacy, matrix, gains=program.centered_gains
    )
    fixed = repair()
    if program.added:
        if _max_residual(program, fixed.matrix) <= MAX_RELATIVE_RESIDUAL:
            return fixed
        # small entries may be what keeps them
        kept = repair(noise=0.0)
        return min(fixed, kept, key=lambda one: _max_residual(program, one.matrix))
    block = program.column_block
    bands = block is not None and block.is_banded
    if bands or program.list_ratios() is not None:  # bounds on single columns
        return fixed
    gain = partial(program.columns.compute_expectation, program.centered_gains)
    # a repair that costs less than 3e-9 of the range needs no second one
    if gain(matrix) - gain(fixed.matrix) <= 3e-9 * program.scale:
        return fixed
    # with noise 0 small entries stay: under metric privacy they may be genuine
    kept = repair(noise=0.0)
    return kept if gain(kept.matrix) > gain(fixed.matrix) else fixed


def _max_residual(program: LinearDesign, matrix: FloatArray) -> float:
    """Compute the largest violation of the added constraints by a mechanism, relative to their sizes."""
    with program.temporarily_assigned(matrix):
        return max(_compute_residuals(program, matrix, list_affine_constraints(program)).values())


def _compute_residuals(
    program: LinearDesign, matrix: FloatArray, affine: tuple[AffineConstraint, ...] | None
) -> dict[str, float]:
    """Compute by how much of its size a mechanism violates each constraint that was added."""
    if affine is not None:  # by the numbers that a file holds, so that its check finds the same
        return {one.name: one.max_relative_violation(matrix) for one in affine}
    return {
        name: float(np.max(one.violation())) / constraint_scale(one)
        for name, one in program.added.items()
    }


def certify_symmetric(
    program: SymmetricDesign, lifts: FloatArray, multipliers: FloatArray | None
) -> SymmetricCertificate:
    """Repair (C,) lifts on orbits of pairs, recompute every number, and bound the optimum by multipliers.

    Raises:
        MechanismError: the numbers are no mechanism even roughly.
    """
    mechanism, change = repair_orbits(program.space, program.columns, program.privacy, lifts)
    gain = program.columns.compute_expectation(program.centered_gains, mechanism.scaled_entries)
    rho, best = _select_best_multipliers(
        program,
        program.centered_gains,
        mechanism.scaled_entries,
        multipliers,
        gain + CLOSED_FORM_GAP * program.scale,
    )
    return SymmetricCertificate(
        mechanism=mechanism,
        value=program.compute_value(mechanism.scaled_entries),
        bound=program.compute_bound(best),
        privacy=program.privacy,
        multipliers=rho,
        table=program.table,
        maximised=program.maximised,
        repair=change,
        sampled_pairs=program.utility.count_sampled_pairs(program.space) or None,
    )


def _price_added(
    program: LinearDesign, matrix: FloatArray
) -> tuple[
    FloatArray, float, dict[str, float], tuple[AffineConstraint | StatedConstraint, ...] | None
]:
    """Return the gains and the constant of the bound, and the added constraints with their violations.

    Added constraints enter the bound through their multipliers.
    """
    with program.temporarily_assigned(matrix):
        # added constraints are priced into the gains (Lagrangian relaxation)
        gains, constant = build_lagrangian(program)
        affine = list_affine_constraints(program)
        residuals = _compute_residuals(program, matrix, affine)
        stated = (
            None if affine is None else tuple(program.to_saved_constraint(one) for one in affine)
        )
        return gains, constant, residuals, stated


@light_dataclass(frozen=True, eq=False)
class _BoundProof:
    """A bound on the gain, with the multipliers and the dual certificate that prove it."""

    bound: float
    rho: FloatArray | None
    witness: Witness

    @classmethod
    def compute(
        cls, program: LinearDesign, gains: FloatArray, rho: FloatArray, witness: Witness
    ) -> _BoundProof:
        """Compute what multipliers and a dual certificate prove, with an allowance for rounding."""
        columns = program.columns
        return cls(
            columns.dual_bound(gains, rho, witness) + columns.bound_rounding(gains, rho),
            rho,
            witness,
        )


def _certify_multipliers(
    program: LinearDesign, gains: FloatArray, rho: FloatArray | None, best: float
) -> _BoundProof:
    """Compute a bound that these multipliers prove, with a dual certificate where there is one.

    Where a letter is so rare that digits cancel in the search, a closed form proves more: no witness then.
    """
    witness = (
        {}
        if rho is None or not math.isfinite(best)
        else program.columns.dual_certificate(gains, rho)
    )
    if rho is not None and witness:
        proof = _BoundProof.compute(program, gains, rho, witness)
        # a dual certificate may raise the bound by 1e-10 of the gain's range
        if proof.bound <= best + 1e-10 * program.scale:
            return proof if proof.bound >= best else replace(proof, bound=best)
    return _BoundProof(best, rho, {})


def _price_columns(program: LinearDesign, gains: FloatArray) -> _BoundProof:
    """Compute the dual bound of multipliers for the bounds on pairs of letters, all columns at once."""
    p = program.prior.pmf
    ratios = program.privacy.list_weighted_ratios(program.prior)
    found = None if ratios is None else ratios.find_prices(p, gains)
    if found is None:
        return _BoundProof(math.inf, None, {})
    return _BoundProof.compute(program, gains, found[0], {"weights": found[1]})


RARE_PROBABILITIES = (1e-14, 1e-11, 1e-8, 1e-5)
"""Probabilities below which a solver's multiplier of a letter may be noise."""


def _candidate_multipliers(
    program: ExpectationProgram[Any], gains: FloatArray, lifts: FloatArray, given: FloatArray | None
) -> Iterator[FloatArray]:
    """Iterate over multipliers to try: the solver's, each letter's own gain, and others for rare letters."""
    columns = program.columns
    if given is None or not np.isfinite(given).all():
        yield columns.mean_by_letter(gains, lifts)
        return
    yield given
    yield columns.mean_by_letter(gains, lifts)
    for rare in RARE_PROBABILITIES:
        if (columns.masses < rare).any():
            yield np.where(columns.masses < rare, columns.max_by_letter(gains), given)


def _select_best_multipliers(
    program: ExpectationProgram[Any],
    gains: FloatArray,
    lifts: FloatArray,
    given: FloatArray | None,
    target_gap: float,
) -> tuple[FloatArray | None, float]:
    """Select the multipliers with the least bound, and that bound; the first of at most `target_gap`."""
    # infinite until a candidate is priced: then any finite bound wins
    best: tuple[FloatArray | None, float] = (None, math.inf)
    columns = program.columns
    for rho in _candidate_multipliers(program, gains, lifts, given):
        if best[0] is not None and columns.bound_from_below(gains, rho, lifts) > best[1]:
            continue
        bound = columns.unrounded_bound(gains, rho)
        if bound < best[1]:  # rounding only adds to it
            bound += columns.bound_rounding(gains, rho)
            if bound < best[1]:
                best = (rho, bound)
        if best[1] <= target_gap:
            break
    return best


def build_lagrangian(program: LinearDesign) -> tuple[FloatArray, float]:
    """Build gains and a constant whose sum bounds the expected gain wherever the added constraints hold.

    With multipliers m >= 0 of convex constraints c(P) <= 0 (any sign for equalities),
    E[g] <= E[g] - <m, c(P)>, and c(P) is at least its linearisation at the current point. What is
    linear in P and in q = p P joins the gains; other variables take their best value within their bounds.

    The variables of the program must have their values. No solver is trusted: any multipliers do.

    Returns:
        (N, M) gains and the constant; the constant is inf where a constraint is of a kind that has no
        expression (a cone) or moves a variable without bounds.
    """
    slopes: dict[int, FloatArray] = {}
    variables: dict[int, cp.Variable] = {}
    stated = list_stated_constraints(program)
    if stated is None:
        return program.centered_gains, math.inf
    priced_gains, constant = price_constraints(stated, program.centered_gains, program.prior.pmf)
    # of these the rows are known exactly, and not by values that cvxpy has rounded
    size = sum(
        float(np.abs(one.effective_multipliers) @ np.abs(one.offset)) + _bound_price_size(one)
        for one in stated
    )
    for constraint in (
        one for name, one in program.added.items() if name not in program.stated_constraints
    ):
        gradients = compute_gradients(constraint) if has_expression(constraint) else None
        if gradients is None or constraint.dual_value is None:
            return program.centered_gains, math.inf
        equality = isinstance(constraint, cp.constraints.Equality)
        multiplier = np.asarray(constraint.dual_value, dtype=float).flatten(order="F")
        # a negative multiplier of an inequality would make the relaxation invalid
        multiplier = multiplier if equality else np.maximum(multiplier, 0.0)
        # convexity: c(P) is at least its linearisation at the current point
        constant -= float(multiplier @ np.asarray(constraint.expr.value).flatten(order="F"))
        size += float(np.abs(multiplier).sum()) * _max_intermediate(constraint.expr)
        for variable, gradient in gradients.items():
            slope = np.asarray(gradient @ multiplier).reshape(variable.shape, order="F")
            slopes[variable.id] = slopes.get(variable.id, 0.0) + slope
            variables[variable.id] = variable
            constant += float((slope * variable.value).sum())
            terms = np.asarray(abs(gradient) @ np.abs(multiplier)).reshape(
                variable.shape, order="F"
            )
            size += float((terms * _variable_sizes(variable)).sum())
    # what rounding may have taken off these sums and slopes, by the size of what went into them
    constant += bound_sum_rounding(program.table.size, size)
    p = program.prior.pmf[:, None]
    gains = priced_gains - slopes.pop(program.mechanism.id, np.zeros(program.table.shape)) / p
    gains = gains - slopes.pop(
        program.variables["output_law"].id, np.zeros((1, program.table.shape[1]))
    )
    own = {variable.id for variable in program.variables.values()}
    for key, slope in slopes.items():
        # variables of the program's own are probabilities
        lower, upper = (0.0, 1.0) if key in own else _get_bounds(variables[key])
        with np.errstate(invalid="ignore"):
            # a linear function on a box is largest at an end; 0 times inf counts as 0
            best = np.where(slope == 0, 0.0, np.maximum(-slope * lower, -slope * upper))
        constant += float(best.sum())
    return gains, constant


def constraint_scale(constraint: cp.Constraint) -> float:
    """Return the largest coefficient of a constraint at the current point; one where there is none.

    A violation of 1e-14 is small in a constraint of size one and everything in one of size 1e-13.
    """
    gradients = compute_gradients(constraint) if has_expression(constraint) else None
    largest = max((abs(gradient).max() for gradient in (gradients or {}).values()), default=1.0)
    return float(largest) or 1.0


def _max_intermediate(expression: cp.Expression) -> float:
    """Return the largest number that occurs while an expression is evaluated."""
    return max([float(np.abs(expression.value).max()), *map(_max_intermediate, expression.args)])


def _variable_sizes(variable: cp.Variable) -> FloatArray:
    """Bound how far a variable's entries may be from zero or from their values."""
    span = np.abs(_get_bounds(variable)).sum(axis=0)
    return np.asarray(
        np.maximum(1 + np.abs(variable.value), np.where(np.isfinite(span), span, 0.0))
    )


def _get_bounds(variable: cp.Variable) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds on the entries of a cvxpy variable."""
    lower, upper = variable.get_bounds()
    return np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)


def list_affine_constraints(program: LinearDesign) -> tuple[AffineConstraint, ...] | None:
    """List the added constraints with their multipliers; None where one is not affine in the mechanism only.

    The variables of the program must have their values, and the constraints their multipliers.
    """
    found = {}
    for name, constraint in program.added.items():
        if name in program.stated_constraints:
            continue
        rows = program.to_affine_rows(constraint)
        if rows is None or constraint.dual_value is None:
            return None
        equal = isinstance(constraint, cp.constraints.Equality)
        multipliers = np.asarray(constraint.dual_value, dtype=float).flatten(order="F")
        coefficients = rows[0].toarray().reshape(-1, *program.table.shape)
        found[name] = AffineConstraint(name, equal, coefficients, rows[1], multipliers)
    stated = list_stated_constraints(program)
    if stated is None:
        return None
    found |= {one.name: one for one in stated}
    return tuple(found[name] for name in program.added)


def list_stated_constraints(program: LinearDesign) -> tuple[AffineConstraint, ...] | None:
    """List the stated constraints as rows; None where a solver left no multipliers of one."""
    found = [program.get_stated_rows(name) for name in program.stated_constraints]
    known = [one for one in found if one is not None]
    return tuple(known) if len(known) == len(found) else None


def _bound_price_size(one: AffineConstraint) -> float:
    """Bound what the prices of a constraint may add to the expected gain: one cell for each letter."""
    sizes = np.tensordot(np.abs(one.effective_multipliers), np.abs(one.coefficients), axes=1)
    return float(sizes.max(axis=1).sum())
