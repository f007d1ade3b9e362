"""Every figure of the site, in one style, as SVG.

    python benchmarks/figures.py --out FOLDER [--only NAME ...] [--compute]

Those of the papers are drawn from the points in benchmarks/data, which the study of each paper writes; with
`--compute` the study runs first: its points are kept beside the figures, and its tables and time are said.
The others are computed here, in seconds. Needs the extra `plots`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from about_secrets import secrets
from figure_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    house_style,
    label_ends,
    note,
    panels,
    write,
)
from figures_of_priors import FIGURES as OF_PRIORS
from figures_of_records import FIGURES as OF_RECORDS
from matplotlib.figure import Figure
from points import columns, computed_in, rows_of

from pmlopt import (  # fmt: skip
    LDP,
    PML,
    Chain,
    CoordinateLoss,
    EstimationError,
    ExpectedLoss,
    IIDPrior,
    Ledger,
    Mechanism,
    MutualInformation,
    Prior,
    Stream,
    closed_forms,
    design,
    joint_level,
    leakage_level,
    mutual_information,
    shuffled_level,
    solve,
)
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.library import find
from pmlopt.model.utility import absolute


def main(argv: Sequence[str] | None = None) -> None:
    """Draw what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="The folder for the figures.")
    parser.add_argument(
        "--compute", action="store_true", help="Compute the points of the papers anew."
    )
    parser.add_argument("--only", nargs="+", choices=list(FIGURES), metavar="NAME")
    arguments = parser.parse_args(argv)
    names = arguments.only or list(FIGURES)
    folder = (arguments.out / "points").absolute()
    if arguments.compute:
        folder.mkdir(parents=True, exist_ok=True)
    with house_style(), computed_in(folder) if arguments.compute else nullcontext():
        for name in iterate_with_progress(names, len(names), "figures"):
            write(FIGURES[name](), arguments.out / f"{name}.svg")


def tradeoff() -> Figure:
    """Least error over epsilon on the Adult education counts, under PML and LDP, and randomized response."""
    prior = find("adult-education-absolute").prior
    loss = ExpectedLoss(absolute)
    grid = np.linspace(0.0, 3.5, 36)
    figure, (axes,) = panels()
    response = [_response(prior, loss, float(e)) for e in grid]
    axes.plot(grid, response, ":", color=GREY, label="randomized response\nwith that PML")
    axes.plot(
        grid,
        [solve(design(prior, LDP(e), loss)).value for e in grid],
        "--",
        color=RED,
        label="optimal under LDP",
    )
    axes.plot(
        grid,
        [solve(design(prior, PML(e), loss)).value for e in grid],
        color=BLUE,
        label="optimal under PML",
    )
    axes.set(
        xlabel="epsilon [nats]",
        ylabel="mean absolute error [grades]",
        ylim=(0, None),
        xlim=(0, 3.5),
    )
    axes.set_title("Adult data: 16 levels of education, 32,561 people")
    label_ends(axes)
    return figure


def _response(prior: Prior, loss: ExpectedLoss, epsilon: float) -> float:
    form = closed_forms.randomized_response(prior.size, closed_forms.ldp_for_pml(prior, epsilon))
    return loss.value(prior, Mechanism(form.matrix, prior.labels, prior.labels))


def information() -> Figure:
    """Mutual information over epsilon: known prior, ball of priors, LDP, randomized response."""
    table = columns("information")
    figure, (axes,) = panels()
    for name, values in list(table.items())[1:]:
        axes.plot(table["epsilon"], values, label=name.replace("optimal under ", ""))
    axes.set(
        xlabel="epsilon [nats]", ylabel="mutual information [nats]", ylim=(0, None), xlim=(0, 3)
    )
    axes.set_title("Adult data: six levels of education")
    label_ends(axes)
    return figure


