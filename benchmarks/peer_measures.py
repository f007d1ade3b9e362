"""What another library measures of mechanisms, as JSON: `benchmarks/peers.py` runs it where that is there.

    python benchmarks/peer_measures.py NAME < mechanisms.json

The file has the prior, the matrix by letters, and, for randomized response, the epsilon of each mechanism. It
prints a list of measures with their values; null where the library cannot take the mechanism. It imports
nothing of pmlopt.
"""

import json
import math
import sys
from typing import Any, NamedTuple

import numpy as np


class Given(NamedTuple):
    """A mechanism; the epsilon is that of randomized response, and None of others."""

    prior: Any
    matrix: Any
    epsilon: float | None


def by_qif(given: Given) -> dict[str, Any]:
    """Measure leakage by qif."""
    from qif import measure, metric, uint

    return {
        "bayes_vuln.min_entropy_leakage": measure.bayes_vuln.min_entropy_leakage(
            given.prior, given.matrix
        ),
        "bayes_vuln.mult_capacity": measure.bayes_vuln.mult_capacity(given.matrix),
        "shannon.add_leakage": measure.shannon.add_leakage(given.prior, given.matrix),
        "shannon.add_capacity": measure.shannon.add_capacity(given.matrix)[0],
        "d_privacy.smallest_epsilon": measure.d_privacy.smallest_epsilon(
            given.matrix, metric.discrete(uint)
        ),
    }


def by_dit(given: Given) -> dict[str, Any]:
    """Measure information by dit, whose Rényi divergence of order inf is NaN."""
    import dit

    joint = given.prior[:, None] * given.matrix
    cells = {(x, y): joint[x, y] for x, y in np.ndindex(*joint.shape) if joint[x, y] > 0}
    law = dit.Distribution(list(cells), list(cells.values()))
    letters = [str(x) for x in range(len(given.prior))]
    before = dit.Distribution(letters, given.prior.tolist())
    most = 0.0
    for column in (joint / joint.sum(axis=0)).T:
        after = dit.Distribution(letters, column.tolist())
        most = max(most, dit.divergences.renyi_divergence(after, before, alpha=100))
    return {
        "mutual_information": dit.shannon.mutual_information(law, [0], [1]),
        "renyi_divergence": most,
    }


def by_opendp(given: Given) -> dict[str, Any]:
    """Map the distance of two letters to an epsilon by OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if given.epsilon is None:
        return {"make_randomized_response": None}
    response = dp.m.make_randomized_response(
        list(range(len(given.prior))), prob=float(given.matrix[0, 0])
    )
    return {"make_randomized_response": response.map(1)}


def by_dp_accounting(given: Given) -> dict[str, Any]:
    """Compute the epsilon at delta 0 of the worst ordered pair of rows by dp_accounting."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    with np.errstate(divide="ignore"):
        logs = np.log(given.matrix)
    most = 0.0
    for x, z in np.ndindex(len(given.prior), len(given.prior)):
        one, other = (
            {y: v for y, v in enumerate(logs[k].tolist()) if v > -math.inf} for k in (x, z)
        )
        law = pld.from_two_probability_mass_functions(one, other, symmetric=False)
        most = max(most, law.get_epsilon_for_delta(0.0))
    return {"from_two_probability_mass_functions": most}


def by_multi_freq_ldpy(given: Given) -> dict[str, Any]:
    """Count how often the client of multi-freq-ldpy keeps the letter, of 200,000 draws."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    if given.epsilon is None:
        return {"GRR_Client": None}
    kept = sum(GRR_Client(0, len(given.prior), given.epsilon) == 0 for _ in range(200_000))
    return {"GRR_Client": kept / 200_000}


def by_pure_ldp(given: Given) -> dict[str, Any]:
    """Read the probabilities of the client of pure-ldp."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    if given.epsilon is None:
        return {"DEClient": None}
    client = DEClient(given.epsilon, len(given.prior))
    return {"DEClient": math.log(client.p / client.q)}


def by_diffprivlib(given: Given) -> dict[str, Any]:
    """Count how often diffprivlib's mechanism for two letters keeps the letter, of 200,000 draws."""
    from diffprivlib.mechanisms import Binary

    if given.epsilon is None or len(given.prior) != 2:
        return {"mechanisms.Binary": None}
    response = Binary(epsilon=given.epsilon, value0="0", value1="1", random_state=0)
    kept = sum(response.randomise("0") == "0" for _ in range(200_000))
    return {"mechanisms.Binary": kept / 200_000}


PEERS = {
    "qif": by_qif, "dit": by_dit, "opendp": by_opendp, "dp-accounting": by_dp_accounting,
    "multi-freq-ldpy": by_multi_freq_ldpy, "pure-ldp": by_pure_ldp,
    "diffprivlib": by_diffprivlib,
}  # fmt: skip


def measure(peer: str, prior: Any, matrix: Any, epsilon: float | None) -> dict[str, str | None]:
    """Measure one mechanism; an infinite value is written as a text, since JSON has none."""
    found = PEERS[peer](Given(np.array(prior), np.array(matrix), epsilon))
    return {key: value if value is None else repr(float(value)) for key, value in found.items()}


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps({name: measure(sys.argv[1], **one) for name, one in given.items()}))
