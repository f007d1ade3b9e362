"""The search for a least epsilon: designs at levels on both sides of it, each of which proves one side."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.numbers.roots import find_least_share
from pmlopt.errors import InputError, MechanismError, PmloptError, ProgramError
from pmlopt.programs.certificate import Certificate, WarmStart
from pmlopt.programs.least_leakage.epsilon_certificate import (
    DesignProof,
    LeastEpsilonCertificate,
    drop_bound,
    is_target_unreachable,
    reaches_target,
)
from pmlopt.programs.least_leakage.epsilon_program import LeastEpsilon
from pmlopt.programs.least_leakage.families import (
    MAX_LEVEL,
    get_level,
    replace_level,
    round_level_up,
)
from pmlopt.programs.linear.build_certificate import certify_symmetric
from pmlopt.programs.linear.program import SymmetricDesign
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodResult,
    describe_failure,
    find_registry,
)
from pmlopt.programs.solving import try_methods
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions


@dataclass
class EpsilonSearch:
    """The state of the search for a least epsilon: bracketing levels with their certificates.

    Attributes:
        program: the least epsilon to find.
        options: limits of the search.
        witness: a certificate of a mechanism that reaches the target, at its level.
        proof: a certificate at a level whose bound lies short of the target.
        short: the largest level that is known to be short: 0, or that of the proof.
        undecided: the least and the largest level of designs whose gap decided neither side.
        points: utilities at the levels that were looked at, less the target, positive where it is exceeded.
        designs: how many were solved.
        successful: the id of the method that closed the gap of the last design, where the first one left it.
    """

    program: LeastEpsilon
    options: MethodOptions
    witness: DesignProof | None = None
    proof: DesignProof | None = None
    short: float = 0.0
    undecided: tuple[float, float] | None = None
    points: dict[float, float] = field(default_factory=dict)
    designs: int = 0
    blur: float = 0.0
    side: int = 1
    restart: WarmStart | None = None
    successful: str = ""
    failures: list[str] = field(default_factory=list)

    @property
    def reached_level(self) -> float:
        """Return the smallest level of a known mechanism that reaches the target; infinite without one."""
        return math.inf if self.witness is None else float(get_level(self.witness.privacy) or 0.0)

    @property
    def sign(self) -> float:
        """Return 1 where the utility is maximised, else -1."""
        return 1.0 if self.program.utility.maximised else -1.0

    def run(self) -> str:
        """Search until the level's bracket is small enough or a limit is reached; return how it ended."""
        allowed = self.program.compute_allowed_gap(self.options.tolerance)
        self._initialize_reached_level()
        if self.witness is None:
            self._double_level_until_reached()
        widths: list[float] = []
        while self.reached_level - self.short > allowed:
            if self.options.deadline.expired:
                return "the time is over"
            # Designs that one search solves at most; most need less than twenty.
            if self.designs >= 160 or self.witness is None:
                return f"{self.designs} designs were solved"
            widths.append(self.reached_level - self.short)
            # secants may creep from one side: bisection guarantees progress
            stalled = len(widths) > 3 and widths[-1] > widths[-4] / 4
            level = (
                self._choose_decidable_level()
                if self.undecided
                else self._choose_next_level(stalled)
            )
            if level is None:
                return "the gaps of the designs decide no more"
            if stalled:
                widths.clear()
            self._solve_until_decided(level)
        return "both ends meet"

    def _initialize_reached_level(self) -> None:
        """Initialize the upper end by the best constant, or by a mixture that just reaches the target."""
        program = self.program
        constant = program.constant_matrix
        best = program.best_matrix
        if constant is None or best is None:
            self._initialize_by_orbits()
            return
        rounding = 1e-13 * program.unit
        # a constant leaks nothing: if it reaches the target, the least level is found
        if self._compute_target_excess(constant) >= -rounding and self.certify_matrix(constant):
            return
        uniform = np.full(constant.shape, 1 / constant.shape[1])
        # some levels need all entries positive
        for still in (constant, (constant + uniform) / 2, uniform):
            if self._certify_mixture(still, best):
                return

    def _certify_mixture(self, still: FloatArray, best: FloatArray) -> bool:
        """Certify the mixture of a constant and the best mechanism that just reaches the target."""
        # The share of the way to the best mechanism by which the first one is beyond the target: its repair
        # may cost as much.
        aim = 1e-7 * max(0.0, self._compute_target_excess(best))
        least = find_least_share(
            lambda w: self._compute_target_excess(still + w * (best - still)) >= aim
        )
        shares = (least, (1 + least) / 2, 1.0)
        return any(self.certify_matrix(still + weight * (best - still)) for weight in shares)

    def _initialize_by_orbits(self) -> None:
        """Initialize the upper end on orbits, by a constant or a mixture that just reaches the target."""
        program = self.program.at(1.0)
        if not isinstance(program, SymmetricDesign):
            return
        columns = program.columns
        gains = program.centered_gains
        still = columns.broadcast_outputs(
            np.eye(len(columns.orbits.outputs))[int(columns.mean_by_output(gains).argmax())],
            gains.shape,
        )
        if self._certify_lifts(program, still):
            return
        sizes = np.array(columns.orbits.outputs, dtype=float)
        uniform = columns.broadcast_outputs(sizes / sizes.sum(), gains.shape)
        max_gains = columns.broadcast_letters(columns.max_by_letter(gains))
        best = columns.normalize_rows((gains >= max_gains).astype(float))

        def mix(weight: float) -> FloatArray:
            return np.asarray((1 - weight) * uniform + weight * best)

        least = find_least_share(
            lambda w: self.sign * (program.compute_value(mix(w)) - self.program.reach) >= 0
        )
        for weight in (least + 1e-7 * (1 - least), (1 + least) / 2):
            if self._certify_lifts(program, mix(weight)):
                return

    def _certify_lifts(self, program: SymmetricDesign, lifts: FloatArray) -> bool:
        """Certify orbit values at their own level, and return whether they reach the target."""
        level = round_level_up(max(0.0, *program.columns.compute_levels(lifts).values()))
        if not level < MAX_LEVEL:
            return False
        found = self.program.at(level)
        assert isinstance(found, SymmetricDesign)
        try:
            return self._keep_if_better(certify_symmetric(found, lifts, None), level)
        except MechanismError:
            return False

    def _compute_target_excess(self, matrix: FloatArray) -> float:
        """Compute by how much a matrix exceeds the utility target; -inf where it has no utility."""
        with np.errstate(all="ignore"):
            found = self.sign * (self.program.compute_utility(matrix) - self.program.reach)
        return found if not math.isnan(found) else -math.inf

    def certify_matrix(self, matrix: FloatArray) -> bool:
        """Certify a matrix at its own level, and return whether it reaches the target."""
        privacy = self.program.privacy
        try:
            level = round_level_up(max(0.0, privacy.level(self.program.prior, matrix)))
            if not level < MAX_LEVEL:
                return False
            program = self.program.at(level)
            found = find_registry(program).certify_matrix(program, matrix, None).certificate
        except PmloptError:  # no design of this level, or no mechanism that its repair keeps
            return False
        return self._keep_if_better(found, level)

    def _keep_if_better(self, certificate: Any, level: float) -> bool:
        """Keep a certificate as the upper end where it reaches the target at a smaller level."""
        if not reaches_target(certificate, self.program.reach):
            return False
        found = _restate_at_own_level(drop_bound(certificate))
        if (
            get_level(found.privacy) is None
            or (get_level(found.privacy) or 0.0) >= self.reached_level
        ):
            return True
        self.witness = found
        return True

    def _double_level_until_reached(self) -> None:
        """Double the level until a design reaches the target."""
        level = 1.0
        while self.witness is None and not self.options.deadline.expired:
            self._solve_until_decided(level)
            if level >= MAX_LEVEL:
                return
            level = min(MAX_LEVEL, 2 * level)

    def _solve_until_decided(self, level: float) -> None:
        """Solve the design at a level; with a smaller tolerance where the gap leaves it undecided."""
        target = self.program.reach
        tolerance = self.options.tolerance
        decided = False
        # The factor of the tolerance of a design that is solved again, because its gap decides neither side.
        # The smallest tolerance that a design is solved with.
        for accuracy in (tolerance, max(1e-13, 1e-3 * tolerance)):
            certificate = self._solve_design(level, accuracy)
            if certificate is None:
                break
            value = self.sign * (certificate.value - target)
            bound = self.sign * (certificate.bound - target)
            middle = value if not math.isfinite(bound) else (value + bound) / 2
            # value and bound enclose the optimum: their middle is the best estimate for a secant
            if math.isfinite(middle):
                self.points[level] = middle
            if self._keep_if_better(certificate, level):
                self.side = 1
                decided = True
                break
            if is_target_unreachable(certificate, target):
                self.short = level
                self.proof = certificate
                self.side = -1
                decided = True
                break
            if math.isfinite(bound):
                self.blur = max(self.blur, bound - value)
            if self.options.deadline.expired:
                break
        if not decided:
            low, high = self.undecided or (level, level)
            self.undecided = min(low, level), max(high, level)

    def _solve_design(self, level: float, tolerance: float) -> Any:
        """Solve the design at a level, and return its best certificate; None without one."""
        self.designs += 1
        try:
            program = self.program.at(level)
        except ProgramError as cause:  # too strict for any estimate
            self.failures.append(str(cause))
            return None
        question = find_registry(program)
        options = replace(self.options, tolerance=tolerance)
        start = question.make_start(program, self.restart, options.deadline)
        # a method that left a gap at one level mostly leaves it at the next
        methods = sorted(
            question.list_automatic(program, start), key=lambda one: one.id != self.successful
        )
        best: Certificate | None = None

        def report(method: Method[Any, Any, Any], cause: BaseException) -> None:
            self.failures.append(describe_failure(method, cause))

        for method, found in try_methods(methods, program, options, start, report):
            certificate = found.certificate
            if certificate.violation > 0 or certificate.is_beyond_bound:
                continue
            if best is None or certificate.proved_gap < best.proved_gap:
                best = certificate
            self.restart = WarmStart(method.name, found.arrays)
            if best.proved_gap <= program.compute_allowed_gap(tolerance):
                if method is not methods[0]:
                    self.successful = method.id
                break
        return best

    @property
    def _interpolates_exponentials(self) -> bool:
        """Return whether to interpolate in e^epsilon, where the optimum is concave in it."""
        return self.program.is_concave and self.reached_level < 30

    def _scale_level(self, level: float) -> float:
        """Transform a level to the variable in which the optimum is interpolated."""
        return math.expm1(level) if self._interpolates_exponentials else level

    def _unscale_level(self, number: float) -> float:
        """Invert `_scale_level`."""
        return math.log1p(max(number, 0.0)) if self._interpolates_exponentials else number

    def _choose_next_level(self, stalled: bool) -> float:
        """Choose the next level by a secant step, pushed past the root on the stalled side."""
        low = self.short
        high = self.reached_level
        middle = (low + high) / 2
        tried = sorted(self.points, key=lambda level: abs(self.points[level]))[:2]
        if stalled or len(tried) < 2:
            return middle
        (t, f), (u, g) = ((self._scale_level(level), self.points[level]) for level in tried)
        # the optimum rises with the level: a falling secant is rounding
        if t == u or (g - f) / (u - t) <= 0:
            return middle
        slope = (g - f) / (u - t)
        root = self._unscale_level(t - f / slope)
        nearest = tried[0]
        # the chain rule from the variable of the secant back to the level
        rate = slope * (math.exp(min(root, 30.0)) if self._interpolates_exponentials else 1.0)
        # The share of a step by which the next level is moved past the estimated root, so that it lands on
        # the side that was not met last: both ends then approach the root.
        hair = max(
            self.program.compute_allowed_gap(self.options.tolerance) / 4,
            0.05 * abs(root - nearest),
            2 * self.blur / rate if rate > 0 else 0.0,
        )
        level = root - self.side * hair
        if not low < level < high:
            level = root + self.side * hair
        return level if low < level < high else middle

    def _choose_decidable_level(self) -> float | None:
        """Choose a level outside the undecided interval; None where both sides are narrow."""
        assert self.undecided is not None
        low, high = self.undecided
        allowed = self.program.compute_allowed_gap(self.options.tolerance)
        below = low - self.short
        above = self.reached_level - high
        if below < 0 or above < 0:  # a later proof has passed them
            self.undecided = None
            return (self.short + self.reached_level) / 2
        if max(below, above) <= allowed / 8:
            return None
        fraction = 0.1 if max(below, above) > 100 * self._bisection_step else 0.5
        return high + fraction * above if above >= below else low - fraction * below

    @property
    def _bisection_step(self) -> float:
        """Return the bisection step: the larger of the undecided interval's width and the allowed gap."""
        assert self.undecided is not None
        return max(
            self.undecided[1] - self.undecided[0],
            self.program.compute_allowed_gap(self.options.tolerance),
        )


