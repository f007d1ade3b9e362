"""The figures of the note, from the closed forms that its theorems give.

    python paper/note/figures.py

writes envelope.pdf, parity.pdf and people.pdf beside this file; needs `pip install '.[plots]'`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from pmlopt.model.closed_forms import (
    least_ldp_estimation_error,
    least_pml_estimation_error,
    parity_leakage,
    randomized_response_envelope,
)

HERE = Path(__file__).parent
BLUE, ORANGE = "#0072B2", "#D55E00"


def envelope() -> None:
    """The envelope of randomized response and the lower bound h_delta, where they differ."""
    prior, epsilon = np.array([0.02, 0.03, 0.05, 0.45, 0.45]), 1.0
    deltas = np.linspace(0.3, 0.99, 400)
    exact = [randomized_response_envelope(prior, epsilon, delta) for delta in deltas]
    below = [lower_bound(prior, epsilon, delta) for delta in deltas]
    figure, axis = plt.subplots(figsize=(4.6, 2.8), constrained_layout=True)
    axis.plot(deltas, exact, color=BLUE)
    axis.plot(deltas, below, color=ORANGE, linestyle="--")
    axis.annotate(
        "envelope",
        (0.55, np.interp(0.55, deltas, exact)),
        (6, 6),
        textcoords="offset points",
        color=BLUE,
    )
    axis.annotate(
        "$h_\\delta$",
        (0.52, np.interp(0.52, deltas, below)),
        (-14, -14),
        textcoords="offset points",
        color=ORANGE,
    )
    axis.set_xlabel("$\\delta$")
    axis.set_ylabel("nats")
    figure.savefig(HERE / "envelope.pdf")


def lower_bound(prior: np.ndarray, epsilon: float, delta: float) -> float:
    """h_delta of [saeidian2026envelopes, Theorem 5]: the term of one letter less than delta takes."""
    size = len(prior)
    high, low = np.array([np.exp(epsilon), 1.0]) / (np.exp(epsilon) + size - 1)
    law = np.sort(low + (high - low) * prior)
    reached = int(np.searchsorted(np.cumsum(law), delta - 1e-12))
    if reached == 0:
        return float(np.log(high / law[0]))
    share = (delta - law[:reached].sum()) / law[reached]
    credit = (reached * high + share * low) / delta
    return float(np.log(max(high / law[reached], min(high / law[reached - 1], credit))))


def parity() -> None:
    """What a noisy parity of four records tells of one, over the entropy that the adversary lacks."""
    records, entropies = 4, np.linspace(0, 4 * np.log(2), 600)
    figure, axis = plt.subplots(figsize=(4.6, 2.8), constrained_layout=True)
    for flips, color in ((0.1, BLUE), (0.2, ORANGE), (0.3, "black")):
        curve = [parity_leakage(records, flips, float(b)) for b in entropies]
        axis.plot(entropies, curve, color=color)
        axis.annotate(
            f"$\\pi = {flips}$", (0.05, curve[0]), (0, 4), textcoords="offset points", color=color
        )
    axis.axvline(3 * np.log(2), color="gray", linestyle=":", linewidth=0.8)
    axis.set_xlabel("$b$ in nats")
    axis.set_ylabel("leakage of a record in nats")
    axis.set_ylim(0, 0.42)
    figure.savefig(HERE / "parity.pdf")


def people() -> None:
    """People needed under LDP over people needed under PML, at the uniform prior."""
    figure, axis = plt.subplots(figsize=(4.6, 2.8), constrained_layout=True)
    for size, color in ((3, ORANGE), (6, BLUE), (16, "black")):
        levels = np.linspace(0.1, np.log(size), 300)
        ratio = [
            least_ldp_estimation_error(size, e) / least_pml_estimation_error(size, e)
            for e in levels
        ]
        axis.plot(levels, ratio, color=color)
        axis.annotate(
            f"N = {size}", (levels[-1], ratio[-1]), (4, -4), textcoords="offset points", color=color
        )
    axis.set_yscale("log")
    axis.set_xlabel("$\\varepsilon$ in nats")
    axis.set_ylabel("ratio")
    axis.set_xlim(0, 3.3)
    figure.savefig(HERE / "people.pdf")


if __name__ == "__main__":
    envelope()
    parity()
    people()
