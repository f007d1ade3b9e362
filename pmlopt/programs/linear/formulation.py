"""The formulation of a linear design: what its methods start from, and the encodings that solvers take.

An encoding finds that by which a design can be written down, builds the arguments of the functions that solve
it, by name, and recovers the answer where these functions leave it in the variables of the program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property, partial
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import optimize, sparse
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray, IntArray, bound_sum_rounding
from pmlopt.core.numbers.blocks import iterate_column_blocks, iterate_row_blocks, sum_row_products
from pmlopt.data.mechanism import as_mechanism, pair_with_prior
from pmlopt.model.closed_forms.catalogue import build_closed_forms, is_within_limits
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.model.utility.linear import build_best_constant, build_best_deterministic
from pmlopt.programs.certificate import (
    ClosedForm,
    WarmStart,
    WarmStartLike,
    get_mechanism,
    get_warm_start,
)
from pmlopt.programs.linear import ratio_rows
from pmlopt.programs.linear.build_certificate import CLOSED_FORM_GAP
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.linear.color_refinement import EquitablePartition
from pmlopt.programs.linear.columns import OrbitColumns
from pmlopt.programs.linear.program import MAX_SIMPLEX_ENTRIES, LinearDesign
from pmlopt.programs.program import Program, check_shape
from pmlopt.programs.purification import repair_within_support
from pmlopt.solvers import cvxpy_interface, highs
from pmlopt.solvers.solver_result import (
    NO_DEADLINE,
    Deadline,
    MethodOptions,
    PrimalDualPoint,
    SolverResult,
)
from pmlopt.solvers.structured.block_program import ColumnBlock


@light_dataclass(frozen=True, eq=False)
class KnownOptimum:
    """An optimal closed-form mechanism by name, with the (N,) row multipliers that prove it."""

    name: str
    matrix: FloatArray
    value: float
    multipliers: FloatArray | None = None

    def compare(self, certificate: LinearCertificate) -> ClosedForm:
        """Compare a certified value with its own."""
        return ClosedForm(self.name, self.value, certificate.value - self.value)


@light_dataclass(frozen=True, eq=False)
class Formulation:
    """A linear design, and what its methods start from.

    Attributes:
        program: the design.
        known: the closed form that is proved optimal, or None.
        matrix: (N, M) the mechanism to start from: that of the closed form, or one that was given.
        arrays: how the simplex ended on a neighbour, where that was given.
    """

    program: LinearDesign
    known: KnownOptimum | None = None
    matrix: FloatArray | None = None
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def is_optimal(self) -> bool:
        """Return whether it is the closed form that is proved optimal."""
        return self.known is not None and self.matrix is self.known.matrix

    @property
    def vertex(self) -> FloatArray | None:
        """Return the (N, M) mechanism that the simplex starts from, in bands; None where it starts cold."""
        # a constant is too degenerate a vertex for the simplex to gain by it
        is_constant = self.is_optimal and self.known is not None and self.known.name == "constant"
        return self.matrix if self.program.bands is not None and not is_constant else None


def formulate(
    program: LinearDesign, warm_start: WarmStartLike, deadline: Deadline = NO_DEADLINE
) -> Formulation:
    """Find what the methods start from: a warm start that was given, or an optimal closed form."""
    known = find_known_optimum(program, deadline)
    if warm_start is False:
        return Formulation(program, known)
    restart = get_warm_start(warm_start)
    arrays = restart.arrays if restart is not None and restart.solver == "highs" else {}
    if warm_start is None or isinstance(warm_start, WarmStart):
        matrix = None if restart is None else restart.matrix
        if matrix is not None and matrix.shape == program.table.shape:
            return Formulation(program, known, matrix, arrays)
        return Formulation(program, known, None if known is None else known.matrix)
    given = as_mechanism(get_mechanism(warm_start))
    check_shape(given.matrix, program.table)
    return Formulation(program, known, pair_with_prior(program.prior, given)[1].matrix, arrays)


@light_dataclass(frozen=True, eq=False)
class Encoding:
    """A way to write a linear design down for a solver.

    Attributes:
        argument: the name of what a solver takes.
        find: finds that by which a design can be written so, in it or in what it starts from; else None.
    """

    argument: str
    find: Callable[[Formulation], Any]

    def build(self, start: Formulation) -> dict[str, Any]:
        """Build the arguments, by name, of a function that solves it, but for the options."""
        return {"program": start.program, self.argument: self.find(start)}

    def recover(self, program: LinearDesign) -> PrimalDualPoint:
        """Recover the point of a function that did not return it, but left it in the program."""
        raise NotImplementedError


class _Blocks(Encoding):
    """Design and blocks, which are built where they are solved: they have the size of the table."""

    def build(self, start: Formulation) -> dict[str, Any]:
        return {"program": start.program, self.argument: start.program.build_block_lp()}


class _Outputs(_Blocks):
    """The same, of which the columns of some outputs are solved at a time."""

    def build(self, start: Formulation) -> dict[str, Any]:
        return {**super().build(start), "exp_neg_epsilon": math.exp(-self.find(start))}


class _Bands(Encoding):
    """Blocks alone, and what the simplex starts from."""

    def build(self, start: Formulation) -> dict[str, Any]:
        task = start.program.build_block_lp()
        return {self.argument: task, "matrix": start.vertex, "basis": start.arrays or None}


class _Declared(Encoding):
    """The design as cvxpy has it, whose variables and constraints have the answer."""

    def build(self, start: Formulation) -> dict[str, Any]:
        return {self.argument: start.program}

    def recover(self, program: LinearDesign) -> PrimalDualPoint:
        # of many, what a bound costs is a linear program for each output
        pairs = program.pair_bounds
        witness = None if pairs is None else ratio_rows.read_weights(program, pairs)
        multipliers = read_multipliers(program, program.prior.pmf)
        matrix = np.asarray(program.mechanism.value)
        return PrimalDualPoint(matrix, multipliers, dual_certificate=witness)


def _find_blocks(start: Formulation) -> ColumnBlock | None:
    """Find the block of a column, where few constraints were added, and these are affine."""
    program = start.program
    return None if program.added and program.added_rows is None else program.column_block


def _find_plain_level(start: Formulation) -> float | None:
    """Find the level of PML above 0 nats under which a design has nothing else."""
    if start.program.bands is None:
        return None
    return start.program.privacy.find_plain_pml_level() or None


def _find_small_ratios(start: Formulation) -> RatioBounds | None:
    """Find the ratio bounds of a small design that has nothing else, and not many on pairs of letters."""
    program = start.program
    if program.added or program.table.size > MAX_SIMPLEX_ENTRIES:
        return None
    return None if program.pair_bounds is not None else program.list_ratios()


def is_linear(program: LinearDesign) -> bool:
    """Return whether a design is a linear program; cvxpy is asked where its bounds do not tell."""
    if program.bands is not None or (not program.added and program.list_ratios() is not None):
        return True
    return bool(program.problem.is_lp())


FORMULA = Encoding("known", attrgetter("known"))
"""A closed form that a dual bound has proved optimal."""

BANDS = _Bands("task", attrgetter("program.bands"))
"""The entries of each column between two ends that one number moves, with a start for the simplex."""

BLOCKS = _Blocks("task", _find_blocks)
"""A block for each column, which few numbers couple."""

OUTPUTS = _Outputs("task", _find_plain_level)
"""A block for each column under PML, of which few are used."""

PAIRS = Encoding("ratios", attrgetter("program.pair_bounds"))
"""Many bounds on pairs of letters, of which few matter for an output."""

RATIO_ROWS = Encoding("ratios", _find_small_ratios)
"""Ratio bounds of a small design as sparse rows, without cvxpy."""

CLASSES = Encoding("classes", attrgetter("program.equitable_partition"))
"""A variable for each class of pairs of letters and outputs that look alike."""

CONES = _Declared("program", attrgetter("program"))
"""The problem as cvxpy has it."""

ROWS = _Declared("program", lambda start: start.program if is_linear(start.program) else None)
"""The same, where all of it is linear."""


def return_closed_form(
    program: LinearDesign, known: KnownOptimum, **_: MethodOptions
) -> SolverResult:
    """Return the optimal closed form as a solver result, with its zeros where rounding breaks a bound."""
    matrix = known.matrix
    # a constant leaks nothing, however it is rounded
    if known.name != "constant" and not matrix.all():
        repaired = repair_within_support(program.prior, program.privacy, matrix)
        matrix = matrix if repaired is None else repaired
    point = PrimalDualPoint(matrix, known.multipliers)
    return SolverResult("point", True, known.name, 0, True, 0.0, 0.0, point)


def solve_by_partition(
    program: LinearDesign, classes: EquitablePartition, options: MethodOptions
) -> SolverResult:
    """Solve on an equitable partition, and expand mechanism and multipliers to all letters and outputs.

    The certificate is on the matrix and knows nothing of classes.
    """
    begin, orbits = time.perf_counter(), classes.orbits
    values = np.empty(orbits.count)
    for rows in iterate_row_blocks(program.table.shape):
        values[classes.table[rows]] = program.table[rows]
    columns = OrbitColumns.from_space(classes, program.privacy)
    declared = columns.build_model(classes.output_names, program.maximised, values)
    ready = time.perf_counter()
    outcome = highs.solve_problem(declared.problem, "highs", options)
    if outcome.state != "point":
        return outcome
    lifts, duals = declared.variables["orbits"].value, declared.constraints["rows"].dual_value
    shares = np.asarray(lifts) / np.array(orbits.outputs, dtype=float)[orbits.output]
    letter = orbits.letter[classes.table[:, 0]]
    matrix = np.empty(program.table.shape)
    for rows in iterate_row_blocks(matrix.shape):
        matrix[rows] = shares[classes.table[rows]]
    found = PrimalDualPoint(matrix, (np.asarray(duals) / orbits.masses)[letter])
    seconds = ready - begin + outcome.compile_seconds
    return replace(outcome, warm_started=False, point=found, compile_seconds=seconds)


def solve_declared_design(
    name: str, settings: Mapping[str, Any], program: LinearDesign, options: MethodOptions
) -> SolverResult:
    """Solve the problem that cvxpy has, with time left for the last step under many bounds on pairs."""
    within = ratio_rows.reserve_pair_seconds(program, name, options)
    return cvxpy_interface.solve_declared(program.problem, name, within, settings)


def solve_by_clarabel(program: LinearDesign, options: MethodOptions) -> SolverResult:
    """Solve by Clarabel, which refines its steps where there are cones."""
    settings = {"iterative_refinement_enable": not is_linear(program)}
    return solve_declared_design("clarabel", settings, program, options)


def read_multipliers(program: Program[Any], masses: FloatArray) -> FloatArray | None:
    """Read the row multipliers of a solved cvxpy problem, divided by the letters' probabilities."""
    duals = program.constraints["rows"].dual_value
    return None if duals is None else np.asarray(duals) / masses


