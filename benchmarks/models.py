"""Regressions on released columns: how often intervals hold, how large biases are, and what a fit costs.

    python benchmarks/models.py [--repeats 2000] [--processes 2] [--rows 100000] [--out FOLDER] [--quick]

People smoke with the logit `-0.5 + 0.8 ill + 0.5 age`. The response, the covariate "ill" or both are
released, in settings: randomized response at 2 nats, the same in four strata with intercepts of their own, a
sample with unequal chances and weights, and a design for estimation under PML at 1 nat in place of one of the
columns' mechanism. `models.csv` has coverage at 95 % and the bias of both log odds ratios in standard errors,
with the errors of the simulation; `models-seconds.csv` a multinomial logit of ten covariates by statsmodels,
and the same model with a response of 3 letters and a covariate of 5 that were released.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from common import (
    FloatArray,
    growth_figure,
    interleaved,
    report,
    report_times,
    suite_parser,
    write_machine,
)

from pmlopt import PML, EstimationError, Mechanism, Prior, design, solve
from pmlopt.estimation import model
from pmlopt.programs.plots import save_figure

PEOPLE, LETTERS = 5_000, ("no", "yes")
TRUTH = np.array([0.8, 0.5])
RELEASED = {"response": ("smokes",), "covariate": ("ill",), "both": ("smokes", "ill")}
SETTINGS = ("plain", "strata", "weights", "two mechanisms")
HEAD = (
    "released", "setting", "people", "repetitions", "coverage of ill [%]", "coverage of age [%]",
    "error of coverage [%]", "bias of ill [se]", "bias of age [se]", "error of bias [se]", "noisy ill",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Measure both, and draw the seconds."""
    parser = suite_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--fits", type=int, default=1)
    arguments = parser.parse_args(argv)
    repeats, most = (3, 2_000) if arguments.quick else (arguments.repeats, arguments.rows)
    rows = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for place, (what, setting) in enumerate(product(RELEASED, SETTINGS)):
            seeds = [[5, place, repetition] for repetition in range(repeats)]
            rows.append([what, setting, f"{PEOPLE:,}", *summarize(what, setting, seeds, pool)])
            report(arguments.out, "models", HEAD, rows, show=False)
    report(arguments.out, "models", HEAD, rows)
    if arguments.out is not None:
        write_machine(arguments.out, "models")
    print()
    sizes = [most // 100, most // 10, most]
    times = [measure(size, arguments.fits) for size in sizes]
    report_times(
        arguments.out, "models-seconds",
        ("rows", "statsmodels in clear [s]", "pmlopt released [s]", "ratio"),
        [[f"{size:,}", f"{plain:.3f}", f"{ours:.3f}", f"{ours / plain:.1f}"]
         for size, (plain, ours) in zip(sizes, times, strict=True)],
    )  # fmt: skip
    if arguments.out is not None:
        curves = {
            name: (sizes, [pair[k] for pair in times])
            for k, name in enumerate(("statsmodels in clear", "pmlopt released"))
        }
        save_figure(growth_figure(curves, "seconds", "rows"), arguments.out / "models.png")


def make_response(size: int, nats: float) -> FloatArray:
    """Randomized response: the truth with e^nats times the probability of another letter."""
    matrix = np.ones((size, size)) + np.eye(size) * np.expm1(nats)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def make_mechanisms(what: str, setting: str) -> dict[str, Mechanism]:
    """The mechanisms of the released columns of a setting."""
    names = RELEASED[what]
    chosen = dict.fromkeys(names, Mechanism(make_response(2, 2.0), LETTERS, LETTERS))
    if setting == "two mechanisms":
        prior = Prior([0.7, 0.3], LETTERS)
        best = solve(design(prior, PML(1.0), EstimationError())).mechanism
        chosen[names[-1]] = best.with_named_outputs()
    return chosen


def summarize(what: str, setting: str, seeds: list[list[int]], pool: Executor) -> list[str]:
    """Coverage and bias over repetitions, with the errors of both."""
    once, repeats = partial(fit_once, make_mechanisms(what, setting), setting), len(seeds)
    fits = list(pool.map(once, seeds, chunksize=20))
    found, errors, noisy = (np.array(part) for part in zip(*fits, strict=True))
    apart = found - TRUTH
    held = (np.abs(apart) <= 1.959964 * errors).mean(axis=0)
    bias = apart.mean(axis=0) / found.std(axis=0, ddof=1)
    return [
        f"{repeats:,}", *(f"{100 * share:.1f}" for share in held),
        f"{100 * np.sqrt(0.95 * 0.05 / repeats):.1f}", *(f"{one:+.3f}" for one in bias),
        f"{1 / np.sqrt(repeats):.3f}", f"{noisy.mean():.2f}",
    ]  # fmt: skip


def fit_once(
    mechanisms: dict[str, Mechanism], setting: str, seed: list[int]
) -> tuple[FloatArray, FloatArray, float]:
    """The two log odds ratios of a fresh release, their standard errors, and ill's of the noisy columns."""
    rng = np.random.default_rng(seed)
    drawn = 4 * PEOPLE if setting == "weights" else PEOPLE
    age = rng.normal(size=drawn)
    region = rng.integers(4, size=drawn)
    ill = rng.random(drawn) < 1 / (1 + np.exp(0.8 - 0.4 * age))
    own = np.array([0.0, 0.6, -0.4, 0.3])[region] if setting == "strata" else 0.0
    smokes = rng.random(drawn) < 1 / (1 + np.exp(0.5 - 0.8 * ill - 0.5 * age - own))
    options: dict[str, Any] = {}
    kept = np.arange(drawn)
    if setting == "weights":  # older people and those who smoke are asked more often
        chances = 0.15 + 0.2 * (age > 0) + 0.1 * smokes
        kept = np.flatnonzero(rng.random(drawn) < chances)
        options["weights"] = 1 / chances[kept]
    columns: dict[str, Any] = {"age": age[kept], "region": [f"r{one}" for one in region[kept]]}
    for name, truth in {"ill": ill, "smokes": smokes}.items():
        letters = np.array(LETTERS)[truth[kept].astype(int)]
        mechanism = mechanisms.get(name)
        own_seed = int(rng.integers(2**32))
        columns[name] = letters if mechanism is None else mechanism.sample(letters, seed=own_seed)
    formula = "smokes ~ ill + age" + (" + region" if setting == "strata" else "")
    found = model(columns, formula, mechanisms, **options)
    places = [found.names.index(name) for name in ("ill[T.yes]", "age")]
    return found.coefficients[places], found.standard_errors[places], float(found.noisy[places[0]])


def measure(rows: int, fits: int) -> tuple[float, float]:
    """The processor seconds of a plain fit and of one on released columns, with their formulas."""
    import pandas as pd
    import statsmodels.formula.api as smf

    rng = np.random.default_rng(0)
    names = [f"x{place}" for place in range(9)]
    numbers = rng.normal(size=(rows, len(names)))
    ill = rng.integers(5, size=rows)
    ahead = 0.3 * numbers[:, :3].sum(axis=1) + 0.3 * ill
    logits = np.column_stack([np.zeros(rows), ahead - 0.5, ahead / 2])
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    drinks = (rng.random((rows, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    mechanisms = {}
    columns: dict[str, Any] = dict(zip(names, numbers.T, strict=True))
    clear = dict(columns)
    for name, truth, size in (("ill", ill, 5), ("drinks", drinks, 3)):
        letters = [f"{name}{place}" for place in range(size)]
        mechanisms[name] = Mechanism(make_response(size, 2.0), letters, letters)
        clear[name] = np.array(letters)[truth]
        columns[name] = mechanisms[name].sample(clear[name], seed=size)
    frame, released = pd.DataFrame(clear), pd.DataFrame(columns)
    right = " ~ ill + " + " + ".join(names)
    codes = frame.assign(drinks=drinks)
    done = interleaved({
        "plain": lambda: smf.mnlogit("drinks" + right, codes).fit(disp=0, method="newton"),
        "released": lambda: model(released, "drinks" + right, mechanisms),
    }, fits)  # fmt: skip
    return done["plain"][0], done["released"][0]


if __name__ == "__main__":
    main()
