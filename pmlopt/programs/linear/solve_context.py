"""The start of a solve of a linear design, and the properties by which its method is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import as_mechanism, pair_with_prior
from pmlopt.programs.certificate import WarmStart, WarmStartLike, get_mechanism, get_warm_start
from pmlopt.programs.linear.known_optima import KnownOptimum, known_optimum
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import check_shape
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline
from pmlopt.solvers.structured.block_program import BlockLP


@dataclass(frozen=True, eq=False)
class SolveContext:
    """The start of a solve, and the properties of the program by which its method is chosen.

    Attributes:
        program: to solve.
        matrix: (N, M) a mechanism, or None.
        restart: how the solve of a neighbour ended, if that is what was given.
        known: the closed form that is optimal here, if there is one.
    """

    program: LinearDesign
    matrix: FloatArray | None = None
    restart: WarmStart | None = None
    known: KnownOptimum | None = None

    @property
    def is_closed_form(self) -> bool:
        """Return whether the matrix is that of the closed form."""
        return self.known is not None and self.matrix is self.known.matrix

    @property
    def closed_form_is_vertex(self) -> bool:
        """Return whether the closed form is a vertex that helps the simplex; a constant is too degenerate."""
        return (
            self.is_banded
            and self.is_closed_form
            and self.known is not None
            and self.known.name != "constant"
        )

    @property
    def simplex_start(self) -> FloatArray | None:
        """Return the matrix, where the simplex gains by starting from it; else None."""
        return self.matrix if self.closed_form_is_vertex or self.has_user_start else None

    @property
    def has_user_start(self) -> bool:
        """Return whether a user gave a mechanism to start from, and columns in bands gain by it."""
        return self.is_banded and self.matrix is not None and not self.is_closed_form

    @cached_property
    def block_lp(self) -> BlockLP | None:
        """Return the program in column blocks with at most N side constraints; None without such a form."""
        return self.program.build_block_lp()

    @property
    def is_banded(self) -> bool:
        """Return whether the columns are in bands, the simplest blocks, without constraints of a user."""
        block = self.program.column_block
        return not self.program.added and block is not None and block.is_banded

    @cached_property
    def is_linear(self) -> bool:
        """Return whether the program is a linear program."""
        return self.is_banded or self.only_ratio_bounds or bool(self.program.problem.is_lp())

    def is_lp_up_to(self, max_entries: int) -> bool:
        """Return whether it is a linear program in a matrix of at most so many entries."""
        return self.program.table.size <= max_entries and self.is_linear

    @property
    def only_ratio_bounds(self) -> bool:
        """Return whether a list of ratio bounds that is not in bands is the only constraint."""
        program = self.program
        return program.privacy.has_ratios and not self.is_banded and not program.added


def make_context(
    program: LinearDesign, warm_start: WarmStartLike, deadline: Deadline = NO_DEADLINE
) -> SolveContext:
    """Make the solve's context with the matrix that was given, or with an optimal closed form."""
    known = known_optimum(program, deadline)
    if warm_start is False:
        return SolveContext(program, known=known)
    restart = get_warm_start(warm_start)
    if warm_start is None or isinstance(warm_start, WarmStart):
        matrix = None if restart is None else restart.matrix
        if matrix is not None and matrix.shape == program.table.shape:
            return SolveContext(program, matrix, restart, known)
        return SolveContext(program, None if known is None else known.matrix, known=known)
    given = as_mechanism(get_mechanism(warm_start))
    check_shape(given.matrix, program.table)
    return SolveContext(program, pair_with_prior(program.prior, given)[1].matrix, restart, known)