@light_dataclass(frozen=True, eq=False)
class _Form:
    """A closed-form mechanism by name.

    Attributes:
        name: of the form.
        letter_gains: (N,) what it gains on each letter.
        build: builds its matrix, which many of them do not need.
        parts: its columns and their outputs where several share an output.
    """

    name: str
    letter_gains: FloatArray
    build: Callable[[], FloatArray]
    parts: tuple[FloatArray, IntArray] | None = None

    @classmethod
    def from_matrix(
        cls,
        name: str,
        matrix: FloatArray,
        gains: FloatArray,
        parts: tuple[FloatArray, IntArray] | None = None,
    ) -> _Form:
        """Build the form of a matrix."""
        return cls(name, sum_row_products(gains, matrix), lambda: matrix, parts)

    @cached_property
    def matrix(self) -> FloatArray:
        """Return the (N, M) mechanism."""
        return self.build()


def find_known_optimum(
    program: LinearDesign, deadline: Deadline = NO_DEADLINE
) -> KnownOptimum | None:
    """Find the first closed form that a dual bound proves optimal; None without one in time.

    Programs with added constraints have none.
    """
    if program.added or deadline.expired:
        return None
    # of bounds on pairs in all columns, where they are many
    ratios = program.bounds_on_pairs
    bounds = 0 if ratios is None else len(ratios.exponents) * program.table.shape[1]
    # the linear programs of a proof then take longer than the interior point by pairs; on a line, of which a
    # closed form is known, letters have few pairs
    is_dense = ratios is not None and len(ratios.exponents) > 10 * program.prior.size
    if (is_dense and bounds > 40_000) or deadline.expired_for(-SECONDS_A_PAIR * bounds):
        return None
    gains, near = program.centered_gains, CLOSED_FORM_GAP * program.scale
    found, seconds = list_feasible_forms(program, only_optimal=True), SECONDS_A_PRICE * bounds
    # a form below another feasible one by more than rounding cannot be optimal
    max_gain = max(found, key=itemgetter(0))[0]
    # with thousands of letters rounding is all that is left, and no other solution has less of it
    max_gap = max(near, bound_sum_rounding(program.columns.terms, 4 * program.scale))
    for gain, form in found:
        if gain < max_gain - near:
            continue
        for multipliers in _iterate_multipliers(program, form):
            if program.columns.bound_from_below(gains, multipliers) > gain + near:
                continue
            if deadline.expired_for(
                -seconds
            ):  # judged by the last bound, the next one would not end in time
                return None
            begin = deadline.read()
            above = program.columns.unrounded_bound(gains, multipliers) - gain
            seconds = deadline.read() - begin
            if above > near:
                continue
            if above + program.columns.bound_rounding(gains, multipliers) <= max_gap:
                value = program.columns.compute_expectation(program.table, form.matrix)
                return KnownOptimum(form.name, form.matrix, value, multipliers)
    return None


