"""Local ascent for the leakage of a record: alternating maximization with closed-form steps."""

from __future__ import annotations

import numpy as np

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.measures.leakage import log_sum_exp
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

MIN_LOG_PRICE = np.log(1e-9)
MAX_LOG_PRICE = np.log(1e9)
"""Between these the price of the entropy is sought."""
MIN_PRICE_REACH, MAX_PRICE_REACH = 1e-7, 0.1
"""How far from the last price the next one is sought at first, as a logarithm: four times as far as the
last one moved, between these."""
MIN_MASS = 1e-300
"""In place of zero where a logarithm or a quotient is taken."""


def maximize_locally(
    adversary: BoundedAdversary,
    joints: FloatArray,
    iterations: int = 2_000,
    tolerance: float = 1e-14,
    deadline: Deadline = NO_DEADLINE,
) -> tuple[FloatArray, FloatArray]:
    """Improve joint laws by alternating maximization, which never decreases the leakage.

    `I(A; Y)` is the largest `H(A) + sum_{a,t} J(a,t) G(a,t)`, `G(a,t) = sum_y W[t,y] log psi(a|y)`, over laws
    psi(a|y). For a fixed psi the best J within the entropy bound is known but for the price s of the entropy:
    `J(t|a) ~ c(a,t) exp(G(a,t) / s)`, `J(a) ~ exp(s Lam_a / (1 + s))`, Lam_a the log-sum of the former; for a
    fixed J the best psi is the posterior. Both steps can only raise I.

    Returns:
        (S, A, T) the laws, not yet pushed inside the entropy bound by its rounding, and (S,) their leakages.
    """
    log_counts, entropy = adversary.shifted_counts
    values = compute_informations(joints, adversary.rows)
    guess = np.zeros(len(joints))
    max_steps = np.full(len(joints), np.inf)
    for _ in range(iterations):
        if deadline.expired:
            break
        # a posterior of 0 would give -inf times 0
        logs = np.log(np.maximum(_compute_posteriors(adversary, joints), MIN_MASS))
        exponents = np.einsum("ty,sya->sat", adversary.rows, logs)
        last = guess
        guess, moved = _solve_entropy_prices(log_counts, exponents, entropy, last, max_steps)
        max_steps = np.clip(4.0 * np.abs(guess - last), MIN_PRICE_REACH, MAX_PRICE_REACH)
        gained = compute_informations(moved, adversary.rows)
        # each of the S laws keeps its best: rounding may undo the ascent near an optimum
        better = gained > values
        joints = np.where(better[:, None, None], moved, joints)
        rise = float(np.max(gained - values, initial=0.0))
        values = np.maximum(values, gained)
        if rise <= tolerance:
            break
    return joints, values


def draw_starts(adversary: BoundedAdversary, count: int, seed: int) -> FloatArray:
    """Draw (S, A, T) random feasible joint laws as starts."""
    random = np.random.default_rng(seed)
    used = np.isfinite(adversary.log_counts)
    shape = (count, *used.shape)
    # small concentrations put letters on one class each, where I is large
    concentration = 10.0 ** random.uniform(-2, 0, size=(count, 1, 1))
    classes = np.where(used, random.gamma(np.broadcast_to(concentration, shape)) + MIN_MASS, 0.0)
    classes /= classes.sum(axis=2, keepdims=True)
    joints = random.dirichlet(np.full(len(used), 2.0), size=count)[:, :, None] * classes
    return np.stack([adversary.make_allowed(joint) for joint in joints])


def _compute_posteriors(adversary: BoundedAdversary, joints: FloatArray) -> FloatArray:
    """Compute the (S, M, A) posteriors of the letter given the output."""
    outputs = joints @ adversary.rows
    totals = outputs.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, outputs / np.maximum(totals, MIN_MASS), 1 / joints.shape[1])
    return np.asarray(shares.transpose(0, 2, 1))


