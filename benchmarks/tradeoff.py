"""The figure of the README: error against epsilon on the Adult education counts.

    python benchmarks/tradeoff.py [--output FILE.png]

For each epsilon: the least mean absolute error in levels of education under PML, under LDP, and of randomized
response at the LDP level that guarantees the same PML. Needs the extra `plots`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import drawing, table
from matplotlib.figure import Figure

from pmlopt import LDP, PML, ExpectedLoss, Mechanism, Prior, closed_forms, design, solve
from pmlopt.library import find
from pmlopt.model.utility import absolute
from pmlopt.programs.plots import save_figure


def main(argv: Sequence[str] | None = None) -> None:
    """Solve the grid and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("tradeoff"))
    parser.add_argument("--points", type=int, default=40)
    arguments = parser.parse_args(argv)
    prior = find("adult-education-absolute").prior
    loss = ExpectedLoss(absolute)
    grid = np.linspace(0.0, prior.max_leakage, arguments.points)
    pml = [solve(design(prior, PML(e), loss)).value for e in grid]
    ldp = [solve(design(prior, LDP(e), loss)).value for e in grid]
    response = []
    for epsilon in grid[:-1]:
        form = closed_forms.randomized_response(
            prior.size, closed_forms.ldp_for_pml(prior, epsilon)
        )
        response.append(loss.value(prior, Mechanism(form.matrix, prior.labels, prior.labels)))
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(grid[:-1], response, ":", color="tab:gray", label="randomized response with that PML")
    axes.plot(grid, ldp, "--", color="tab:orange", label="optimal under LDP")
    axes.plot(grid, pml, color="tab:blue", label="optimal under PML")
    axes.set_xlabel("epsilon [nats]")
    axes.set_ylabel("mean absolute error [grades]")
    axes.set_title("Adult data, 16 levels of education, 32,561 people", fontsize="medium")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    save_figure(figure, arguments.output)
    head = (
        "epsilon",
        "optimal under PML",
        "optimal under LDP",
        "randomized response with that PML",
    )
    table(head, [shown(prior, loss, epsilon) for epsilon in (0.5, 1.0, 2.0, 3.0)])


def shown(prior: Prior, loss: ExpectedLoss, epsilon: float) -> list[str]:
    """One row of the README's table."""
    under = [solve(design(prior, kind(epsilon), loss)).value for kind in (PML, LDP)]
    form = closed_forms.randomized_response(prior.size, closed_forms.ldp_for_pml(prior, epsilon))
    response = loss.value(prior, Mechanism(form.matrix, prior.labels, prior.labels))
    return [f"{epsilon:g}", *(f"{value:.3f}" for value in (*under, response))]


if __name__ == "__main__":
    main()