SECONDS_A_PAIR, SECONDS_A_PRICE = 6e-8, 5e-6
"""What a bound on a pair in a column takes: to check whether closed forms meet it, and in a dual bound."""


def find_better_form(program: LinearDesign, certificate: LinearCertificate) -> FloatArray | None:
    """Return a closed form with a larger gain than a mechanism whose gap is open; None without one.

    A solver's noise can be larger than the entries of a mechanism: those of metric privacy go down to
    e^(-epsilon d).
    """
    if program.added or certificate.proved_gap <= CLOSED_FORM_GAP * program.scale:
        return None
    gain = program.columns.compute_expectation(program.centered_gains, certificate.mechanism.matrix)
    best, form = max(list_feasible_forms(program), key=lambda found: found[0])
    return form.matrix if best > gain else None


def list_feasible_forms(
    program: LinearDesign, only_optimal: bool = False
) -> list[tuple[float, _Form]]:
    """List the feasible closed forms, but those below an earlier one, with their expected gains.

    Args:
        program: the design.
        only_optimal: whether forms that cannot be optimal may be left out.
    """
    found: list[tuple[float, _Form]] = []
    prior, near, best = program.prior, CLOSED_FORM_GAP * program.scale, -math.inf
    for form in _iterate_candidates(program, only_optimal):
        gain = float(program.columns.masses @ form.letter_gains)
        # a form below another one by more than rounding is not kept: it has the size of a mechanism
        if gain < best - near:
            continue
        # a constant meets every requirement
        if form.name == "constant" or is_within_limits(prior, program.privacy, form.matrix):
            found.append((gain, form))
            best = max(best, gain)
    return found


