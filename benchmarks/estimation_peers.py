"""Frequencies estimated by the libraries multi-freq-ldpy and pure-ldp, and by designs, at the same epsilon.

    pip install multi-freq-ldpy pure-ldp scikit-learn statsmodels
    python benchmarks/estimation_peers.py [--people 10000] [--runs 20] [--epsilon 1] [--out FOLDER] [--quick]

Data: levels of education (Adult, the data that multi-freq-ldpy shows), and from statsmodels occupations
(`fair`) and incomes (`anes96`). People are drawn from the shares of the data, each answers once, and the
table has the mean squared error of a frequency over letters and runs. The libraries release under LDP and
estimate as they do by themselves, by inverting and clipping; designs are estimated by maximum likelihood. A
design for PML promises less than one for LDP at the same epsilon, and is made for the shares as the prior.
Local hashing of multi-freq-ldpy 0.2.5 fails with today's xxhash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from common import FloatArray, machine, suite_parser, table, write_csv

from pmlopt import LDP, PML, EstimationError, Prior, design, estimate, solve
from pmlopt.core.numbers.arrays import IntArray
from pmlopt.library import find

Contestant = Callable[[IntArray], FloatArray]
"""The frequencies that are estimated, from the letters of people."""


PEERS = ("multi-freq-ldpy", "pure-ldp", "statsmodels")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the errors of all contestants on all data."""
    parser = suite_parser(__doc__)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args(argv)
    people, runs = (500, 2) if arguments.quick else (arguments.people, arguments.runs)
    try:
        peers = ", ".join(f"{name} {version(name)}" for name in PEERS)
    except PackageNotFoundError as missing:
        print(
            f"nothing to compare with: pip install {missing.name}, as the first lines of this file say"
        )
        return
    print(f"{machine()}, {peers}\n")
    errors: dict[str, dict[str, float]] = {}
    for name, prior in data().items():
        drawn = np.random.default_rng(0).choice(prior.size, size=(runs, people), p=prior.pmf)
        for contestant, answer in contestants(prior, arguments.epsilon).items():
            found = np.array([answer(letters) for letters in drawn])
            errors.setdefault(contestant, {})[name] = float(((found - prior.pmf) ** 2).mean())
    names = list(data())
    rows = [[who, *(f"{1e6 * told[name]:.1f}" for name in names)] for who, told in errors.items()]
    head = ("mean squared error [1e-6]", *names)
    table(head, rows)
    if arguments.out is not None:
        write_csv(arguments.out / "estimation_peers.csv", head, rows)


def data() -> Mapping[str, Prior]:
    """The shares of each column."""
    from statsmodels.datasets import anes96, fair

    education = find("adult-education-hamming").prior.counts or ()
    columns = {
        "occupation": fair.load_pandas().data["occupation"],
        "income": anes96.load_pandas().data["income"],
    }
    found = {f"education, N = {len(education)}": Prior.from_counts(education)}
    for name, column in columns.items():
        counts = Counter(column)
        found[f"{name}, N = {len(counts)}"] = Prior.from_counts(
            [counts[key] for key in sorted(counts)]
        )
    return found


def contestants(prior: Prior, epsilon: float) -> Mapping[str, Contestant]:
    """All of them by name, for as many letters as a prior has."""
    n = prior.size
    error = EstimationError()
    designs = {
        "LDP, optimal for even frequencies": solve(
            design(Prior.uniform(n), LDP(epsilon), error)
        ).mechanism,
        "PML, optimal": solve(design(prior, PML(epsilon), error)).mechanism,
    }
    ours = {name: _decoded(one.matrix) for name, one in designs.items()}
    return {**_multi_freq(n, epsilon), **_pure(n, epsilon), **ours}


def _decoded(matrix: FloatArray) -> Contestant:
    """Outputs drawn from the rows of a matrix, and estimated by maximum likelihood."""
    rng = np.random.default_rng(1)

    def answer(letters: IntArray) -> FloatArray:
        counts = sum(
            rng.multinomial(count, matrix[x]) for x, count in enumerate(np.bincount(letters))
        )
        return estimate(matrix, counts, min_p_value=0.0).frequencies

    return answer


def _multi_freq(n: int, epsilon: float) -> Mapping[str, Contestant]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    def told(
        release: Callable[[int], Any], decode: Callable[[list[Any]], FloatArray]
    ) -> Contestant:
        return lambda letters: decode([release(int(letter)) for letter in letters])

    return {
        "multi-freq-ldpy, GRR": told(
            lambda x: GRR_Client(x, n, epsilon), lambda y: GRR_Aggregator_MI(y, n, epsilon)
        ),
        "multi-freq-ldpy, SUE": told(
            lambda x: UE_Client(x, n, epsilon, False), lambda y: UE_Aggregator_MI(y, epsilon, False)
        ),
        "multi-freq-ldpy, OUE": told(
            lambda x: UE_Client(x, n, epsilon, True), lambda y: UE_Aggregator_MI(y, epsilon, True)
        ),
        "multi-freq-ldpy, subset selection": told(
            lambda x: SS_Client(x, n, epsilon), lambda y: SS_Aggregator_MI(y, n, epsilon)
        ),
    }


def _pure(n: int, epsilon: float) -> Mapping[str, Contestant]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import (
        HadamardResponseClient,
        HadamardResponseServer,
    )
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def told(make: Callable[[], tuple[Any, Any]]) -> Contestant:
        def answer(letters: IntArray) -> FloatArray:
            client, server = make()
            for letter in letters:
                server.aggregate(client.privatise(int(letter) + 1))  # it counts from 1
            found = np.array([server.estimate(x + 1, suppress_warnings=True) for x in range(n)])
            shares = np.maximum(found, 0.0)
            return np.asarray(shares / max(shares.sum(), 1e-300))

        return answer

    def hadamard() -> tuple[Any, Any]:
        server = HadamardResponseServer(epsilon, n)
        return HadamardResponseClient(epsilon, n, server.get_hash_funcs()), server

    return {
        "pure-ldp, direct encoding": told(lambda: (DEClient(epsilon, n), DEServer(epsilon, n))),
        "pure-ldp, OUE": told(
            lambda: (UEClient(epsilon, n, use_oue=True), UEServer(epsilon, n, use_oue=True))
        ),
        "pure-ldp, Hadamard response": told(hadamard),
    }


if __name__ == "__main__":
    main()
