"""Local differential privacy designs beside the library qif, with each LP solver that it carries.

    python benchmarks/qif_compare.py [--sizes 10 30 60] [--rounds 3] [--budget 1] [--limit 120]
        [--contestants NAME ...] [--out FOLDER] [--quick]

Least expected loss (|i - j| and Hamming) under LDP at epsilon = 1, N = M, for the uniform and a Dirichlet
prior. qif calls it d-privacy with the discrete metric: `qif.mechanism.d_privacy.min_loss_given_d`, with its
own metrics, which need no Python callbacks. `--losses line` designs under metric privacy with |i - j| as
distance and as loss, and `--losses bayes` the least expected |i - j| where one guess at the letter is right
at most e^epsilon times as often as before (`qif.mechanism.bayes_vuln.min_loss_given_max_vuln`). Ours is timed
from `design` to the certificate. Each contestant works in a process of its own (both libraries bring a
HiGHS), several times in a row, and the processes take turns; the table has the median over the rounds of the
median in a process. A solver that ran out of time is not asked again at that size or above. Values must agree
to 1e-6 (a row says so where they do not), and the level of each matrix is recomputed: with all its columns,
and with those alone that have a probability above 1e-9. Needs `pip install qif`.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np
from common import FloatArray, growth_figure, machine, report, report_times, suite_parser
from limited import Run, limited

from pmlopt import LDP, ExpectedLoss, MetricPrivacy, Vulnerability, design, solve
from pmlopt.model.privacy import Requirement
from pmlopt.programs.plots import save_figure

EPSILON = 1.0
LINE = "line"
"""Metric privacy with |i - j| as distance and as loss."""
BAYES = "bayes"
"""Average Bayes leakage, with |i - j| as loss."""

OURS = "pmlopt.solve"
ROUTES: Mapping[str, tuple[str, str]] = {
    "qif, its choice": ("AUTO", "AUTO"),
    "qif, CLP dual simplex": ("CLP", "SIMPLEX_DUAL"),
    "qif, CLP primal simplex": ("CLP", "SIMPLEX_PRIMAL"),
    "qif, CLP interior point": ("CLP", "INTERIOR"),
    "qif, GLOP dual simplex": ("GLOP", "SIMPLEX_DUAL"),
    "qif, GLOP primal simplex": ("GLOP", "SIMPLEX_PRIMAL"),
    "qif, HiGHS": ("HIGHS", "AUTO"),
    "qif, SoPlex dual simplex": ("SOPLEX", "SIMPLEX_DUAL"),
    "qif, SoPlex primal simplex": ("SOPLEX", "SIMPLEX_PRIMAL"),
    "qif, its own simplex": ("INTERNAL", "SIMPLEX_PRIMAL"),
}
"""qif.lp.defaults: solver and method. GLOP has no interior point, and HiGHS is not told of the method."""

Runs: TypeAlias = dict[tuple[str, str, int], dict[str, list[Run]]]
"""The processes of each contestant, for each loss, prior and size."""

HEAD = (
    "loss", "prior", "N", "contestant", "status", "milliseconds", "runs", "peak [MiB]", "value", "level",
    "level of its larger columns", "least entry", "ratio to ours", "best of qif / ours",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run every contestant, print the table and draw the times."""
    parser = suite_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 30, 60])
    parser.add_argument("--losses", nargs="+", default=["absolute", "hamming"])
    parser.add_argument("--priors", nargs="+", default=["uniform", "dirichlet"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--budget", type=float, default=1.0, help="Seconds of work in a process, or one run."
    )
    parser.add_argument("--limit", type=float, default=120.0, help="Seconds for each process.")
    parser.add_argument(
        "--contestants", nargs="+", default=list(ROUTES), choices=list(ROUTES), metavar="NAME"
    )
    arguments = parser.parse_args(argv)
    print(f"{machine()}, qif {version('qif')}")
    if arguments.quick:
        arguments.sizes, arguments.losses, arguments.priors = [5], ["absolute"], ["dirichlet"]
        arguments.rounds, arguments.budget, arguments.limit = 1, 0.2, 4.0
    runs: Runs = {}
    slow: dict[str, int] = {}
    for size in sorted(arguments.sizes):
        for loss in arguments.losses:
            for prior in arguments.priors:
                given = {"loss": loss, "prior": prior, "size": size, "budget": arguments.budget}
                runs[loss, prior, size] = contest(given, arguments, slow)
                report(arguments.out, "qif_compare", HEAD, rows_of(runs), show=False)
    report_times(arguments.out, "qif_compare", HEAD, rows_of(runs), clock="wall")
    if arguments.out is not None:
        save_figure(growth_figure(curves(runs), "milliseconds"), arguments.out / "qif_compare.png")


def contest(
    given: Mapping[str, Any], arguments: argparse.Namespace, slow: dict[str, int]
) -> dict[str, list[Run]]:
    """All contestants in turn, again and again; `slow` learns who ran out of time, and at which size."""
    runs: dict[str, list[Run]] = {name: [] for name in (OURS, *arguments.contestants)}
    limit = arguments.limit
    for _ in range(arguments.rounds):
        for name, found in runs.items():
            if name in slow:
                if not found:
                    found.append(
                        Run("not run", limit, 0.0, problem=f"time-out at N = {slow[name]}")
                    )
            elif name == OURS:
                found.append(limited("qif_compare:ours", given, limit))
            elif not found or (found[0].done and found[0].seconds < limit / 4):
                solver, method = ROUTES[name]
                found.append(
                    limited(
                        "qif_compare:theirs", {**given, "solver": solver, "method": method}, limit
                    )
                )
            if found[-1].status == "time-out":
                slow[name] = given["size"]
    return runs


def instance(loss: str, prior: str, size: int) -> tuple[FloatArray, FloatArray]:
    """The prior and the table of losses."""
    uniform = np.full(size, 1 / size)
    p = uniform if prior == "uniform" else np.random.default_rng(0).dirichlet(np.full(size, 2.0))
    distances = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    return p, distances if loss in ("absolute", LINE, BAYES) else (distances > 0).astype(float)


def privacy_for(loss: str, size: int) -> Requirement:
    """Local differential privacy, metric privacy on a line, or average Bayes leakage."""
    if loss == BAYES:
        return Vulnerability(epsilon=EPSILON)
    places = np.arange(size)
    return (
        MetricPrivacy(EPSILON, np.abs(places[:, None] - places)) if loss == LINE else LDP(EPSILON)
    )


# ---------------------------------------------------------------- in a process of their own


def ours(loss: str, prior: str, size: int, budget: float) -> dict[str, Any]:
    """From the numbers to the certificate."""
    p, losses = instance(loss, prior, size)
    privacy = privacy_for(loss, size)
    seconds, result = repeated(lambda: solve(design(p, privacy, ExpectedLoss(losses))), budget)
    assert result.certificate.verify()
    return {"seconds": seconds, "matrix": result.mechanism.matrix.tolist(), "note": result.solver}


def theirs(
    loss: str, prior: str, size: int, budget: float, solver: str, method: str
) -> dict[str, Any]:
    """The optimal mechanism by qif."""
    import qif

    qif.lp.defaults.solver, qif.lp.defaults.method = solver, method
    p, _ = instance(loss, prior, size)
    kind = qif.metric.euclidean if loss == LINE else qif.metric.discrete
    distance = (qif.metric.discrete if loss == "hamming" else qif.metric.euclidean)(qif.uint)
    least, limit = (
        qif.mechanism.d_privacy.min_loss_given_d,
        qif.metric.scale(kind(qif.uint), EPSILON),
    )
    if loss == BAYES:
        least, limit = (
            qif.mechanism.bayes_vuln.min_loss_given_max_vuln,
            math.exp(EPSILON) * p.max(),
        )
    seconds, matrix = repeated(lambda: least(p, size, limit, distance), budget)
    return {"seconds": seconds, "matrix": np.asarray(matrix).tolist(), "note": ""}


def repeated(work: Callable[[], Any], budget: float, most: int = 100) -> tuple[list[float], Any]:
    """Seconds of each run until the budget is spent, and the last answer; not of a first short one."""
    seconds: list[float] = []
    while not seconds or (sum(seconds) < budget and len(seconds) <= most):
        start = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - start)
    return seconds[1:] or seconds, answer


