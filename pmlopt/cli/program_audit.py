"""Audits of programs: from counts of their traces, and from samples of their outputs."""

from __future__ import annotations

import math
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from pmlopt.cli.exits import CLAIM_FAILS, NOT_SOLVED, prints_json
from pmlopt.cli.options import refuse_options
from pmlopt.cli.printing import MAX_TABLE_COLUMNS, format_nats, print_json, print_table
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.reading import read_numbers
from pmlopt.cli.terminal import print_line
from pmlopt.core.files.csv_rows import (
    DELIMITERS,
    find_stated_delimiter,
    get_decimal_mark,
    parse_number,
    parse_rows,
    split_cells,
)
from pmlopt.core.files.disk import is_standard_stream, read_standard_input
from pmlopt.core.numbers.arrays import NUMBER_HEADERS, Label
from pmlopt.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.measures import TraceLeakage
    from pmlopt.releases.estimation.sampled_tails import SampledLeakage

VERDICTS = {
    "confirmed": (0, True, "holds"), "refuted": (CLAIM_FAILS, False, "FAILS"),
    "undecided": (NOT_SOLVED, None, "is neither shown nor refuted"),
}  # fmt: skip
"""The exit code of each verdict on a claim, whether it holds, and what is printed of it."""

OUTPUTS_ALONE = (
    "Outputs without their letters refute no claim on a program that draws: fair coins leak nothing. Give "
    "pairs and their --prior, or --deterministic if the program draws nothing."
)