def funnel() -> Figure:
    """Draw what a release can say of the data over what it reveals of a secret."""
    grid = np.linspace(0.0, 1.5, 16)
    grid[0] = 1e-6
    figure, (axes,) = panels()
    for name, secret in secrets().items():
        found = [
            solve(design(secret.prior, PML(float(e), about=secret), MutualInformation())).value
            for e in grid
        ]
        axes.plot(
            grid, found, label=name.replace(" that ", "\nthat ").replace("whether ", "whether\n")
        )
    axes.set(
        xlabel="level about the secret [nats]",
        ylabel="mutual information [nats]",
        ylim=(0, 1.9),
        xlim=(0, 1.5),
    )
    axes.set_title("Four secrets that depend on a level of education")
    label_ends(axes, gap=0.17)
    return figure


def estimation() -> Figure:
    """People for one error, over epsilon: PML and LDP, designed and from the literature."""
    prior = Prior.from_counts({"a": 40, "b": 30, "c": 15, "d": 10, "e": 5})
    grid = np.linspace(0.3, 3.0, 19)
    error = EstimationError()
    figure, (axes,) = panels()
    pml = [solve(design(prior, PML(float(e)), error)).value for e in grid]
    ldp = [solve(design(prior, LDP(float(e)), error)).value for e in grid]
    response = [
        error.value(prior, closed_forms.randomized_response(5, float(e)).matrix) for e in grid
    ]
    axes.semilogy(grid, response, ":", color=GREY, label="randomized\nresponse")
    axes.semilogy(grid, ldp, "--", color=RED, label="optimal, LDP")
    axes.semilogy(grid, pml, color=BLUE, label="optimal, PML")
    axes.set(xlabel="epsilon [nats]", ylabel="n times the summed variance", xlim=(0.3, 3))
    axes.set_title("Five frequencies: what they cost")
    label_ends(axes, gap=0.13)
    return figure


def ledger() -> Figure:
    """A second wave: its error with budgets for each letter, and by adding levels."""
    prior = Prior.from_counts({1: 40, 2: 30, 3: 20, 4: 10})
    truth = [
        letter
        for letter, count in zip(prior.labels, prior.counts or (), strict=True)
        for _ in range(count)
    ]
    years = np.array(prior.labels, float)

    def loss(letters: Sequence[object]) -> ExpectedLoss:
        return ExpectedLoss(np.abs(np.subtract.outer(np.array(letters, float), years)))

    first = solve(design(prior, PML(0.5), loss(prior.labels), outputs=prior.labels)).mechanism
    grid = np.linspace(0.05, 1.2, 12)
    budgets, added = [], []
    for more in grid:
        book = Ledger(prior, people=len(truth))
        book.record(first, first.sample(truth, seed=1))
        spent = {True: 0.0, False: 0.0}
        for group in book.groups():
            posterior = book.prior(group[0])
            for whole in (True, False):
                asked = book.requirement(0.5 + float(more), group[0]) if whole else PML(float(more))
                found = solve(
                    design(posterior, asked, loss(posterior.labels), outputs=prior.labels)
                )
                spent[whole] += len(group) * found.value / len(truth)
        budgets.append(spent[True])
        added.append(spent[False])
    figure, (axes,) = panels()
    axes.plot(grid, added, "--", color=RED, label="levels that add")
    axes.plot(grid, budgets, color=BLUE, label="budgets of\nthe ledger")
    axes.set(
        xlabel="what the second wave adds to the level [nats]",
        ylabel="mean absolute error",
        ylim=(0, None),
    )
    axes.set_title("After a first wave of 0.5 nats")
    label_ends(axes)
    return figure


def shuffle() -> Figure:
    """The level of a histogram over the number of people, for local levels."""
    prior = [0.4, 0.3, 0.2, 0.1]
    people = np.unique(np.geomspace(100, 100_000, 10).astype(int))
    figure, (axes,) = panels()
    for level in (0.5, 1.0, 2.0):
        mechanism = solve(design(prior, PML(level), "estimation-error")).mechanism
        found = [shuffled_level(prior, mechanism, int(n), 1e-6) for n in people]
        axes.loglog(people, found, label=f"{level:g} nats each")
    axes.set(
        xlabel="people",
        ylabel="level of the histogram [nats]",
        title="Only the histogram is seen, delta = 1e-6",
    )
    label_ends(axes)
    return figure


