"""How often `pmlopt check` refuses honest releases of two columns, and finds copied rows.

The made-up people of `pmlopt example`, education and sex, released by the optimal mechanisms for PML at 0.4
nats with the absolute loss, and for LDP at 0.5 nats with balanced matches. Honest releases are drawn and
tested; then 1 % of the rows are replaced by the data as they are. An honest release may be refused with
probability 2e-3 at most; of 1,000, more than 8 are with probability 2e-4 at most.

    python benchmarks/release_check.py [--releases 1000]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import table

from pmlopt import LDP, PML, ExpectedGain, Prior, design, solve
from pmlopt.core.numbers.arrays import IntArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.sampling.categorical import RowSampler, make_random_bits
from pmlopt.publishing import FitTest, assess_release_fit
from pmlopt.publishing.example import write_example
from pmlopt.tables import open_table
from pmlopt.tables.counting import count_tuples, find_tuples

SHARE = 0.01


def people() -> tuple[IntArray, list[Mechanism]]:
    """(n, 2) the places of the letters of each row, and the mechanisms of both columns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        write_example(path)
        codes, priors = [], []
        for name in ("education", "sex"):
            with open_table(path) as data:
                counts = {
                    key[0]: number for key, number in count_tuples(data, [name], "refuse").items()
                }
            letters = {str(letter): place for place, letter in enumerate(counts)}
            with open_table(path) as data:
                place = data.names.index(name)
                found = []
                for batch in data.batches():
                    values, rows = find_tuples(batch, [place])
                    found.append(np.array([letters[value[0]] for value in values])[rows])
            codes.append(np.concatenate(found))
            priors.append(Prior.from_counts(counts))
    made = [
        solve(design(priors[0], PML(0.4), "absolute")).mechanism,
        solve(design(priors[1], LDP(0.5), ExpectedGain(np.diag(1 / priors[1].pmf)))).mechanism,
    ]
    return np.stack(codes, axis=1), made


def tested(rows: IntArray, letters: IntArray, mechanisms: list[Mechanism]) -> FitTest:
    """The test of rows of outcomes, by their places, under the law of these letters."""
    shape = [len(one.inputs) for one in mechanisms]
    law = np.zeros(shape)
    np.add.at(law, tuple(letters.T), 1 / len(letters))
    places, numbers = np.unique(rows, axis=0, return_counts=True)
    observed = {
        tuple(one.outputs[k] for one, k in zip(mechanisms, place, strict=True)): int(number)
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True)
    }
    return assess_release_fit(mechanisms, law, observed, same_people=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Print how many releases of each kind are refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="unused: the figures are printed")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(argv)
    releases = 5 if options.quick else options.releases
    letters, mechanisms = people()
    rng, bits = np.random.default_rng(1), make_random_bits(2)
    honest = copied = 0
    for _ in range(releases):
        rows = np.stack(
            [
                RowSampler(one.matrix).draw_outputs(letters[:, k], bits)
                for k, one in enumerate(mechanisms)
            ],
            axis=1,
        )
        fit = tested(rows, letters, mechanisms)
        honest += not fit.holds
        raw = rng.choice(len(rows), round(SHARE * len(rows)), replace=False)
        for k, one in enumerate(mechanisms):
            places = [one.outputs.index(letter) for letter in one.inputs]
            rows[raw, k] = np.array(places)[letters[raw, k]]
        copied += not tested(rows, letters, mechanisms).holds
    table(("releases", "of each", "refused"), [
        ("honest", str(releases), str(honest)),
        (f"{SHARE:.0%} of the rows copied from the data", str(releases), str(copied)),
    ])  # fmt: skip
    share = "none" if fit.detectable is None else f"{fit.detectable:.2%}"
    print(f"\nThe test says that it finds a share of {share} with probability 0.9.")


if __name__ == "__main__":
    main()
