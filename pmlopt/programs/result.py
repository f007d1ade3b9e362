"""The result of `solve`: certificate, status, method details and warm start."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic

import numpy as np

from pmlopt.core.display import format_facts_html, pluralize
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import ADDED_LATER, finite_or_none, have_equal_content
from pmlopt.core.suggestions import SuggestsAttributes
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.symmetry.orbit_mechanism import OrbitMechanism
from pmlopt.errors import InputError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.certificate import (
    C_co,
    Certificate,
    ClosedForm,
    DesignCertificate,
    Status,
    Timings,
    Verdict,
    WarmStart,
    make_context,
)
from pmlopt.programs.program import Method, MethodResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pmlopt.measures.estimable import Estimable
    from pmlopt.measures.outcomes import OutcomeSummary
    from pmlopt.programs.proofs.folder import WrittenProof
    from pmlopt.programs.reports.baselines import UtilityBaselines


@light_dataclass(frozen=True)
class ResultRecord:
    """The fields that a result's file stores in addition to the mechanism.

    Attributes:
        status: how the solve ended.
        value, bound, gap, level: those of the certificate; None where they are infinite.
        prior: what the claim is about; None where there is none, or where the mechanism has it.
        certificate: what is claimed, with its proof.
        solver, reason, attempts, iterations, warm_started, timings: how it was found, which proves nothing.
        closed_form: the optimum by formula, where one is known.
        solver_options: those that a person gave to the solver.
    """

    status: Status
    value: float | None
    bound: float | None
    gap: float | None
    level: float | None
    prior: Prior | None
    certificate: Certificate
    solver: str
    reason: str
    attempts: tuple[str, ...]
    iterations: int | None
    warm_started: bool
    closed_form: ClosedForm | None
    timings: Timings
    solver_options: Annotated[Mapping[str, Any], ADDED_LATER] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Result(SuggestsAttributes, Generic[C_co]):
    """The result of a solve, with its certificate.

    Attributes:
        status: OPTIMAL where the certified gap is within tolerance.
        certificate: what is claimed, recomputed from the matrix.
        solver: the method that found it.
        reason: why it was chosen, and how it ended.
        attempts: one line for each method tried before it, with what went wrong.
        iterations: the method's own count, where it gives one.
        warm_started: whether it started from a known mechanism.
        timings: seconds.
        closed_form: the optimum by formula, where one is known.
        restart: a warm start for the next program of its kind.
        solver_options: those that a person gave to the solver.
        method: the id of the row in the table of methods; empty where the result was read from a file.
    """

    ATTRIBUTE_HINTS: ClassVar[Mapping[str, str]] = {
        "verify": ".certificate.verify()", "load": "pmlopt.load(path)", "prior": ".certificate.prior",
        "sample": ".mechanism.sample(values)", "apply": ".mechanism.sample(values)", "x": ".matrix",
        "utility": ".value", "objective": ".value", "epsilon": ".level", "leakage": ".level", "pml": ".level",
        "optimal": ".status", "to_csv": ".mechanism.save('mechanism.csv')", "time": ".timings.total",
        "posterior": ".mechanism.posterior(prior)", "to_pandas": ".mechanism.to_pandas()",
    }  # fmt: skip

    status: Status
    certificate: C_co
    solver: str
    reason: str
    attempts: tuple[str, ...]
    iterations: int | None
    warm_started: bool
    timings: Timings
    closed_form: ClosedForm | None
    restart: WarmStart = field(repr=False)
    solver_options: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""

    @property
    def mechanism(self) -> Mechanism:
        """Return the mechanism; a designed one satisfies its requirement exactly."""
        return self.certificate.mechanism

    @cached_property
    def estimable(self) -> Estimable:
        """Return which statistics the output can estimate: rank, and outputs that never occur."""
        from pmlopt.measures.estimable import estimable

        return estimable(self.mechanism)

    @property
    def value(self) -> float:
        """Return the optimized objective value, recomputed: a utility, or a leakage in nats."""
        return self.certificate.value

    @property
    def bound(self) -> float:
        """Return the proved bound on the objective of every feasible mechanism."""
        return self.certificate.bound

    @property
    def gap(self) -> float:
        """Return the absolute gap between value and bound; negative where the value passes the bound."""
        return self.certificate.gap

    @property
    def level(self) -> float:
        """Return the mechanism's leakage level, recomputed from its matrix, in nats.

        What is proved of it is the `statement` of the certificate.
        """
        return self.certificate.level

    @property
    def matrix(self) -> FloatArray:
        """Return the (N, M) matrix of the mechanism."""
        return self.mechanism.matrix

    @cached_property
    def outcome_summaries(self) -> tuple[OutcomeSummary, ...]:
        """Return a leakage summary of each outcome, by descending leakage; empty without a listed prior."""
        prior = self.certificate.listed_prior
        mechanism = self.mechanism
        if not isinstance(prior, Prior) or isinstance(mechanism, OrbitMechanism):
            return ()
        if prior.size != len(mechanism.inputs):
            return ()
        from pmlopt.measures.outcomes import summarize_outcomes

        return tuple(summarize_outcomes(prior, mechanism))

    def summary(self) -> str:
        """Summarize in sentences the guarantee, and what the most revealing outcomes reveal.

        Warnings follow: of outcomes that exclude values, and of frequencies that the output does not
        determine.

        Examples:
            >>> from pmlopt import PML, design, solve
            >>> worth, told = solve(design([0.5, 0.5], PML(0.2), "hamming")).summary().splitlines()[1:3]
            >>> print(worth)
            expected loss: this mechanism 0.3893, releasing nothing 0.5, releasing everything 0
            >>> print(told)
            If the output is 0, the true value is 0 with probability 0.6107; before it was 0.5.
        """
        from pmlopt.measures.estimable import rank_warnings
        from pmlopt.measures.outcomes import list_outcome_warnings, select_shown_outcomes

        sentences = [str(one) for one in select_shown_outcomes(self.outcome_summaries)]
        if left := len(self.outcome_summaries) - len(sentences):
            sentences.append(
                f"{pluralize(left, 'more outcome')} reveal{'s' * (left == 1)} no more."
            )
        baselines = [] if self.baselines is None else [str(self.baselines)]
        warnings = [*list_outcome_warnings(self.outcome_summaries)]
        if self.baselines is not None:
            warnings += [f"Warning: {line}." for line in rank_warnings(self.mechanism)]
        return "\n".join([str(self), *baselines, *sentences, *warnings])

    @cached_property
    def baselines(self) -> UtilityBaselines | None:
        """Return the utility of the design and of the baselines: no release and full release.

        None for other results, and for mechanisms of more than 10,000 entries.
        """
        certificate = self.certificate
        mechanism = self.mechanism
        if isinstance(mechanism, OrbitMechanism) or not isinstance(certificate, DesignCertificate):
            return None
        from pmlopt.programs.reports.baselines import compute_baselines

        return compute_baselines(certificate) if mechanism.matrix.size <= 10_000 else None

    def __str__(self) -> str:
        """Return one line: status, value with gap, leakage claim and method."""
        return (
            f"{self.status.value}: value {self.value:.9g}, gap {self.gap:.1e}; {self.certificate.statement}; "
            f"{self.solver}"
        )

    def __eq__(self, other: object) -> bool:
        """Return whether two results have the same in their files, which leave out the warm start."""
        if not isinstance(other, Result):
            return NotImplemented
        own = self.to_record
        their = other.to_record
        return all(
            have_equal_content(getattr(own, one.name), getattr(their, one.name))
            for one in fields(ResultRecord)
        )

    def __hash__(self) -> int:
        return hash((self.status, self.solver, self.certificate))

    def __repr__(self) -> str:
        return f"<Result {self}>"

    def _repr_html_(self) -> str:
        """Return the claim and the matrix as a notebook shows them."""
        found_by = {"solver": f"{self.solver}, {self.timings.total:.2f} s", "reason": self.reason}
        facts = self.certificate.facts | found_by
        return (
            format_facts_html(f"Result: {self.status.value}", facts) + self.mechanism._repr_html_()
        )

    def plot(self) -> Figure:
        """Plot the mechanism as a heat map, with the leakage of each output for a design.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        prior = self.certificate.listed_prior
        if prior is None or prior.size != len(self.mechanism.inputs):
            return self.mechanism.plot()
        from pmlopt.programs.plots import draw_mechanism

        return draw_mechanism(prior, self.mechanism)

    @property
    def to_record(self) -> ResultRecord:
        """Collect the fields that a file stores in addition to the mechanism."""
        found: dict[str, Any] = {"prior": self.certificate.listed_prior}
        for name in ("value", "bound", "gap", "level"):
            found[name] = finite_or_none(getattr(self.certificate, name))
        for one in fields(ResultRecord):
            if one.name not in found:
                found[one.name] = getattr(self, one.name)
        return ResultRecord(**found)

    def _to_metadata(self, *, keeps_matrices: bool = False) -> dict[str, Any]:
        """Serialize the fields that a file stores in addition to the mechanism."""
        from pmlopt.core.records.converters import to_plain

        record = self.to_record
        context = make_context(self.mechanism, record.prior)
        found: dict[str, Any] = to_plain(record, replace(context, keeps_matrices=keeps_matrices))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Serialize the result to plain data, as printed by `--json`."""
        return {"mechanism": self.mechanism.record, **self._to_metadata()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save mechanism, certificate and solver record (JSON, NPZ), or the mechanism only (CSV)."""
        self.mechanism.save(path, self._to_metadata(keeps_matrices=True))

    def export(
        self,
        path: str | os.PathLike[str],
        language: str | None = None,
        *,
        bits: int | None = None,
        name: str = "",
        max_level: float | None = None,
    ) -> None:
        """Write the mechanism as source code in another language, with what is claimed of it on top.

        See `Mechanism.export`. Where bits change the matrix, the file states the levels of what is drawn by
        the requirement, computed again.

        Args:
            path: of the file.
            language: as of `Mechanism.export`.
            bits: of a draw.
            name: what distinguishes its functions from those of another mechanism in one program.
            max_level: the largest level of the requirement that a rounded matrix may have, in nats.

        Raises:
            InputError: the mechanism is by orbits, which no list of rows holds, the language is not known, or
                a level of what is drawn is above the largest one.
        """
        from pmlopt.data.samplers.export import choose_bits

        if not isinstance(self.mechanism, Mechanism):
            raise InputError(
                "a mechanism by orbits has too many letters to be listed as source code"
            )
        bits = choose_bits(language, bits)
        if max_level is not None:
            self._check_drawn_levels(bits, max_level)
        self.mechanism.export(
            path, language, bits=bits, name=name, statement=self.describe_draws(bits)
        )

    def _round_draws(self, bits: int | None) -> Mechanism:
        """Return the law of a sampler's draws of so many bits; the mechanism where it is the same."""
        from pmlopt.data.samplers.table import SamplerTable

        assert isinstance(self.mechanism, Mechanism)
        matrix = SamplerTable.from_mechanism(self.mechanism, bits).to_matrix()
        if np.array_equal(matrix, self.mechanism.matrix):
            return self.mechanism
        return Mechanism(matrix, self.mechanism.inputs, self.mechanism.outputs)

    def _compute_drawn_levels(self, drawn: Mechanism) -> dict[str, float]:
        """Compute the levels of drawn outcomes by the requirement; of PML where the certificate has none."""
        from pmlopt.measures.leakage import leakage_level

        privacy: Requirement | None = getattr(self.certificate, "privacy", None)
        prior = self.certificate.listed_prior
        if prior is None:
            return {}
        if privacy is None:
            return {"pml": leakage_level(prior, drawn)}
        return privacy.levels(prior, drawn)

    def _check_drawn_levels(self, bits: int | None, max_level: float) -> None:
        """Raise an error for draws with a level above the largest one that is allowed."""
        levels = self._compute_drawn_levels(self._round_draws(bits))
        if not levels:
            raise InputError(
                "the level of what is drawn is not known without a prior: leave out max_level"
            )
        highest = max(levels, key=levels.__getitem__)
        # negated, so that nan counts as above
        if not levels[highest] <= max_level:
            raise InputError(
                f"the draws have the level {highest} of {levels[highest]!r} nats, above the largest one "
                f"that is allowed, {max_level!r}: use more bits, or design for a lower level"
            )

    def describe_draws(self, bits: int | None) -> list[str]:
        """Return sentences on what is claimed of a sampler's draws of so many bits."""
        claim = self.certificate.statement
        exact = [f"Requirement: {claim}.", f"Leakage level: {self.level!r} nats."]
        if bits is None or (drawn := self._round_draws(bits)) is self.mechanism:
            return exact
        levels = self._compute_drawn_levels(drawn)
        stated = ", ".join(f"{name} {level!r} nats" for name, level in levels.items())
        return [
            f"Rounded to {bits} bits. Requirement before: {claim}; it is not proved after rounding.",
            f"Levels after rounding, computed again: {stated or 'not known'}.",
        ]

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a report page on the guarantee and how to verify it.

        Args:
            path: where to write: .html, or .md for Markdown.

        Raises:
            FileFormatError: a claim is false, or the path has another ending or cannot be written.
        """
        from pmlopt.programs.reports.pages import write_report_page

        write_report_page(self.certificate, Verdict.from_certificate(self.certificate), path)

    def prove(self, folder: str | os.PathLike[str]) -> WrittenProof:
        """Write the proof of the claims into a new folder, for checkers of others.

        It has certificates in the format VIPR, the linear programs as MPS files, and a README.

        Args:
            folder: that does not exist yet.

        Raises:
            ProgramError: the claims are about no linear program on listed letters.
            FileFormatError: the folder exists, or cannot be written.

        Examples:
            >>> import pathlib, tempfile
            >>> from pmlopt import PML, design, solve
            >>> result = solve(design([0.5, 0.5], PML(0.2), "hamming"))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     found = result.prove(pathlib.Path(folder) / "proof")
            ...     sorted(path.name for path in found.folder.iterdir())
            ['README.md', 'feasibility.mps', 'feasibility.vipr', 'optimum.mps', 'optimum.vipr']
        """
        from pmlopt.programs.proofs.folder import write_proof

        return write_proof(self.certificate, folder)


def make_result(
    found: MethodResult[C_co],
    method: Method[Any, Any, Any],
    status: Status,
    attempts: Sequence[str],
    seconds: float,
    solver_options: Mapping[str, Any] | None = None,
) -> Result[C_co]:
    """Return the result of a program from that of a method."""
    detail = found.message if found.detail is None else found.detail
    return Result(
        status=status,
        certificate=found.certificate,
        solver=method.name,
        method=method.id,
        reason=f"{method.reason}: {detail}" if detail else method.reason,
        attempts=tuple(attempts),
        iterations=found.iterations,
        warm_started=found.warm_started,
        timings=Timings(
            compile=found.compile_seconds,
            solve=found.solve_seconds,
            certify=found.certify_seconds,
            total=seconds,
        ),
        closed_form=found.closed_form,
        restart=WarmStart(method.name, found.arrays),
        solver_options=solver_options or {},
    )
