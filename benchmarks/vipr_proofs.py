"""Random results of every linear kind, proved for checkers of others, and the proofs with one number changed.

Designs, least leakages, worst cases and envelopes on 4 to 40 letters, some as rare as 1e-9. Each certificate
is given to the checker of `tests/oracles/vipr.py`, and to one that is named, such as `viprchk`; each once
more with one number changed, a coefficient, an entry, a multiplier or a bound, in its twelfth digit or sign.
Every proof must be accepted, every changed one refused, and the proved interval at most 1e-9 of the range of
the utility wide (of a level, 1e-9 nats).

    python benchmarks/vipr_proofs.py [--results 400] [--letters 4 40] [--checker viprchk] [--seed 61]
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import table, write_csv
from fuzzing.random_proofs import KINDS, tamper
from oracles.vipr import Certificate, RefusalError

from pmlopt.core.display import get_figure_class
from pmlopt.errors import PmloptError
from pmlopt.programs.certificate import Certificate as PmloptCertificate
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.proofs.folder import WrittenProof, write_proof
from pmlopt.verification.vipr_checkers import run_checker

WIDEST = 1e-9
HEAD = (
    "kind", "number", "letters", "files", "accepted", "changed", "refused", "width", "sharp", "solve [s]",
    "prove [s]",
)  # fmt: skip


@dataclass
class Judge:
    """The checkers that are tried on each certificate."""

    checker: str | None

    def accepts(self, path: Path) -> bool:
        """Whether a certificate is accepted; raises where two checkers differ."""
        try:
            own = bool(Certificate(path.read_text("utf-8")).statement)
        except RefusalError:
            own = False
        if self.checker is not None:
            other = run_checker(self.checker, path)[0].accepts
            if other != own:
                raise AssertionError(f"{self.checker} and the oracle differ on {path}")
        return own


def width_of(certificate: PmloptCertificate, proof: WrittenProof) -> float | None:
    """The proved interval, over the range of the utility; None where only one side is proved."""
    if proof.bound is not None and isinstance(certificate, LinearCertificate):
        table_of = certificate.table
        scale = float(certificate.prior.pmf @ (table_of.max(axis=1) - table_of.min(axis=1)))
        return abs(float(proof.bound - proof.value)) / scale
    if len(proof.levels) == 2:
        return abs(proof.levels[0] - proof.levels[1])
    return None if proof.bound is None else abs(float(proof.bound - proof.value))


def study(
    kind: str, seed: Sequence[int], letters: Sequence[int], judge: Judge
) -> dict[str, Any] | None:
    """Prove one random result, and judge its certificates and their changed copies."""
    rng = np.random.default_rng([seed[0], sorted(KINDS).index(kind), seed[1]])
    n = round(math.exp(rng.uniform(math.log(letters[0]), math.log(letters[1]))))
    begin = time.process_time()
    try:
        result = KINDS[kind](rng, n)
    except PmloptError:  # no mechanism meets what was drawn
        return None
    solved = time.process_time()
    with tempfile.TemporaryDirectory() as place:
        proof = write_proof(result.certificate, Path(place) / "proof")
        proved = time.process_time()
        found = list(judge_files(proof.folder, rng, judge))
    width = width_of(result.certificate, proof)
    return {
        "kind": kind, "number": seed[1], "letters": n, "files": len(found),
        "accepted": sum(own for own, _ in found), "changed": len(found),
        "refused": sum(not other for _, other in found),
        "width": "" if width is None else f"{width:.2g}", "sharp": width is None or width <= WIDEST,
        "solve [s]": round(solved - begin, 2), "prove [s]": round(proved - solved, 2),
    }  # fmt: skip


def judge_files(
    folder: Path, rng: np.random.Generator, judge: Judge
) -> Iterator[tuple[bool, bool]]:
    """Whether each certificate is accepted, and whether its changed copy is."""
    for path in sorted(folder.glob("*.vipr")):
        text, _ = tamper(path.read_text("utf-8"), rng)
        other = folder / "changed"
        other.write_text(text, "utf-8")
        yield judge.accepts(path), judge.accepts(other)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study, and write its table and plot; 1 where a proof is refused, wide, or wrongly accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    parser.add_argument("--results", type=int, default=400)
    parser.add_argument("--letters", type=int, nargs=2, default=(4, 40))
    parser.add_argument("--checker", help="the command of another checker, such as viprchk")
    parser.add_argument("--seed", type=int, default=61)
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=sorted(KINDS))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(argv)
    results, letters = (len(KINDS), (4, 6)) if options.quick else (options.results, options.letters)
    options.out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    number, judge = 0, Judge(options.checker)
    while len(rows) < results:
        for kind in options.kinds:
            seed = options.seed, number
            row = study(kind, seed, letters, judge) if len(rows) < results else None
            if row is not None:
                rows.append(row)
                print(row, flush=True)
        number += 1
    cells = [[row[name] for name in HEAD] for row in rows]
    write_csv(options.out / "vipr_proofs.csv", HEAD, cells)
    totals = {
        name: sum(int(row[name]) for row in rows)
        for name in ("files", "accepted", "changed", "refused")
    }
    widths = [float(row["width"]) for row in rows if row["width"]]
    table(("results", *totals, "not sharp", "widest"), [
        (len(rows), *totals.values(), sum(not row["sharp"] for row in rows), max(widths)),
    ])  # fmt: skip
    figure = get_figure_class()(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.scatter([row["letters"] for row in rows], [row["prove [s]"] for row in rows], s=8)
    axes.set_xlabel("letters")
    axes.set_ylabel("seconds to prove")
    figure.savefig(options.out / "vipr_proofs.png", dpi=150)
    whole = totals["files"] == totals["accepted"] and totals["changed"] == totals["refused"]
    return 0 if whole and all(row["sharp"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
