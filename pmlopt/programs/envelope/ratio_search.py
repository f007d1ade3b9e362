"""The PML envelope: the leakage that a post-processing can reach, but for a probability, exactly."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray, probability
from pmlopt.backends.outcome import Options, options_of
from pmlopt.backends.parametric_program import MovingProgram
from pmlopt.backends.two_sided_search import MET, TIME, Answer, Search
from pmlopt.measures import binary_event, envelope_bounds, leakage_quantile
from pmlopt.measures.approximate import quantile
from pmlopt.mechanism import Mechanism, MechanismLike
from pmlopt.prior import PriorLike
from pmlopt.programs.envelope.certificate import largest_ratio
from pmlopt.programs.envelope.program import EnvelopeProgram, envelope_program
from pmlopt.result import Status


@dataclass(frozen=True, eq=False)
class Envelope:
    """The envelope of a mechanism at delta, from both sides, in nats.

    Attributes:
        delta: the probability.
        value: what `attack` reaches, recomputed: the delta-quantile of its leakage.
        bound: what no post-processing can exceed with probability delta or more.
        attack: (M, K) a post-processing of at most N + 1 outputs.
        multipliers: (N,) lam, from which `bound` follows (`certificate.envelope.largest_ratio`), or None
            where it is that of Theorem 3.
        status: OPTIMAL where the gap is within the tolerance.
        programs: how many linear programs it took.
    """

    delta: float
    value: float
    bound: float
    attack: Mechanism
    multipliers: FloatArray | None
    status: Status
    programs: int

    @property
    def gap(self) -> float:
        """Bound - value."""
        return self.bound - self.value


def envelope(
    prior: PriorLike,
    mechanism: MechanismLike,
    delta: float,
    *,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
) -> Envelope:
    """`eps_c(delta)`: the leakage that no post-processing exceeds but with probability delta, in nats.

    The largest t with `V(t) >= delta`, see `EnvelopeProgram`: a search from both ends, with the attack that
    reaches the value and multipliers that prove the bound.

    Args:
        prior: N letters.
        mechanism: (N, M).
        delta: in (0, 1).
        tolerance: the gap in nats that is good enough.
        time_limit: seconds.

    Raises:
        PrivacyError: delta is not in (0, 1).
        MechanismError: sizes or labels of prior and mechanism disagree.

    Source: ENV, Section IV and Theorem 2.

    Examples:
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> found = envelope([0.25] * 4, halves, 0.1)
        >>> round(math.exp(found.value), 9), round(math.exp(found.bound), 9)
        (4.0, 4.0)
        >>> round(envelope([0.25] * 4, halves, 0.5).value, 6)
        0.412845
    """
    return envelope_curve(prior, mechanism, [delta], tolerance=tolerance, time_limit=time_limit)[0]


def envelope_curve(
    prior: PriorLike,
    mechanism: MechanismLike,
    deltas: Iterable[float],
    *,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
) -> list[Envelope]:
    """The envelope at many delta, each search starting from what the others have found.

    Args:
        prior: N letters.
        mechanism: (N, M).
        deltas: each in (0, 1).
        tolerance: the gap in nats that is good enough.
        time_limit: seconds for each delta.

    Returns:
        In the order of the deltas.

    Raises:
        PrivacyError: a delta is not in (0, 1).
        InputError: the tolerance or the time limit is not positive.
    """
    options = options_of(time_limit, tolerance)
    wanted = [probability(delta) for delta in deltas]
    program = envelope_program(prior, mechanism)
    work = _Curve(program)
    found = {delta: work.at(delta, options) for delta in sorted(set(wanted), reverse=True)}
    return [found[delta] for delta in wanted]


@dataclass(frozen=True, eq=False)
class _Known:
    """The linear program at one ratio, which is the same for every delta.

    Attributes:
        ratio: t.
        mass: V(t).
        slope: of -V.
        point: (M', N) the attack.
        proof: (N,) multipliers.
    """

    ratio: float
    mass: float
    slope: float
    point: FloatArray
    proof: FloatArray

    def answer(self, delta: float) -> Answer[FloatArray | None]:
        """What it says about a delta."""
        return Answer(delta - self.mass, self.slope, self.point, self.proof)


class _Curve:
    """Searches on one mechanism: the linear program, and what it has been asked so far."""

    def __init__(self, program: EnvelopeProgram) -> None:
        self.program = program
        self.moving: MovingProgram | None = None
        self.known: list[_Known] = []

    def at(self, delta: float, options: Options) -> Envelope:
        """The envelope at delta, from the nearest ratios that were asked on both sides."""
        task = _EnvelopeTask(self, delta)
        above = sorted((k for k in self.known if k.mass < delta - MET), key=lambda k: k.ratio)[:3]
        below = sorted((k for k in self.known if k.mass >= delta), key=lambda k: -k.ratio)[:1]
        simple = [_plain_attack(self.program, delta), _binary_attack(self.program, delta)]
        points = [*simple, *(k.point for k in below)]
        search = Search(
            task,
            [task.witness(point) for point in points],
            [None, *(k.proof for k in above)],
            options.tolerance / 2,
            options.time_limit,
            (above[0].ratio, above[0].answer(delta)) if above else None,
        )
        ending = search.run()
        assert search.witness is not None
        attack = _channel(self.program, search.witness)
        after = self.program.given.post_process(attack.matrix)
        value = leakage_quantile(self.program.prior, after, delta, upper=True)
        bound = max(value, math.log(search.upper))
        late = Status.STOPPED if ending == TIME else Status.UNPROVED
        status = Status.OPTIMAL if bound - value <= options.tolerance else late
        return Envelope(delta, value, bound, attack, search.proofs[0], status, search.programs)

    def ask(self, ratio: float, seconds: float | None) -> _Known:
        """The linear program at a ratio."""
        program = self.program
        if self.moving is None:
            self.moving = MovingProgram(program.problem, program.ratio)
        value, slope = self.moving.solve(ratio, seconds)
        point = np.asarray(program.variables["attack"].value).reshape(program.merged.T.shape)
        proof = np.asarray(program.constraints["leaks"].dual_value)
        self.known.append(_Known(ratio, -value, slope, np.where(point > 1e-12, point, 0.0), proof))
        return self.known[-1]


class _EnvelopeTask:
    """The largest ratio t whose mass is delta or more."""

    blur = 0.0

    def __init__(self, curve: _Curve, delta: float) -> None:
        self.curve, self.program, self.delta = curve, curve.program, delta
        self.most = math.exp(envelope_bounds(self.program.prior, self.program.given, delta)[1])
        # above the largest ratio of a letter no outcome can leak through it: its mass is lost at once
        self.marks = (self.program.merged / self.program.law).max(axis=1)

    def solve(self, number: float, seconds: float | None) -> Answer[FloatArray | None]:
        return self.curve.ask(number, seconds).answer(self.delta)

    def witness(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The ratio that the quantile of an attack reaches, and the attack."""
        attack = self._filled(point)
        rest = np.maximum(0.0, 1 - attack.sum(axis=1))
        columns = self.program.merged @ np.column_stack([attack, np.where(rest > 1e-15, rest, 0.0)])
        masses = self.program.prior.pmf @ columns
        used = masses > 0
        ratios, masses = columns[:, used].max(axis=0) / masses[used], masses[used]
        return quantile(ratios, masses, self.delta, upper=True), attack

    def proved(self, proof: FloatArray | None) -> float:
        if proof is None:
            return self.most
        return largest_ratio(self.program, self.delta, proof, self.most)

    def beyond(self, now: FloatArray | None, then: FloatArray | None, step: float) -> FloatArray | None:
        if now is None or then is None:
            return None
        return np.asarray(np.maximum(0.0, now + step * (now - then)))

    def _filled(self, point: FloatArray) -> FloatArray:
        """The attack with what little its mass is short of delta added to its likeliest outcome."""
        law = self.program.law
        scaled = point / np.maximum(point.sum(axis=1, keepdims=True), 1.0)
        rest = 1 - scaled.sum(axis=1)
        short, room = self.delta * (1 + 4e-15) - float(law @ scaled.sum(axis=1)), float(law @ rest)
        if not 0 < short <= min(1e-6, room):
            return np.asarray(scaled)
        scaled[:, int((law @ scaled).argmax())] += short / room * rest
        return np.asarray(scaled)


def _channel(program: EnvelopeProgram, point: FloatArray) -> Mechanism:
    """A (M', N) attack as a channel of the original outputs: what is left goes to one more outcome."""
    used = np.flatnonzero(program.law @ point > 0)
    rest = np.maximum(0.0, 1 - point[:, used].sum(axis=1, keepdims=True))
    rows = np.hstack([point[:, used], np.where(rest > 1e-15, rest, 0.0)])
    matrix = np.zeros((len(program.given.outputs), rows.shape[1]))
    matrix[:, -1] = 1.0  # outputs that never occur
    for row, group in zip(rows / rows.sum(axis=1, keepdims=True), program.groups, strict=True):
        matrix[list(group)] = row
    kept = np.flatnonzero(matrix.max(axis=0) > 0)
    rest_label = () if None in program.prior.labels else None
    labels = [*(program.prior.labels[x] for x in used), rest_label]
    return Mechanism(matrix[:, kept], outputs=[labels[place] for place in kept])


def _plain_attack(program: EnvelopeProgram, delta: float) -> FloatArray:
    """The outputs that leak most, of mass delta or more, each to the letter that it speaks for.

    It reaches what the mechanism reaches by itself.
    """
    ratios = program.merged / program.law
    peaks = ratios.max(axis=0)
    taken = np.flatnonzero(peaks >= quantile(peaks, program.law, delta, upper=True))
    point = np.zeros(program.merged.T.shape)
    point[taken, ratios.argmax(axis=0)[taken]] = 1.0
    return point


def _binary_attack(program: EnvelopeProgram, delta: float) -> FloatArray:
    """The event of mass delta that leaks most, under the letter through which it does."""
    event = binary_event(program.prior, program.merged, delta)
    point = np.zeros(program.merged.T.shape)
    point[:, int((program.merged @ event).argmax())] = event
    return point