def large_alphabets() -> Figure:
    """Wrong answers out of n over epsilon, for tables of 8, 16 and 24 independent yes-or-no answers."""
    figure, (axes,) = panels()
    grid = np.linspace(0.25, 6.0, 8)
    for records in (8, 16, 24):
        survey = IIDPrior([0.7, 0.3], records)
        loss = CoordinateLoss([[0, 1], [1, 0]])
        found = [solve(design(survey, PML(float(e)), loss)).value / records for e in grid]
        axes.plot(grid, found, label=f"$2^{{{records}}}$ letters")
    axes.set(
        xlabel="epsilon for the whole table [nats]",
        ylabel="share of wrong answers",
        ylim=(0, None),
        xlim=(0, 6),
    )
    axes.set_title("Tables of independent answers, 30% yes")
    label_ends(axes)
    return figure


def twice() -> Figure:
    """The joint level of a mechanism used again and again, and the sum of the levels."""
    prior = [0.4, 0.3, 0.2, 0.1]
    mechanism = solve(design(prior, PML(0.5), EstimationError())).mechanism
    count = np.arange(1, 13)
    figure, (axes,) = panels()
    level = leakage_level(prior, mechanism)
    axes.plot(count, level * count, ":", color=GREY, label="sum of the levels")
    axes.plot(
        count,
        [joint_level(prior, [mechanism] * int(k)) for k in count],
        "o-",
        color=BLUE,
        label="exact",
    )
    known = np.full(len(count), -np.log(min(prior)))
    axes.plot(count, known, color=RED, linestyle="--", label="the letter is known")
    axes.set(
        xlabel="releases",
        ylabel="joint level [nats]",
        ylim=(0, 4),
        title="One mechanism of 0.5 nats, used again and again",
    )
    label_ends(axes, order=("the letter is known", "exact"))
    return figure


def leakage_and_information() -> Figure:
    """Mutual information and level of mechanisms of one level: the mean says little of the worst."""
    prior = [0.4, 0.3, 0.2, 0.1]
    rng = np.random.default_rng(0)
    points = []
    for _ in range(1200):
        matrix = rng.dirichlet(np.full(4, float(rng.choice([0.2, 1.0]))), 4)
        points.append((leakage_level(prior, matrix), mutual_information(prior, matrix)))
    figure, (axes,) = panels()
    levels, means = zip(*points, strict=True)
    axes.plot(levels, means, ".", color=GREY, markersize=1.5, label="_", rasterized=True)
    grid = np.linspace(0.02, 2.3, 24)
    best = [solve(design(prior, PML(float(e)), MutualInformation())).value for e in grid]
    axes.plot(grid, best, color=BLUE, label="most that a\nlevel allows")
    axes.set(
        xlabel="PML level [nats]", ylabel="mutual information [nats]", xlim=(0, 2.4), ylim=(0, None)
    )
    axes.set_title("1,200 random mechanisms on four letters")
    label_ends(axes)
    return figure


def estimation_people() -> Figure:
    """Error of the frequencies of education over the number of people, Adult data."""
    figure, (axes,) = panels()
    styles = {"PML, optimal": "-", "LDP, optimal": "--", "subset selection": ":"}
    for row in rows_of("estimation_designs"):
        name = row["mechanism"]
        points = [
            (int(key[4:].replace(",", "")), float(value))
            for key, value in row.items()
            if key.startswith("n =")
        ]
        axes.loglog(*zip(*points, strict=True), styles.get(name, "-."), label=name)
    axes.set(
        xlabel="people",
        ylabel="root mean square error",
        title="Adult data: 16 levels, epsilon = 1, 100 runs",
    )
    label_ends(axes, gap=0.085)
    return figure