def _iterate_candidates(program: LinearDesign, only_optimal: bool) -> Iterator[_Form]:
    """Yield the closed forms that may be optimal for a program."""
    prior, gains = program.prior, program.centered_gains
    best = int((prior.probabilities @ gains).argmax())
    build_constant = partial(build_best_constant, prior.probabilities, gains)
    yield _Form("constant", gains[:, best].copy(), build_constant)
    # forms of so many entries are built only where they may be optimal
    many = gains.size > 40_000
    if not many or _may_be_deterministic(program):
        largest = program.columns.max_by_letter(gains)
        yield _Form("deterministic", largest, partial(build_best_deterministic, gains))
    # the other forms have a column for each letter
    if prior.size > len(program.outputs):
        return
    for name, form in build_closed_forms(
        prior, program.privacy
    ):  # privacy has no labels: who values a column has it
        is_large = many and form.matrix.shape == gains.shape
        if is_large and _keeps_labels(prior.pmf, form.matrix, gains):
            yield _Form.from_matrix(name, form.matrix, gains)
            continue
        # (K, M): what each column of the form gains if it is labelled by each output
        gains_by_output = (prior.pmf[:, None] * form.matrix).T @ gains
        columns, outputs = np.arange(len(gains_by_output)), gains_by_output.argmax(axis=1)
        if name == "geometric":  # several to one maybe
            matrix = form.matrix @ (np.arange(gains_by_output.shape[1]) == outputs[:, None])
            yield _Form.from_matrix(name, np.asarray(matrix), gains, (form.matrix, outputs))
            continue
        if len(set(outputs.tolist())) < len(outputs):  # several columns want one output
            near = CLOSED_FORM_GAP * program.scale
            if (is_large or only_optimal) and _needs_merged_outputs(gains_by_output, near):
                continue
            columns, outputs = optimize.linear_sum_assignment(gains_by_output, maximize=True)
        matrix = np.zeros(program.table.shape)
        matrix[:, outputs] = form.matrix[:, columns]
        yield _Form.from_matrix(name, matrix, gains)