@dataclass(frozen=True, kw_only=True)
class ClaimOptions:
    """The options of `audit` on what is claimed, and what else is bounded."""

    epsilon: Annotated[float | None, "The claimed bound in nats; decided in exact arithmetic."] = (
        None
    )
    envelope: Annotated[
        str | None,
        "Probabilities, with commas between: the leakage that no processing of the output exceeds but "
        "with each of them.",
    ] = None
    from_samples: Annotated[
        bool,
        "MECHANISM is a CSV of counts instead: how often each output was drawn (columns) at each letter.",
    ] = False
    confidence: Annotated[
        float | None, "With --from-samples or --samples; 0.95 where left out."
    ] = None

    @property
    def deltas(self) -> list[float]:
        """Return the probabilities of the envelope."""
        return [] if self.envelope is None else read_numbers(self.envelope, "--envelope")


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """The options of `audit` that name a program in place of a mechanism."""

    traces_file: Annotated[
        Path | None,
        "Instead of MECHANISM, a deterministic program: a table of its traces with a column count or "
        "probability. A column input holds what an attacker chooses.",
    ] = None
    samples_file: Annotated[
        Path | None,
        "Instead of MECHANISM, a black box: one output in each line, or letter,output with --prior; - for a "
        "pipe.",
    ] = None
    deterministic: Annotated[
        bool,
        "With --samples without --prior: the program draws nothing, so that rare outputs leak.",
    ] = False
    stop: Annotated[
        bool, "With --samples and --epsilon: stop reading when the claim is decided."
    ] = False
    edges: Annotated[
        str | None, "With --samples that are numbers: the edges of cells, with commas between."
    ] = None

    def check(
        self,
        mechanism_file: Path | None,
        asked: PrivacyOptions,
        wanted: ClaimOptions,
        of_matrix: bool,
    ) -> None:
        """Raise an error for options that do not go together."""
        traces, samples = self.traces_file is not None, self.samples_file is not None
        is_program, others = traces or samples, asked.is_robust or asked.privacy_name != "pml"
        no_claim = wanted.epsilon is None or not 0 <= (asked.delta or 0.0) < 1
        refuse_options(
            ((mechanism_file is not None) + traces + samples != 1,
             "give one of MECHANISM, --traces FILE and --samples FILE"),
            ((self.stop or self.edges or self.deterministic) and not samples,
             "--stop, --edges and --deterministic belong to --samples"),
            (self.deterministic and asked.input_files,
             "--deterministic is for outputs: with --prior, pairs bound every program"),
            (is_program and of_matrix, "--from-samples, --no-header, --normalise and -o belong to MECHANISM"),
            (is_program and others, "--traces and --samples are of PML for one prior: leave --privacy out"),
            (is_program and asked.delta is not None and no_claim,
             "--delta is how likely more than --epsilon may be, in [0, 1): give both"),
            (traces and (wanted.confidence is not None or asked.input_files),
             "--traces are exact, with their law: leave --confidence and --prior out"),
            (samples and wanted.envelope, "--envelope needs MECHANISM or --traces, and --samples are draws"),
            (self.stop and no_claim, "--stop stops when a claim is decided: give --epsilon, and --delta"),
        )  # fmt: skip

    def audit(self, asked: PrivacyOptions, wanted: ClaimOptions) -> NoReturn:
        """Audit the program, print what it reveals, and exit by the verdict on the claim."""
        epsilon, level, delta = wanted.epsilon, wanted.epsilon or 0.0, asked.delta or 0.0
        if self.traces_file is not None:
            programs = load_traces(self.traces_file)
            records = [_list_levels(name, one, wanted.deltas) for name, one in programs.items()]
            exact = max(one.compute_tail(level) for one in programs.values())
            lower = upper = float(exact)
            verdict = "confirmed" if exact <= Fraction(str(delta)) else "refuted"
        else:
            found = self._count_samples(asked, level, wanted.confidence or 0.95)
            levels = {"level, at least": found.min_level}
            for part in (0.1, 0.01, 0.001):
                levels[f"leakage but for {part:g}, at most"] = found.bound_quantile(part)
            head = {
                "samples": found.samples, "outcomes": len(found.outcomes), "confidence": found.confidence,
                **({} if found.prior is not None else {"deterministic": found.deterministic}),
            }  # fmt: skip
            records, (lower, upper) = [(head, levels)], found.bound_tail(level)
            verdict = found.decide_claim(level, delta)
        code, holds, words = (0, None, "") if epsilon is None else VERDICTS[verdict]
        if prints_json():
            content = [
                head | {
                    "levels": levels,
                    "levels_in_bits": {name: one / math.log(2) for name, one in levels.items()},
                }
                for head, levels in records
            ]  # fmt: skip
            tail = None if epsilon is None else {"lower": lower, "upper": upper}
            decided = {"epsilon": epsilon, "delta": asked.delta, "tail": tail, "holds": holds}
            record = (content[0] if len(content) == 1 else {"inputs": content}) | decided
            print_json("program-audit" if self.traces_file else "sample-audit", record)
            sys.exit(code)
        for head, levels in records:
            numbers = {name: value for name, value in head.items() if name != "deterministic"}
            print_line(", ".join(f"{name} {value}" for name, value in numbers.items()))
            cells = [
                format_nats(one) if one < math.inf else "not bounded" for one in levels.values()
            ]
            print_table(["", "leakage"], list(zip(levels, cells, strict=True)))
        if epsilon is not None:
            stated = f"at most {level:g} nats" + (f", but for {delta:g}," if delta else "")
            between = f"{lower:.9g}" if lower == upper else f"{lower:.9g} to {upper:.9g}"
            print_line(f"The claim of {stated} {words}.")
            print_line(f"The probability of more than {level:g} nats is {between}.")
        outputs_alone = self.samples_file is not None and not asked.input_files
        if outputs_alone and not self.deterministic:
            print_line(OUTPUTS_ALONE)
        elif verdict == "undecided" and epsilon is not None:
            print_line(
                "Draw more."
                if delta
                else "Samples bound no output that was not drawn: give --delta, "
                "the probability with which more may leak."
            )
        sys.exit(code)

    def _count_samples(
        self, asked: PrivacyOptions, epsilon: float, confidence: float
    ) -> SampledLeakage:
        """Count the samples of the file, or of a pipe until the claim is decided."""
        from pmlopt.releases.estimation import LevelAudit, leakage_from_samples

        assert self.samples_file is not None
        prior = replace(asked, delta=None).read_prior() if asked.input_files else None
        edges = None if self.edges is None else read_numbers(self.edges, "--edges")
        samples = iterate_samples(self.samples_file, prior, edges, until_decided=self.stop)
        if not self.stop:
            return leakage_from_samples(
                list(samples), prior=prior, confidence=confidence, deterministic=self.deterministic
            )
        audit = LevelAudit(
            epsilon, asked.delta or 0.0, prior, confidence, deterministic=self.deterministic
        )
        # whoever interrupts it stops it, and the bounds are valid at that time, too
        with suppress(KeyboardInterrupt):
            audit.run(samples)
        if not audit.samples:
            raise InputError(f"{self.samples_file}: has no samples: give at least one")
        return audit