def _restate_at_own_level(certificate: DesignProof) -> DesignProof:
    """Restate a certificate at the smallest level that its mechanism meets exactly."""
    limit = get_level(certificate.privacy)
    # the measured level first: the certified one has an allowance for rounding
    measured = max(certificate.float_levels[0].values())
    for level in (measured, certificate.level):
        if limit is None or not 0 <= level < limit:
            continue
        found: DesignProof = replace(certificate, privacy=replace_level(certificate.privacy, level))
        if all(claim.holds for claim in found.level_claims if claim.is_exact):
            return found
    return certificate


def search_epsilon(
    program: LeastEpsilon, options: MethodOptions, _: None
) -> MethodResult[LeastEpsilonCertificate]:
    """Search the least epsilon from both sides, and certify both ends."""
    begin = time.perf_counter()
    search = EpsilonSearch(program, options)
    ending = search.run()
    witness = search.witness
    proof = search.proof
    if witness is None:
        why = f": {search.failures[-1]}" if search.failures else ""
        raise MethodError(f"no mechanism that reaches the target was found, {ending}{why}")
    if proof is not None:  # only its bound counts, which has no part in the mechanism
        proof = replace(proof, mechanism=witness.mechanism)  # type: ignore[arg-type]
    return MethodResult(
        certificate=LeastEpsilonCertificate(
            mechanism=witness.mechanism,
            value=search.reached_level,
            bound=search.short,
            reach=program.reach,
            witness=witness,
            proof=proof,
        ),
        finished=ending != "the time is over",
        message=ending,
        iterations=search.designs,
        solve_seconds=time.perf_counter() - begin,
    )


def certify_at_own_level(
    program: LeastEpsilon, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[LeastEpsilonCertificate]:
    """Certify a matrix at its own level, without a lower bound."""
    if multipliers is not None:
        raise ProgramError(
            "multipliers are of a design at one level: certify `program.at(epsilon)` with them"
        )
    search = EpsilonSearch(
        program, MethodOptions(deadline=NO_DEADLINE, tolerance=program.tolerance)
    )
    if not search.certify_matrix(matrix):
        raise InputError(f"the matrix does not reach {program.reach:.9g}, or has no finite level")
    assert search.witness is not None
    certificate = LeastEpsilonCertificate(
        mechanism=search.witness.mechanism,
        value=search.reached_level,
        bound=0.0,
        reach=program.reach,
        witness=search.witness,
        proof=None,
    )
    return MethodResult(
        certificate=certificate, finished=True, message="a matrix that was given", detail=""
    )
