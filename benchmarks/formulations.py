"""The sparse forms that `design` declares beside the printed ones: nonzeros, compile and solve times.

    python benchmarks/formulations.py [--sizes 10 20 30 50] [--limit 100] [--repeats 3] [--out FOLDER]
        [--quick]

PML as printed bounds P[i,j] by e^eps times the mean of column j: N M rows with N entries each, or one more
variable for the output law and two entries a row. LDP as printed has a row for each pair of letters and each
output, N (N - 1) M of them; `design` declares at most 2 N M. Robust PML is [grosse2025empirical, Proposition
2]: N^2 M rows, as blocks. Random gains, epsilon = 1, N = M, compiled by cvxpy and solved by HiGHS with its
own choice of method, in processor seconds; each form in a process of its own with a hard limit, so that its
peak memory is its own.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from common import FloatArray, growth_figure, instance, machine, report_times, suite_parser
from limited import Run, limited

from pmlopt import LDP, PML, ExpectedGain, L1Ball, Prior, design
from pmlopt.programs.plots import save_figure

EPSILON = 1.0
Form: TypeAlias = Callable[[FloatArray, FloatArray], cp.Problem]
Found: TypeAlias = dict[tuple[str, int], dict[str, Run]]
"""For each requirement and size the run of each form."""

HEAD = (
    "requirement", "N", "form", "status", "rows", "nonzeros", "compile [s]", "solve [s]", "together [s]",
    "peak [MiB]", "difference", "nonzeros ratio", "time ratio",
)  # fmt: skip


def mean_in_every_row(p: FloatArray, gains: FloatArray) -> cp.Problem:
    """PML without the output law: the mean of the column is written out in each row."""
    bound = math.exp(EPSILON) * np.ones((len(p), 1)) @ p[None, :]
    return _problem(p, gains, lambda mechanism: mechanism <= bound @ mechanism)


def every_pair(p: FloatArray, gains: FloatArray) -> cp.Problem:
    """LDP: `P[i,j] <= e^eps P[k,j]` for all i and k that differ."""
    first, second = (places.ravel() for places in np.nonzero(~np.eye(len(p), dtype=bool)))
    rows = np.arange(len(first))
    shape = (len(first), len(p))
    apart = sp.csr_array((np.ones(len(first)), (rows, first)), shape) - sp.csr_array(
        (np.full(len(first), math.exp(EPSILON)), (rows, second)), shape
    )
    return _problem(p, gains, lambda mechanism: apart @ mechanism <= 0)


def ball_in_blocks(p: FloatArray, gains: FloatArray) -> cp.Problem:
    """[grosse2025empirical, (10) to (12)]: a block of rows for each k."""
    half, ones = _radius(p) / 2, np.ones((len(p), 1))
    factor = math.exp(EPSILON) / (1 + half * math.exp(EPSILON))
    mechanism = cp.Variable(gains.shape, nonneg=True)
    law, expected = p[None, :] @ mechanism, cp.sum(cp.multiply(p[:, None] * gains, mechanism))
    blocks = [
        mechanism <= factor * (ones @ law + half * (ones @ mechanism[k : k + 1, :]))
        for k in range(len(p))
    ]
    return cp.Problem(cp.Maximize(expected), [*blocks, cp.sum(mechanism, axis=1) == 1])


def _problem(
    p: FloatArray, gains: FloatArray, privacy: Callable[[cp.Variable], cp.Constraint]
) -> cp.Problem:
    mechanism = cp.Variable(gains.shape, nonneg=True)
    expected = cp.sum(cp.multiply(p[:, None] * gains, mechanism))
    return cp.Problem(cp.Maximize(expected), [privacy(mechanism), cp.sum(mechanism, axis=1) == 1])


def _radius(p: FloatArray) -> float:
    return float(Prior(p).pmf.min())


FORMS: Mapping[str, Mapping[str, Form]] = {
    "PML": {
        "sparse": lambda p, gains: design(p, PML(EPSILON), ExpectedGain(gains)).problem,
        "printed": mean_in_every_row,
    },
    "LDP": {
        "sparse": lambda p, gains: design(p, LDP(EPSILON), ExpectedGain(gains)).problem,
        "printed": every_pair,
    },
    "PML over an l1 ball": {
        "sparse": lambda p, gains: (
            design(p, PML(EPSILON, over=L1Ball(p, _radius(p))), ExpectedGain(gains)).problem
        ),
        "printed": ball_in_blocks,
    },
}


def main(argv: Sequence[str] | None = None) -> None:
    """Compile and solve every form, print the table and draw the times."""
    parser = suite_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 30, 50])
    parser.add_argument("--limit", type=float, default=100.0, help="Seconds for each process.")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args(argv)
    print(machine())
    if arguments.quick:
        arguments.sizes, arguments.repeats = [5, 10], 1
    found: Found = {}
    for name, forms in FORMS.items():
        for size in arguments.sizes:
            given = {"name": name, "size": size, "repeats": arguments.repeats}
            found[name, size] = {
                form: limited("formulations:point", {**given, "form": form}, arguments.limit)
                for form in forms
            }
    report_times(arguments.out, "formulations", HEAD, rows_of(found))
    if arguments.out is not None:
        save_figure(
            growth_figure(curves(found), "compile and solve [s]"),
            arguments.out / "formulations.png",
        )


def point(name: str, form: str, size: int, repeats: int) -> dict[str, Any]:
    """One form of one design, in a process of its own; runs of more than ten seconds are not repeated."""
    p, gains = instance("random", size, 0)
    compiling: list[float] = []
    solving: list[float] = []
    while not solving or (len(solving) < repeats and sum(solving) + sum(compiling) < 10.0):
        problem = FORMS[name][form](p, gains)
        start = time.process_time()
        data, _, _ = problem.get_problem_data(cp.HIGHS)
        compiled = time.process_time()
        problem.solve(solver=cp.HIGHS)
        compiling.append(compiled - start)
        solving.append(time.process_time() - compiled)
    return {
        "compile": statistics.median(compiling), "solve": statistics.median(solving),
        "value": float(problem.value), "rows": data["A"].shape[0], "nonzeros": int(data["A"].nnz),
    }  # fmt: skip


def rows_of(found: Found) -> list[list[str]]:
    """The table; differences and ratios are to the sparse form."""
    rows = []
    for (name, size), runs in found.items():
        sparse = runs["sparse"].answer if runs["sparse"].done else {}
        rows += [[name, str(size), form, *described(run, sparse)] for form, run in runs.items()]
    return rows


def described(run: Run, sparse: Mapping[str, Any]) -> list[str]:
    """The columns of one form."""
    if not run.done:
        late = f"{run.status} {run.problem}".strip()
        return [late, "", "", "", "", f"> {run.seconds:.0f}", f"{run.memory:.0f}", "", "", ""]
    said = run.answer
    return [
        "done", f"{said['rows']:,}", f"{said['nonzeros']:,}", f"{said['compile']:.3f}",
        f"{said['solve']:.3f}", f"{together(said):.3f}", f"{run.memory:.0f}",
        *(["", "", ""] if not sparse else [
            f"{said['value'] - sparse['value']:.0e}", f"{said['nonzeros'] / sparse['nonzeros']:.1f}",
            f"{together(said) / together(sparse):.1f}",
        ]),
    ]  # fmt: skip


def together(said: Mapping[str, Any]) -> float:
    """Seconds of both phases."""
    return float(said["compile"] + said["solve"])


def curves(found: Found) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds over N for each form."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for (name, size), runs in found.items():
        for form, run in runs.items():
            if run.done:
                sizes, seconds = lines.setdefault(f"{name}, {form}", ([], []))
                sizes.append(size)
                seconds.append(together(run.answer))
    return lines


if __name__ == "__main__":
    main()
