"""Audits of programs: from counts of their traces, and from samples of their outputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.options import CLAIM_FAILS, NOT_SOLVED, OptionNote
from pmlopt.cli.printing import MAX_TABLE_COLUMNS, format_nats, print_json, print_line, print_table
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.reading import read_numbers
from pmlopt.core.converters import finite_or_none
from pmlopt.core.files import is_standard_stream, read_standard_input
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.measures import TraceLeakage

VERDICTS = {0: "holds", CLAIM_FAILS: "FAILS", NOT_SOLVED: "is neither shown nor refuted: draw more"}
"""What is printed of a claim, by the exit code."""


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """The options of `audit` that name a program in place of a mechanism."""

    traces_file: Annotated[Path | None, OptionNote(
        "Instead of MECHANISM, a deterministic program: a table of its traces with a column count or "
        "probability. A column input holds what an attacker chooses; a column traces, how many a row stands "
        "for.", "--traces",
    )] = None  # fmt: skip
    samples_file: Annotated[Path | None, OptionNote(
        "Instead of MECHANISM, a black box: one output in each line, or letter,output with --prior; - for a "
        "pipe.", "--samples",
    )] = None  # fmt: skip
    stop: Annotated[bool, OptionNote(
        "With --samples and --epsilon: stop reading when the claim is decided."
    )] = False  # fmt: skip
    edges: Annotated[str | None, OptionNote(
        "With --samples that are numbers: the edges of cells, with commas between."
    )] = None  # fmt: skip

    def is_given(self, mechanism_file: Path | None, *, of_matrix: bool) -> bool:
        """Return whether a program is named, and raise an error for options that do not go together."""
        if (mechanism_file, self.traces_file, self.samples_file).count(None) != 2:
            raise InputError("give one of MECHANISM, --traces FILE and --samples FILE")
        if (self.stop or self.edges) and self.samples_file is None:
            raise InputError("--stop and --edges belong to --samples")
        if mechanism_file is None and of_matrix:
            raise InputError("--from-samples, --no-header, --normalise and -o belong to MECHANISM")
        return mechanism_file is None

    def audit(
        self, asked: PrivacyOptions, epsilon: float | None, deltas: str | None,
        confidence: float | None, as_json: bool,
    ) -> None:  # fmt: skip
        """Audit the program, and exit."""
        if asked.is_robust or asked.privacy_name != "pml":
            raise InputError(
                "--traces and --samples are about PML for one prior: leave --privacy out"
            )
        if asked.delta is not None and (epsilon is None or not 0 <= asked.delta < 1):
            raise InputError(
                "--delta is how likely more than --epsilon may be, in [0, 1): give both"
            )
        if self.traces_file is not None:
            if confidence is not None or asked.input_files:
                raise InputError(
                    "--traces are exact, with their law: leave --confidence and --prior out"
                )
            _audit_traces(self.traces_file, epsilon, asked.delta or 0.0, deltas, as_json)
        if deltas is not None:
            raise InputError("--envelope needs MECHANISM or --traces, and --samples are draws")
        self._audit_samples(asked, epsilon, confidence or 0.95, as_json)

    def _audit_samples(
        self, asked: PrivacyOptions, epsilon: float | None, confidence: float, as_json: bool
    ) -> None:
        """Bound what a program reveals from samples, and exit by the verdict on the claim."""
        from pmlopt.releases.estimation import LevelAudit, leakage_from_samples

        assert self.samples_file is not None
        prior = replace(asked, delta=None).read_prior() if asked.input_files else None
        edges = None if self.edges is None else read_numbers(self.edges, "--edges")
        delta, record = asked.delta or 0.0, dict[str, Any]()
        with closing(_iterate_file(self.samples_file, prior, edges is not None)) as samples:  # type: ignore[type-var]
            if self.stop:
                if epsilon is None:
                    raise InputError(
                        "--stop stops when a claim is decided: give --epsilon, and --delta"
                    )
                audit = LevelAudit(epsilon, delta, prior, confidence, edges=edges)
                code = {"confirmed": 0, "refuted": CLAIM_FAILS}.get(audit.run(samples), NOT_SOLVED)
                record = audit.to_dict()
            else:
                found = leakage_from_samples(
                    list(samples), prior=prior, confidence=confidence, edges=edges
                )
                curve = {
                    f"{d:g}": finite_or_none(found.bound_quantile(d)) for d in (0.1, 0.01, 0.001)
                }
                record = {
                    "samples": found.samples, "outcomes": len(found.outcomes), "confidence": confidence,
                    "min_level": found.min_level, "quantiles": curve,
                }  # fmt: skip
                code = 0
                if epsilon is not None:
                    lower, upper = found.bound_tail(epsilon)
                    refuted = lower > delta or (delta == 0 and found.min_level > epsilon)
                    code = CLAIM_FAILS if refuted else 0 if upper <= delta else NOT_SOLVED
                    record |= {
                        "epsilon": epsilon,
                        "delta": delta,
                        "tail": {"lower": lower, "upper": upper},
                    }
        _print_samples(record, None if epsilon is None else code, as_json)
        sys.exit(code)


def _print_samples(record: dict[str, Any], code: int | None, as_json: bool) -> None:
    """Print bounds from samples, and the verdict on a claim."""
    if as_json:
        print_json(
            "sample-audit", record | {"holds": None if code in (None, NOT_SOLVED) else code == 0}
        )
        return
    rows = [("samples", f"{record['samples']}, with {record['outcomes']} outcomes")]
    if "min_level" in record:
        rows.append(("level at least", format_nats(record["min_level"])))
    for delta, level in record.get("quantiles", {}).items():
        rows.append(
            (f"but for {delta} at most", "not bounded" if level is None else format_nats(level))
        )
    if code is not None:
        ends = "{lower:.4g} to {upper:.4g}".format(**record["tail"])
        rows.append((f"P(more than {record['epsilon']:g} nats)", ends))
        rows.append((f"that it is at most {record['delta']:g}", VERDICTS[code]))
    print_table(["", f"each with confidence {record['confidence']:g}"], rows)


def _audit_traces(
    path: Path, epsilon: float | None, delta: float, deltas: str | None, as_json: bool
) -> None:
    """Print what a program reveals, from counts of its traces, and exit by the verdict on the claim."""
    from pmlopt.measures import TraceLeakage
    from pmlopt.releases.estimation.trace_files import load_traces

    found = load_traces(path)
    wanted = [] if deltas is None else read_numbers(deltas, "--envelope")
    programs = [("", found)] if isinstance(found, TraceLeakage) else [
        (str(name), found.programs[name]) for name, _ in found.rank_inputs()
    ]  # fmt: skip
    tail = None if epsilon is None else max(one.compute_tail(epsilon) for _, one in programs)
    holds = None if tail is None else tail <= Fraction(str(delta))
    if as_json:
        records = [_describe_program(name, one, wanted) for name, one in programs]
        own = records[0] if isinstance(found, TraceLeakage) else {"inputs": records}
        ends = None if tail is None else {"lower": float(tail), "upper": float(tail)}
        print_json(
            "program-audit",
            {**own, "epsilon": epsilon, "delta": delta, "tail": ends, "holds": holds},
        )
    else:
        for name, one in programs:
            print_line(f"{path.name}{name and f', input {name}'}: {one.traces} traces")
            measures = _list_measures(one, wanted).items()
            print_table(
                ["measure", "leakage"], [(key, format_nats(of["nats"])) for key, of in measures]
            )
        rows = [
            (str(one.trace), f"{float(one.probability):.9g}", format_nats(one.compute_leakage()))
            for one in programs[0][1].classes[:MAX_TABLE_COLUMNS]
        ]
        print_table(["trace", "probability", "leakage"], rows)
        if tail is not None:
            verdict = VERDICTS[0 if holds else CLAIM_FAILS]
            print_line(
                f"More than {epsilon:g} nats have a probability of {float(tail):.9g}: the claim of at most "
                f"{delta:g} {verdict}."
            )
    sys.exit(CLAIM_FAILS if holds is False else 0)


def _describe_program(name: str, program: TraceLeakage, deltas: list[float]) -> dict[str, Any]:
    """Describe what a program reveals as plain data, in nats and in bits."""
    measures = _list_measures(program, [])
    bounds = {delta: program.compute_envelope(delta, "nats") for delta in deltas}
    return {
        "input": name,
        "traces": program.traces,
        "level": program.level,
        "levels": {key: of["nats"] for key, of in measures.items()},
        "levels_in_bits": {key: of["bits"] for key, of in measures.items()},
        "envelope": [
            {"delta": delta, "value": bound, "bound": bound, "status": "optimal"}
            for delta, bound in bounds.items()
        ],
    }


def _list_measures(program: TraceLeakage, deltas: list[float]) -> dict[str, dict[str, float]]:
    """Return the measures of a program in nats and bits."""
    measures = {
        "pml": program.compute_level, "maximal leakage": program.compute_maximal_leakage,
        "mutual information": program.compute_mean_leakage,
    }  # fmt: skip
    found = {name: {"nats": of("nats"), "bits": of("bits")} for name, of in measures.items()}
    for delta in deltas:
        ends = {unit: program.compute_envelope(delta, unit) for unit in ("nats", "bits")}
        found[f"after processing, but for {delta:g}"] = ends
    return found


def _iterate_file(path: Path, prior: Prior | None, as_numbers: bool) -> Iterator[Any]:
    """Yield the samples of a file or of standard input as they come."""
    from pmlopt.releases.estimation.trace_files import iterate_samples

    standard = is_standard_stream(path)
    with nullcontext(read_standard_input()) if standard else path.open("rb") as lines:
        yield from iterate_samples(lines, path, prior, as_numbers=as_numbers)
