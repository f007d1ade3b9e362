"""Audits of programs: from counts of their traces, and from samples of their outputs."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.options import CLAIM_FAILS, NOT_SOLVED, OptionNote
from pmlopt.cli.printing import (
    MAX_TABLE_COLUMNS,
    format_nats,
    format_number,
    print_json,
    print_line,
    print_table,
)
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.reading import read_numbers
from pmlopt.core.files import is_standard_stream, read_standard_input
from pmlopt.errors import InputError
from pmlopt.programs.certificate import finite_or_none

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.measures import TraceLeakage
    from pmlopt.releases.estimation import SampledLeakage

WORDS = {True: "holds", False: "FAILS", None: "is neither shown nor refuted: draw more"}
"""What is printed of a claim."""


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """The options of `audit` that name a program in place of a mechanism."""

    traces_file: Annotated[Path | None, OptionNote(
        "Instead of MECHANISM, a deterministic program: a table of its traces with a column count or "
        "probability. A column input holds what an attacker chooses; a column traces, how many a row stands "
        "for.",
        "--traces",
    )] = None  # fmt: skip
    samples_file: Annotated[Path | None, OptionNote(
        "Instead of MECHANISM, a black box: one output in each line, or letter,output with --prior; - for a "
        "pipe.",
        "--samples",
    )] = None  # fmt: skip
    stop: Annotated[bool, OptionNote(
        "With --samples and --epsilon: stop reading when the claim is decided."
    )] = False  # fmt: skip
    edges: Annotated[str | None, OptionNote(
        "With --samples that are numbers: the edges of cells, with commas between."
    )] = None  # fmt: skip

    def is_given(self, mechanism_file: Path | None, *, of_matrix: bool) -> bool:
        """Return whether a program is named, and raise an error for options that do not go together."""
        sources = (mechanism_file, self.traces_file, self.samples_file)
        if sources.count(None) != 2:
            raise InputError("give one of MECHANISM, --traces FILE and --samples FILE")
        if (self.stop or self.edges) and self.samples_file is None:
            raise InputError("--stop and --edges belong to --samples")
        if mechanism_file is None and of_matrix:
            raise InputError(
                "--from-samples, --no-header, --normalise and -o belong to MECHANISM: leave them out"
            )
        return mechanism_file is None

    def audit(
        self,
        asked: PrivacyOptions,
        epsilon: float | None,
        deltas: str | None,
        confidence: float | None,
        as_json: bool,
    ) -> None:
        """Audit the program, and exit."""
        _check_claim(asked, epsilon)
        if self.traces_file is not None:
            if confidence is not None:
                raise InputError("--confidence belongs to --samples: --traces are exact")
            audit_traces(self.traces_file, asked, epsilon, deltas, as_json)
        elif self.samples_file is not None:
            if deltas is not None:
                raise InputError("--envelope needs MECHANISM or --traces, and --samples are draws")
            share = 0.95 if confidence is None else confidence
            audit_outputs(self.samples_file, asked, epsilon, share, self.edges, self.stop, as_json)


def audit_traces(
    path: Path, asked: PrivacyOptions, epsilon: float | None, deltas: str | None, as_json: bool
) -> None:
    """Print what a program reveals, from counts of its traces; exit with 1 where a claim fails."""
    from pmlopt.measures import TraceLeakage
    from pmlopt.releases.estimation.trace_files import load_traces

    if asked.input_files:
        raise InputError(
            "--traces has the law of the traces in it: leave out --prior, --counts and --about"
        )
    found = load_traces(path)
    programs = {None: found} if isinstance(found, TraceLeakage) else dict(found.programs)
    wanted = [] if deltas is None else read_numbers(deltas, "--envelope")
    tails = {} if epsilon is None else {
        name: program.compute_tail(epsilon) for name, program in programs.items()
    }  # fmt: skip
    worst = max(tails, key=lambda name: tails[name], default=None)
    holds = None if epsilon is None else tails[worst] <= Fraction(str(asked.delta or 0))
    if as_json:
        records = [
            {**({} if name is None else {"input": name}), **_describe(program, wanted),
             **({"tail": float(tails[name])} if tails else {})}
            for name, program in programs.items()
        ]  # fmt: skip
        own = records[0] if isinstance(found, TraceLeakage) else {"inputs": records}
        claim = {"epsilon": epsilon, "delta": asked.delta or 0.0, "holds": holds}
        print_json({**own, **claim})
    else:
        if isinstance(found, TraceLeakage):
            _print_program(path, found, wanted)
        else:
            print_table(
                ["input", "traces", "level", "mean"],
                [
                    (str(name), str(programs[name].traces), format_nats(level),
                     format_nats(programs[name].compute_mean_leakage()))
                    for name, level in found.rank_inputs()
                ],
            )  # fmt: skip
        if epsilon is not None:
            of_input = "" if worst is None else f" of the input {worst}"
            print_line(
                f"The probability of more than {epsilon:g} nats{of_input} is "
                f"{format_number(float(tails[worst]))}: the claim of at most {asked.delta or 0.0:g} "
                f"{WORDS[holds]}."
            )
    sys.exit(CLAIM_FAILS if holds is False else 0)


def _describe(program: TraceLeakage, deltas: list[float]) -> dict[str, Any]:
    """Describe what a program reveals as plain data."""
    curve = [
        {"delta": delta, "nats": program.compute_envelope(delta),
         "bits": program.compute_envelope(delta, "bits")}
        for delta in deltas
    ]  # fmt: skip
    return {**program.to_dict(), "envelope": curve}


def _print_program(path: Path, program: TraceLeakage, deltas: list[float]) -> None:
    """Print the measures of a program, and its most revealing traces."""
    rows = [
        ("level", program.level),
        ("maximal leakage", program.maximal_leakage),
        ("min-entropy leakage, uniform secrets", program.min_entropy_leakage),
        ("mean (mutual information)", program.compute_mean_leakage()),
        *((f"after processing, but for {delta:g}", program.compute_envelope(delta)) for delta in deltas),
    ]  # fmt: skip
    print_line(f"{path.name}: {program.traces} traces")
    print_table(["measure", "leakage"], [(name, format_nats(level)) for name, level in rows])
    print_table(
        ["trace", "probability", "leakage"],
        [
            (str(one.trace), format_number(float(one.probability)), format_nats(one.compute_leakage()))
            for one in program.classes[:MAX_TABLE_COLUMNS]
        ],
    )  # fmt: skip


def audit_outputs(
    path: Path,
    asked: PrivacyOptions,
    epsilon: float | None,
    confidence: float,
    edges: str | None,
    stops: bool,
    as_json: bool,
) -> None:
    """Bound what a program reveals from samples; exit with 1 where a claim is refuted, 3 where it is open."""
    from pmlopt.releases.estimation import leakage_from_samples

    prior = replace(asked, delta=None).read_prior() if asked.input_files else None
    cells = None if edges is None else read_numbers(edges, "--edges")
    with closing(_iterate_file(path, prior, cells is not None)) as samples:
        if stops:
            _audit_stream(samples, prior, epsilon, asked.delta or 0.0, confidence, cells, as_json)
        found = leakage_from_samples(list(samples), prior=prior, confidence=confidence, edges=cells)
    claim = {} if epsilon is None else _decide_claim(found, epsilon, asked.delta or 0.0)
    quantiles = {delta: found.bound_quantile(delta) for delta in (0.1, 0.01, 0.001)}
    if as_json:
        curve = [
            {"delta": delta, "nats": finite_or_none(level)} for delta, level in quantiles.items()
        ]
        print_json({**found.to_dict(), "quantiles": curve, **claim})
    else:
        rows = [
            ("samples", f"{found.samples}, with {len(found.outcomes)} outcomes"),
            ("level at least", format_nats(found.min_level)),
            *((f"but for {delta:g} at most", format_nats(level)) for delta, level in quantiles.items()),
        ]  # fmt: skip
        if claim:
            ends = "{lower:.4g} to {upper:.4g}".format(**claim["tail"])
            rows.append((f"P(more than {epsilon:g} nats)", ends))
            rows.append((f"the claim of {claim['delta']:g}", WORDS[claim["holds"]]))
        print_table([path.name, f"each with confidence {confidence:g}"], rows)
    if claim and claim["holds"] is not True:
        sys.exit(NOT_SOLVED if claim["holds"] is None else CLAIM_FAILS)


def _decide_claim(found: SampledLeakage, epsilon: float, delta: float) -> dict[str, Any]:
    """Decide the claim `P(l(Y) > epsilon) <= delta` by bounds from a sample."""
    lower, upper = found.bound_tail(epsilon)
    refuted = lower > delta or (delta == 0 and found.min_level > epsilon)
    holds = False if refuted else True if upper <= delta else None
    return {
        "epsilon": epsilon,
        "delta": delta,
        "tail": {"lower": lower, "upper": upper},
        "holds": holds,
    }


def _audit_stream(
    samples: Iterator[Any],
    prior: Prior | None,
    epsilon: float | None,
    delta: float,
    confidence: float,
    edges: list[float] | None,
    as_json: bool,
) -> None:
    """Read samples until a claim is decided, print the verdict, and exit."""
    from pmlopt.releases.estimation import LevelAudit

    if epsilon is None:
        raise InputError("--stop stops when a claim is decided: give --epsilon, and --delta")
    audit = LevelAudit(epsilon, delta, prior, confidence, edges=edges)
    verdict = audit.run(samples)
    if as_json:
        print_json(audit.to_dict())
    else:
        lower, upper = audit.tail_bounds
        print_table(["claim", f"P(more than {epsilon:g} nats) is at most {delta:g}"], [
            ("verdict", verdict), ("samples", str(audit.samples)),
            ("probability", f"{lower:.4g} to {upper:.4g}"), ("confidence", f"{confidence:g}, at any stop"),
        ])  # fmt: skip
    sys.exit({"confirmed": 0, "refuted": CLAIM_FAILS, "undecided": NOT_SOLVED}[verdict])


def _iterate_file(path: Path, prior: Prior | None, as_numbers: bool) -> Generator[Any]:
    """Yield the samples of a file or of standard input as they come."""
    from pmlopt.releases.estimation.trace_files import iterate_samples

    standard = is_standard_stream(path)
    with nullcontext(read_standard_input()) if standard else path.open("rb") as lines:
        yield from iterate_samples(lines, path, prior, as_numbers=as_numbers)


def _check_claim(asked: PrivacyOptions, epsilon: float | None) -> None:
    """Raise an error for options that do not go with programs."""
    if asked.is_robust or asked.privacy_name != "pml":
        raise InputError(
            "--traces and --samples are about PML for one prior: leave --privacy, --radius and "
            "--confidence-delta out"
        )
    if asked.delta is not None and epsilon is None:
        raise InputError("--delta is how likely more than --epsilon may be: give both")
    if asked.delta is not None and not 0 <= asked.delta < 1:
        raise InputError(f"--delta is {asked.delta:g}: give a probability in [0, 1)")