# ---------------------------------------------------------------- the table and the plot


def rows_of(runs: Runs) -> list[list[Any]]:
    """The table; except on a line an assertion fails where the optimum by qif's choice of solver differs."""
    rows = []
    for (loss, prior, size), contestants in runs.items():
        known = value_of(loss, prior, size, contestants[OURS])
        right = {
            name
            for name, found in contestants.items()
            if found[0].done and abs(value_of(loss, prior, size, found) - known) <= 1e-6
        }
        chosen = contestants.get("qif, its choice")
        agrees = chosen is None or not chosen[0].done or "qif, its choice" in right
        assert agrees or loss == LINE, (loss, prior, size)
        ours_seconds = median(contestants[OURS])
        best = (
            min((median(contestants[name]) for name in right - {OURS}), default=math.inf)
            / ours_seconds
        )
        for name, found in contestants.items():
            cells = described(loss, prior, size, found, right=name in right)
            seconds = median(found) if found[0].done else found[0].seconds
            ratio = f"{'' if found[0].done else '> '}{seconds / ours_seconds:.2f}"
            rows.append(
                [loss, prior, size, name, *cells, ratio, f"{best:.2f}" if name == OURS else ""]
            )
    return rows


def value_of(loss: str, prior: str, size: int, found: Sequence[Run]) -> float:
    """The expected loss of the matrix as it was handed over; NaN where there is none."""
    if not found[0].done:
        return math.nan
    p, losses = instance(loss, prior, size)
    return float((p[:, None] * losses * matrix_of(found)).sum())