def _list_levels(
    name: Label, program: TraceLeakage, deltas: list[float]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the number of traces of a program, and what it and its rarest traces reveal, in nats."""
    levels = {
        "pml": program.level, "maximal leakage": program.compute_maximal_leakage(),
        "mutual information": program.compute_mean_leakage(),
    }  # fmt: skip
    for delta in deltas:
        levels[f"after processing, but for {delta:g}"] = program.compute_envelope(delta)
    for trace, share in islice(program.law.items(), MAX_TABLE_COLUMNS):
        levels[f"trace {trace}, of probability {float(share):.9g}"] = program.compute_leakage(trace)
    return ({} if name is None else {"input": name}) | {"traces": len(program.law)}, levels


def load_traces(path: Path) -> dict[Label, TraceLeakage]:
    r"""Compute what a program reveals from a file of its traces, for each input that an attacker may choose.

    Args:
        path: a table (CSV, Parquet, Arrow, JSON Lines; `-` for standard input) with a row for each trace: the
            trace in a column or more, and a column named count or probability, in which "1/3" is a fraction.
            A column named `input` has the public input that an attacker chooses.

    Returns:
        By input, the worst first; the one input is None where there is no such column.

    Raises:
        FileFormatError: the file cannot be read, or has no column of counts.
        MechanismError: the counts are not usable, or a trace occurs twice.

    Examples:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "traces.csv"
        >>> _ = file.write_text("input,trace,count\na,fast,1\na,slow,3\nb,fast,2\nb,slow,2\n")
        >>> {name: program.compute_level("bits") for name, program in load_traces(file).items()}
        {'a': 2.0, 'b': 1.0}
    """
    from pmlopt.measures import leakage_of_counts, leakage_of_inputs
    from pmlopt.tables.reading import open_table, read_texts

    with open_table(path) as table:
        names = [name.strip().lower() for name in table.names]
        columns = dict(zip(names, read_texts(table, table.names), strict=True))
    inputs = columns.pop("input", [None])
    counted = [name for name in names if name in NUMBER_HEADERS]
    if len(counted) != 1 or len(columns) < 2:
        raise FileFormatError(
            f"{path}: has the columns {', '.join(names)}: give columns of the trace and of its numbers, "
            "which is named count or probability"
        )
    numbers = columns.pop(counted[0])
    tables: dict[Label, dict[Label, str]] = {}
    for name, count, *cells in zip(cycle(inputs), numbers, *columns.values(), strict=False):
        counts, trace = tables.setdefault(name, {}), ", ".join(cells)
        if trace in counts:
            raise FileFormatError(f"{path}: the trace {trace!r} occurs twice: add its counts up")
        counts[trace] = count
    return {None: leakage_of_counts(tables[None])} if None in tables else leakage_of_inputs(tables)


def iterate_samples(
    path: Path,
    prior: Prior | None,
    edges: list[float] | None = None,
    *,
    until_decided: bool = False,
) -> Iterator[Any]:
    """Yield the samples of a file or of standard input as they come, one of each line.

    Args:
        path: an output in each line; with a prior `letter,output`, as CSV, or with semicolons, tabs, bars or
            blanks in place of the comma. A first line that has these words only is a header.
        prior: N letters, where samples are pairs.
        edges: of the cells into which outputs that are numbers are cut.
        until_decided: whether the samples may be left before their end, at any time. Then a first output that
            may be a header comes last, if it occurs again: a fixed order, and one time more. Else an output
            that does not occur again is refused.

    Raises:
        FileFormatError: a line is no sample, or the first one may be a header; the message has its number.
    """
    unknown, occurs_again = None, False
    for number, sample in _parse_samples(path, prior, edges):
        # a word such as "answer" would count as an outcome that leaks more than all others
        if number == 1 and prior is None and edges is None:
            unknown = sample
            if until_decided:
                continue
        elif sample == unknown:
            occurs_again = True
        yield sample
    if unknown is not None and occurs_again and until_decided:
        yield unknown
    if unknown is not None and not occurs_again and not until_decided:
        raise FileFormatError(
            f"{path}: line 1, {unknown!r:.40}, occurs once and may be a header: remove it if it is one, or "
            "write the line 'output' above it if it is a sample"
        )


def _parse_samples(
    path: Path, prior: Prior | None, edges: list[float] | None
) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line and its sample; a header that says so is none."""
    from pmlopt.releases.estimation import cut_outputs

    letters = {} if prior is None else {str(label): label for label in prior.labels}
    keys = ["letter", "output"] if letters else ["output"]
    with (
        nullcontext(read_standard_input()) if is_standard_stream(path) else path.open("rb") as lines
    ):
        texts = _decode_lines(lines, path)
        head = list(islice(texts, 1))
        delimiter = find_stated_delimiter(head[0][1]) if head else None
        if delimiter is not None:
            head = list(islice(texts, 1))
        elif head and letters:
            delimiter = _find_delimiter(head[0][1], keys, letters, f"{path}: line 1")
        first = 1 if not head else head[0][0]
        for number, text in chain(head, texts):
            place = f"{path}: line {number}"
            cells: list[Any] = [text]
            if letters:
                cells = next(parse_rows([text], place, delimiter or ","), [])
            if number == first and is_header(cells, keys):
                continue
            if len(cells) != len(keys) or (letters and cells[0] not in letters):
                header = f"; a header is {','.join(keys)!r}" if number == first else ""
                raise FileFormatError(
                    f"{place}: is no sample, {','.join(keys)}: {text!r:.60}{header}"
                )
            if edges is not None:
                pointed = cells[-1].replace(get_decimal_mark(delimiter or ","), ".")
                value = parse_number(pointed, f"{place}: the output")
                if not math.isfinite(value):
                    raise FileFormatError(f"{place}: the output is {value}: give finite numbers")
                cells[-1] = cut_outputs([value], edges)[0]
            yield number - first + 1, (letters[cells[0]], cells[1]) if letters else cells[0]


def _decode_lines(lines: Iterable[bytes], path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each line and its text."""
    for number, line in enumerate(lines, start=1):
        try:
            yield number, line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise FileFormatError(f"{path}: line {number}: is no text in UTF-8") from None


def is_header(cells: Sequence[str], keys: Sequence[str]) -> bool:
    """Return whether cells are the names of columns, in capitals or quotes or not."""
    return [cell.strip(' "').lower() for cell in cells] == list(keys)


def _find_delimiter(line: str, keys: Sequence[str], letters: Container[str], place: str) -> str:
    """Find what stands between the cells of a pair in the first line of samples; else a comma.

    Raises:
        FileFormatError: two delimiters would do.
    """
    found = []
    for mark in f"{DELIMITERS} ":
        cells = next(split_cells(line, mark), [])
        if is_header(cells, keys):
            return mark
        if len(cells) == len(keys) and cells[0] in letters:
            found.append(mark)
    if len(found) > 1:
        raise FileFormatError(
            f"{place}: {line!r:.60} has {found[0]!r} and {found[1]!r}, and both may stand between letter and "
            f"output: write the line 'letter{found[0]}output' above it, or with the other one"
        )
    return found[0] if found else ","
