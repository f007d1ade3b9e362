"""The commands about queries on many records: what an answer leaks, and designs for a distortion."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pmlopt.cli.options import (
    CLAIM_FAILS,
    NOT_SOLVED,
    TARGET,
    Arg,
    Json,
    Opt,
    Plot,
    check_targets,
    code_of,
    command,
    draw_curves,
    main,
)  # fmt: skip
from pmlopt.cli.printing import (
    echo_json,
    nats,
    number,
    print_matrix,
    print_table,
    progress,
    say,
    solved_in_turn,
    status,
)  # fmt: skip
from pmlopt.cli.reading import read_numbers
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.model.queries import Query
    from pmlopt.programs.record_leakage.certificate import RecordCertificate
    from pmlopt.programs.result import Result
    from pmlopt.programs.tradeoff.certificate import TradeoffCertificate

LEAKAGE = "leakage per record [nats]"


@dataclass(frozen=True)
class AskedQuery:
    """The query that a mechanism answers."""

    query_name: Annotated[Literal["modular-sum", "weight", "quadratic"], Opt(
        "What it answers: a sum modulo m, the weight of binary records, or sum_{i<j} x_i x_j.", "--query"
    )]  # fmt: skip
    records: Annotated[int, Opt("n, the number of records.")]
    modulus: Annotated[int | None, Opt("m of the modular sum; 2 is the parity.")] = None
    letters: Annotated[int, Opt("Letters of a record, 0 to k - 1.")] = 2

    def query(self) -> Query:
        """The query."""
        from pmlopt.model.queries import ModularSum, Quadratic, Weight

        if (self.modulus is None) == (self.query_name == "modular-sum"):
            raise InputError("--query modular-sum and --modulus belong together: give both")
        if self.modulus is not None:
            return ModularSum(self.records, self.modulus, self.letters)
        if self.letters != 2:
            raise InputError(f"--letters belongs to --query modular-sum, not to {self.query_name}")
        return Weight(self.records) if self.query_name == "weight" else Quadratic(self.records)


@command(main, "record-leakage")
def record_leakage_command(
    mechanism_file: Annotated[Path, Arg("MECHANISM")],
    asked: AskedQuery,
    entropies: Annotated[str, Opt("b in nats, or several with commas between.", "--entropy")],
    epsilon: Annotated[float | None, Opt("A claimed bound on the leakage per record, in nats.")] = None,
    solver: Annotated[
        Literal["auto", "branch-and-bound", "alternating"],
        Opt("alternating is the paper's: it finds local optima and proves nothing."),
    ] = "auto",
    tolerance: Annotated[float, Opt("Largest gap, in nats.")] = 1e-7,
    time_limit: Annotated[float | None, Opt("Seconds for each entropy.")] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Bound what MECHANISM tells of one record.

    The adversary is uncertain of the dataset by an entropy. The rows of MECHANISM are the values of the query
    in rising order, the classes of datasets that leakage-distortion writes, or all datasets in lexicographic
    order. With --epsilon, exits with 1 when a prior leaks more, and with 3 when neither is proved. Without
    it, exits with 3 where the time limit cut a search short, and with 0 otherwise, also where a gap is left.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.programs.record_leakage.program import record_leakage

    check_targets(None, plot, [mechanism_file])
    wanted = read_numbers(entropies, "--entropy")
    query, mechanism = asked.query(), Mechanism.load(mechanism_file)
    # a prior of more entropy is allowed at less: from the largest down
    order = sorted({float(b) for b in wanted}, reverse=True)
    programs = [record_leakage(query, mechanism, b) for b in order]
    bounded = progress(programs, len(programs), "bounding")
    results = solved_in_turn(bounded, solver, tolerance=tolerance, time_limit=time_limit)
    known = dict(zip(order, results, strict=True))
    found: list[Result[RecordCertificate]] = [known[b] for b in wanted]
    if plot is not None:
        points = [(result.certificate.entropy, result.bound, result.value) for result in found]
        across = "entropy of the dataset, at least [nats]"
        draw_curves(plot, points, ["proved bound", "worst prior found"], LEAKAGE, across)
    if as_json:
        echo_json([{"epsilon": epsilon, "holds": _holds(r, epsilon), **r.to_dict()} for r in found])
    else:
        _print(found, epsilon)
    if epsilon is None:
        sys.exit(NOT_SOLVED if any(map(code_of, found)) else 0)
    verdicts = [_holds(result, epsilon) for result in found]
    sys.exit(CLAIM_FAILS if False in verdicts else NOT_SOLVED if None in verdicts else 0)


@command(main, "leakage-distortion")
def leakage_distortion_command(
    asked: AskedQuery,
    entropy: Annotated[float, Opt("b in nats.")],
    distortions: Annotated[
        str | None, Opt("D, or several with commas between: minimise the leakage.", "--distortion")
    ] = None,
    leakages: Annotated[
        str | None, Opt("L in nats, or several: minimise the distortion.", "--leakage")
    ] = None,
    solver: Annotated[
        Literal["auto", "cutting-planes", "penalty"], Opt("penalty is the paper's, and proves nothing.")
    ] = "auto",
    tolerance: Annotated[float, Opt("Largest gap.")] = 1e-6,
    time_limit: Annotated[float | None, Opt("Seconds for each point.")] = None,
    output: Annotated[
        Path | None, Opt("Write the mechanism of a single point: .csv, .json or .npz.", "-o/--output", TARGET)
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Design a mechanism that answers a query.

    It leaks least of a record, or distorts least, within a limit on the other. The distortion is the expected
    |y - f(x)| for a uniform dataset. Exits with 3 where a point is not proved; with --solver penalty, which
    proves nothing, where a limit is broken.
    """
    if (distortions is None) == (leakages is None):
        raise InputError("give --distortion or --leakage, one of them")
    limits = read_numbers(distortions or leakages or "", "--distortion" if distortions else "--leakage")
    check_targets(output, plot)
    if output is not None and len(limits) > 1:
        raise InputError("-o writes one mechanism: give one limit")
    query = asked.query()
    with status("designing", as_json):
        from pmlopt.programs.tradeoff.program import distortion_leakage, leakage_distortion

        builder = leakage_distortion if distortions else distortion_leakage
        programs = [builder(query, limit, entropy) for limit in limits]
        found = solved_in_turn(programs, solver, tolerance=tolerance, time_limit=time_limit)
    if output is not None:
        found[0].save(output)
    if plot is not None:
        reached = [(result.certificate.distortion, result.certificate.leakage) for result in found]
        draw_curves(plot, reached, ["mechanism"], LEAKAGE, "expected distortion")
    if as_json:
        echo_json([result.to_dict() for result in found])
    else:
        _print_tradeoff(found)
    unproved = solver != "penalty" and any(result.status.value != "optimal" for result in found)
    sys.exit(NOT_SOLVED if unproved else max(map(code_of, found)))