def compute_informations(joints: FloatArray, rows: FloatArray) -> FloatArray:
    """Compute the (S,) mutual informations I(A; Y) of joint laws (S, A, T), in nats."""
    outputs = joints @ rows
    letters = outputs.sum(axis=2)
    # I from entropies of sums: exact enough to climb; claims use sums of divergences
    inner = special.xlogy(outputs, outputs).sum(axis=(1, 2)) - special.xlogy(letters, letters).sum(
        axis=1
    )
    law = outputs.sum(axis=1)
    return np.asarray(inner - special.xlogy(law, law).sum(axis=1))


def _solve_entropy_prices(
    log_counts: FloatArray,
    exponents: FloatArray,
    entropy: float,
    guess: FloatArray,
    max_steps: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Solve for the entropy multipliers at which the optimal laws meet the entropy bound.

    The entropy rises with the price: regula falsi (Illinois), from around the last price, within some reach.
    """
    # the search for a price ends at a surplus of 1e-13 nats, or at such a width of the logarithms
    surplus_tolerance = 1e-13
    used = np.isfinite(log_counts)
    finite = np.where(used, log_counts, 0.0)
    # exponents relative to each letter's largest: no overflow as the price falls to 0
    peaks = np.where(used, exponents, -np.inf).max(axis=2, keepdims=True)
    away = exponents - peaks

    def build_laws(log_price: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Build the best laws at given prices, and compute by how much their entropies exceed the bound."""
        price = np.exp(log_price)[:, None, None]
        scores = log_counts + away / price
        sums = log_sum_exp(scores, axis=2)
        # the peaks are added back undivided: (peak / s) s would lose digits at small prices
        letters = (peaks + price * sums) / (1 + price)
        log_joint = letters - log_sum_exp(letters, axis=1) + scores - sums
        joint = np.exp(log_joint)
        surprise = finite - np.where(joint > 0, log_joint, 0.0)
        return joint, (joint * surprise).sum(axis=(1, 2)) - entropy

    def compute_surplus(log_price: FloatArray) -> FloatArray:
        return build_laws(log_price)[1]

    # the price moves little between rounds: a narrow bracket saves evaluations
    low = np.maximum(guess - max_steps, MIN_LOG_PRICE)
    high = np.minimum(guess + max_steps, MAX_LOG_PRICE)
    below = compute_surplus(low)
    above = compute_surplus(high)
    # the bracket missed the root on this side: it is widened to the full range
    if (missed := below >= 0).any():
        low = np.where(missed, MIN_LOG_PRICE, low)
        below = compute_surplus(low)
    # likewise above
    if (missed := above < 0).any():
        high = np.where(missed, MAX_LOG_PRICE, high)
        above = compute_surplus(high)
    # feasible even at the lowest price: the entropy constraint is slack
    high = np.where(below >= 0, low, high)
    above = np.where(below >= 0, below, above)
    side = np.zeros(len(low))
    # at most 60 steps to find a price
    for _ in range(60):
        open_ = (below < 0) & (above > surplus_tolerance) & (high - low > surplus_tolerance)
        if not open_.any():
            break
        # regula falsi, kept off the ends so that the bracket shrinks
        fraction = np.clip(above / np.maximum(above - below, MIN_MASS), 1e-3, 1 - 1e-3)
        middle = high - fraction * (high - low)
        found = compute_surplus(middle)
        up = open_ & (found >= 0)
        down = open_ & (found < 0)
        # Illinois: an end that stays twice counts half, or convergence is one-sided and slow
        below = np.where(up & (side > 0), below / 2, below)
        above = np.where(down & (side < 0), above / 2, above)
        high = np.where(up, middle, high)
        above = np.where(up, found, above)
        low = np.where(down, middle, low)
        below = np.where(down, found, below)
        side = np.where(up, 1.0, np.where(down, -1.0, side))
    # the end of the bracket at which the entropy is met
    return high, build_laws(high)[0]