def growth() -> Figure:
    """Seconds over the number of letters, for each kind of problem."""
    figure, (axes,) = panels(height=4.6)
    curves: dict[str, list[tuple[int, float]]] = {}
    for row in rows_of("growth"):
        if row["gap"]:  # it ended
            curves.setdefault(row["kind"], []).append((int(row["size"]), float(row["seconds"])))
    letters = {kind: points for kind, points in curves.items() if points[0][0] == 10}
    for place, (kind, points) in enumerate(letters.items()):
        line = "-" if place < 7 else "--"
        name = f"growth {kind}".replace(" ", "-")  # by which a test finds the curve in the picture
        axes.loglog(
            *zip(*points, strict=True), line, marker="o", markersize=3, label=kind, gid=name
        )
    axes.set(
        xlabel="letters, N = M",
        ylabel="processor seconds, from the declaration to the certificate",
        title="Random gains at one nat, by the kind of problem",
    )
    axes.set_xticks([10, 20, 50, 100, 200, 400], ["10", "20", "50", "100", "200", "400"])
    axes.minorticks_off()
    label_ends(axes, gap=0.05)
    return figure


def continuous() -> Figure:
    """Secrets that are numbers: the mechanism on bins and the bound on all mechanisms, over the bins."""
    rows = rows_of("continuous")
    titles = {
        "circle of length 1, uniform": ("uniform on a circle", "mean distance [circumferences]"),
        "age, normal(40, 15) on [0, 100]": (
            "age, normal(40, 15) on [0, 100]",
            "mean distance [years]",
        ),
        "the same, squared": ("age, squared distance", "mean squared distance [years²]"),
        "unit square, uniform": ("uniform on a square", "mean distance [sides]"),
    }
    figure, axes = panels(2, 2, height=2.6)
    for place, (panel, (name, (title, loss))) in enumerate(zip(axes, titles.items(), strict=True)):
        those = [row for row in rows if row["secret"] == name]
        bins = [int(row["bins"]) for row in those]
        for column, colour, line in (
            ("mechanism on bins", BLUE, "o-"),
            ("no mechanism betters", RED, "s--"),
        ):
            panel.semilogx(
                bins, [float(row[column]) for row in those], line, base=2, color=colour, label="_"
            )
        panel.set_xticks(bins, [str(count) for count in bins])
        panel.minorticks_off()
        panel.set(title=title, ylabel=loss, xlabel="number of bins" if place > 1 else None)
    closed = float(
        next(row for row in rows if row["secret"].endswith("closed form"))["mechanism on bins"]
    )
    axes[0].axhline(closed, color=GREY, linestyle=":", linewidth=1.2, label="_")
    note(axes[0], "closed form", (9, closed + 0.0003), GREY)
    note(axes[1], "mechanism on bins", (20, 6.35), BLUE)
    note(axes[1], "bound on every mechanism", (20, 5.2), RED)
    return figure


def symmetry() -> Figure:
    """Draw variables, processor seconds and memory over the number of letters, by orbits and listed."""
    kinds = {
        ("bits", "orbits"): ("bits, by orbits", BLUE, "o-"),
        ("bits", "listed, auto"): ("bits, listed, by classes", RED, "s--"),
        ("bits", "listed, block-ipm"): ("bits, listed", ORANGE, "x:"),
        ("records of 3", "orbits"): ("three letters, by orbits", GREEN, "^-."),
        ("circle", "orbits"): ("circle, by orbits", PURPLE, "v-."),
    }
    measures = {
        "variables": "variables",
        "cpu [s]": "processor time [s]",
        "peak [MiB]": "memory [MiB]",
    }
    rows = rows_of("symmetry")
    figure, axes = panels(1, 3, height=3.3)
    for panel, (column, upright) in zip(axes, measures.items(), strict=True):
        for (kind, method), (name, colour, line) in kinds.items():
            own = [row for row in rows if kind in row["problem"] and row["method"] == method]
            digits = [_count_digits(row["letters"]) for row in own]
            values = [float(row[column].replace(",", "")) for row in own]
            panel.plot(digits, values, line, color=colour, label=name)
        panel.set(title=upright, xlabel="binary digits of a letter", xticks=range(0, 65, 16))
        if column != "peak [MiB]":
            panel.set_yscale("log")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    return figure


def _count_digits(letters: str) -> float:
    """Count the binary digits of a number of letters as the study writes it: 65,536 or 2^24.0."""
    base, _, power = letters.partition("^")
    return float(power) if power else float(np.log2(float(base.replace(",", ""))))