def _needs_merged_outputs(gains_by_output: FloatArray, near: float) -> bool:
    """Return whether no assignment of outputs to columns, one to one, gives each column its best output.

    The columns with their best outputs, several to one, are a processing of the form that gains more. The
    form is then not optimal, and an assignment of thousands of columns, which takes a while, is not needed.
    """
    best = gains_by_output.max(axis=1, keepdims=True)
    wanted = (gains_by_output >= best - near / len(best)).any(axis=0)
    return int(wanted.sum()) < len(best)


def _may_be_deterministic(program: LinearDesign) -> bool:
    """Return whether the best deterministic mechanism may meet the requirement.

    Its least likely output against all others is a processing of it, which leaks no more: where that breaks a
    limit, a matrix of all outputs is not built.
    """
    prior, best = program.prior, program.centered_gains.argmax(axis=1)
    masses = np.bincount(best, weights=prior.pmf, minlength=len(program.outputs))
    rarest = int(np.where(masses > 0, masses, np.inf).argmin())
    pair = np.stack([best == rarest, best != rarest], axis=1).astype(float)
    return is_within_limits(prior, program.privacy, pair)


def _keeps_labels(p: FloatArray, matrix: FloatArray, gains: FloatArray) -> bool:
    """Return whether no column of a large form gains more by the label of another letter than by its own.

    It is looked at where most outputs of a letter gain the same, as under the Hamming loss: then few pairs
    have to be multiplied with the form, and with many letters all pairs take a minute.
    """
    # what two of three outputs gain
    common = np.median(gains[:, [0, len(gains) // 2, len(gains) - 1]], axis=1)
    parts = [gains[rows] != common[rows, None] for rows in iterate_row_blocks(gains.shape)]
    if sum(map(np.count_nonzero, parts)) > gains.size // 50:
        return False
    letters, outputs = np.nonzero(np.concatenate(parts))
    values = p[letters] * (gains[letters, outputs] - common[letters])
    rest = sparse.csr_array((values, (outputs, letters)), shape=gains.shape)
    for block in iterate_column_blocks(gains.shape):
        # the common part of a letter is the same for every label
        by_output = rest @ np.ascontiguousarray(matrix[:, block])
        own = by_output[block, :].diagonal()
        if (by_output.max(axis=0) > own).any():
            return False
    return True


def _iterate_multipliers(program: LinearDesign, form: _Form) -> Iterator[FloatArray]:
    """Yield candidate multipliers for a closed form, such as those of complementary slackness.

    The last comes first where a bound takes linear programs: of a form that is optimal, each column gains
    nothing over the multipliers.
    """
    gains, own = program.centered_gains, form.letter_gains
    # these prove the form if any do: of the largest gains no output gains more, and where a constant is
    # strictly within the bound, its column must gain the same on each letter over the multipliers
    if form.name == "deterministic" or (form.name == "constant" and _has_interior(program)):
        yield own
        return
    # The largest alphabet for which multipliers are fitted to a closed form.
    solved = program.prior.size <= 200
    if solved and program.column_block is None:
        yield _solve_complementary_slackness(program, form)
    yield own
    yield gains.min(axis=1)
    if solved and program.column_block is not None:
        yield _solve_complementary_slackness(program, form)


def _has_interior(program: LinearDesign) -> bool:
    """Return whether a constant mechanism is strictly within the bounds on its columns."""
    if program.column_block is not None:
        return True
    return program.list_ratios() is not None and not program.privacy.has_empty_interior(
        program.prior
    )


def _solve_complementary_slackness(program: LinearDesign, form: _Form) -> FloatArray:
    """Solve for the multipliers at which every column of the closed form has zero reduced gain."""
    if form.parts is None:
        outputs = np.flatnonzero(form.matrix.max(axis=0) > 0)
        columns = form.matrix[:, outputs]
    else:
        columns, outputs = form.parts
    joint = (program.prior.pmf[:, None] * columns).T
    # (K, N): posteriors, under which each column's gain equals its mean multiplier
    joint = joint / joint.sum(axis=1, keepdims=True)
    gained = (joint * program.centered_gains[:, outputs].T).sum(axis=1)
    return np.asarray(np.linalg.lstsq(joint, gained, rcond=None)[0])