def _print_tradeoff(found: Sequence[Result[TradeoffCertificate]]) -> None:
    rows = [
        (
            number(result.certificate.distortion), nats(result.certificate.leakage), number(result.bound),
            f"{result.gap:.1e}", result.status.value, f"{result.timings.total:.2f}",
        )
        for result in found
    ]  # fmt: skip
    aim = found[0].certificate.sense
    print_table(["distortion", "leaks at most", f"least {aim}", "gap", "status", "seconds"], rows)
    if len(found) == 1:
        print_matrix(found[0].mechanism)


def _holds(result: Result[RecordCertificate], epsilon: float | None) -> bool | None:
    """Whether no record leaks more than a claim; None where there is none, or neither is proved."""
    if epsilon is None:
        return None
    if result.bound <= epsilon:
        return True
    return False if result.value > epsilon else None


def _print(found: Sequence[Result[RecordCertificate]], epsilon: float | None) -> None:
    rows = [
        (
            number(result.certificate.entropy), number(result.value), nats(result.bound), f"{result.gap:.1e}",
            str(result.certificate.record), result.status.value, f"{result.timings.total:.2f}",
        )
        for result in found
    ]  # fmt: skip
    print_table(["entropy [nats]", "leaks", "at most", "gap", "record", "status", "seconds"], rows)
    for result in found if epsilon is not None else ():
        verdict = {True: "holds", False: "FAILS", None: "is not decided"}[_holds(result, epsilon)]
        say(
            f"The claim {verdict}: no record leaks more than {epsilon!r} nats at an entropy of "
            f"{number(result.certificate.entropy)} nats or more."
        )