def ten_thousand_designs() -> Figure:
    """Draw the least error over ten nats of epsilon, for the counts of the Adult data."""
    prior = find("adult-education-absolute").prior
    loss = ExpectedLoss(absolute)
    grid = np.linspace(0.001, 10.0, 1000)
    figure, (axes,) = panels()
    axes.plot(grid, [solve(design(prior, PML(float(e)), loss)).value for e in grid], color=BLUE)
    axes.set(
        xlabel="epsilon [nats]",
        ylabel="mean absolute error [grades]",
        ylim=(0, None),
        xlim=(0, 10),
        title="Adult data: every tenth of 10,000 optimal designs",
    )
    return figure


def streams() -> Figure:
    """Draw a secret that moves: the belief before each release, and what outputs reveal of each state."""
    states = ["cold", "usual", "warm"]
    chain = Chain([0.3, 0.4, 0.3], [[0.7, 0.25, 0.05], [0.2, 0.6, 0.2], [0.05, 0.25, 0.7]], states)
    steps, at, rng = 24, 1, np.random.default_rng(1)
    stream = Stream(chain, PML(0.8), "hamming")
    truth: list[int] = []
    beliefs: list[list[float]] = []
    for _ in range(steps):
        truth.append(at)
        law = stream.law
        beliefs.append(
            [dict(zip(law.labels, law.pmf, strict=True)).get(state, 0.0) for state in states]
        )
        stream.release(states[at], rng)
        at = int(rng.choice(3, p=chain.kernels[0][at]))
    figure, (above, below) = panels(2, 1, height=2.6, sharex=True)
    times = np.arange(1, steps + 1)
    above.imshow(np.array(beliefs).T, aspect="auto", origin="lower", cmap="Blues", vmin=0, vmax=1,
                 extent=(0.5, steps + 0.5, -0.5, 2.5))  # fmt: skip
    above.step(times, truth, where="mid", color=RED, linewidth=1.2)
    above.plot(times, [states.index(str(output)) for output in stream.history], ".", color=GREY)
    above.set_yticks(range(3), states)
    above.grid(visible=False)
    above.set_title("Belief before each release (blue), state (line), output (dots)")
    told = stream.worst_levels
    below.step(times, stream.levels, where="mid", color=BLUE)
    below.plot(list(told), list(told.values()), ".", color=GREY)
    below.axhline(0.8, color=RED, linestyle=":")
    note(below, "epsilon", (1, 0.82), RED, va="bottom")
    below.set(xlabel="step", ylabel="level [nats]", ylim=(0, 0.95), xlim=(0.5, steps + 0.5))
    below.set_title("Level after each release (line), what all outputs reveal of each state (dots)")
    return figure


def columns_together() -> Figure:
    """Loss over the total of two columns: apart, designed in turn, and one mechanism on pairs."""
    rows = [row for row in rows_of("columns_together") if row["file"] == "example"]
    totals = [float(row["total"]) for row in rows]
    figure, (axes,) = panels()
    ways = (("apart", "--", GREY), ("in turn", "-", ORANGE), ("together", "-", BLUE))
    names = {
        "apart": "apart, at one epsilon",
        "in turn": "apart, in turn",
        "together": "one mechanism on pairs",
    }
    for way, line, colour in ways:
        axes.plot(totals, [float(row[way]) for row in rows], line, color=colour, label=names[way])
    axes.set(
        xlabel="total about the person [nats]", ylabel="loss of both columns", ylim=(0, None),
        xlim=(0.25, 2.0),
    )  # fmt: skip
    axes.set_title("Education and sex of 45,000 people")
    label_ends(axes)
    return figure


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "tradeoff": tradeoff,
    "columns-together": columns_together,
    "information": information,
    "funnel": funnel,
    "estimation": estimation,
    "ledger": ledger,
    "streams": streams,
    "shuffle": shuffle,
    "releases": twice,
    "large-alphabets": large_alphabets,
    "leakage-information": leakage_and_information,
    "estimation-people": estimation_people,
    "growth": growth,
    "symmetry": symmetry,
    "ten-thousand-designs": ten_thousand_designs,
    "continuous": continuous,
    **OF_PRIORS,
    **OF_RECORDS,
}
"""Every figure by the name of its file."""


if __name__ == "__main__":
    main()