def matrix_of(found: Sequence[Run]) -> FloatArray:
    """As it was handed over, by the last process that ended."""
    return np.array([run for run in found if run.done][-1].answer["matrix"])


def described(loss: str, prior: str, size: int, found: Sequence[Run], *, right: bool) -> list[str]:
    """The columns of one contestant."""
    memory = f"{max(run.memory for run in found):.0f}"
    if not found[0].done:
        late = f"{found[0].status} {found[0].problem}".strip()
        return [late, f"> {1000 * found[0].seconds:.0f}", "", memory, "", "", "", ""]
    matrix = matrix_of(found)
    runs = sum(len(run.answer["seconds"]) for run in found if run.done)
    cells = [
        f"{1000 * median(found):.2f}",
        str(runs),
        memory,
        f"{value_of(loss, prior, size, found):.9g}",
    ]
    if not right:
        return ["another value", *cells, "", "", f"{matrix.min():.0e}"]
    clipped = matrix.clip(min=0.0)
    p, _ = instance(loss, prior, size)
    larger = clipped[:, p @ clipped > 1e-9]
    return ["done", *cells, level(clipped, loss, p), level(larger, loss, p), f"{matrix.min():.0e}"]


def level(matrix: FloatArray, loss: str, prior: FloatArray) -> str:
    """The level of a matrix, its rows normalised: by how much it misses epsilon."""
    rows = matrix / matrix.sum(axis=1, keepdims=True)
    reached = privacy_for(loss, len(matrix)).level(prior, rows)
    return "infinite" if math.isinf(reached) else f"epsilon {reached - EPSILON:+.0e}"


def median(found: Sequence[Run]) -> float:
    """Seconds: over the processes, of the median in each; infinite where it did not end."""
    done = [statistics.median(run.answer["seconds"]) for run in found if run.done]
    return statistics.median(done) if done and found[0].done else math.inf


def curves(runs: Runs) -> dict[str, tuple[list[float], list[float]]]:
    """Milliseconds over N under the uniform prior and |i - j|, or whatever came first."""
    first = next(iter(runs))[:2]
    found: dict[str, tuple[list[float], list[float]]] = {}
    for (loss, prior, size), contestants in runs.items():
        for name, each in contestants.items():
            if (loss, prior) == first and each[0].done:
                sizes, times = found.setdefault(name, ([], []))
                sizes.append(size)
                times.append(1000 * median(each))
    return found


if __name__ == "__main__":
    main()
