"""The certificate of a trade-off: an audit of the mechanism's leakage, and a dual bound on all others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from pmlopt.data.mechanism import Mechanism
from pmlopt.model.queries import Query
from pmlopt.model.queries.record_leakage_measures import allows_only_uniform
from pmlopt.programs.certificate import DECIMAL, Certificate
from pmlopt.programs.claims import Claim, check_value, claim_proof
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.tradeoff.proof import (
    Sense,
    TradeoffLosses,
    TradeoffProof,
    is_audit_valid,
    is_bound_proved,
    is_limit_kept,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class TradeoffCertificate(Certificate):
    """The certificate of a mechanism that trades leakage per record for distortion.

    In Problem 2 `value` is the proved leakage of the mechanism and `bound` what no mechanism within the
    distortion leaks less than. In Problem 3 `value` is its expected distortion and `bound` what no mechanism
    within the leakage distorts less than.

    Attributes:
        sense: what was minimised, "leakage" or "distortion".
        limit: the bound on the other.
        tradeoff: the losses, and the entries that may be positive.
        audit: the proof of the mechanism's leakage.
        proof: of the bound, None where nothing was proved.
    """

    kind: ClassVar[str] = "trade-off"
    arithmetic: ClassVar[str] = DECIMAL
    """Decimals."""
    maximised: ClassVar[bool] = False

    sense: Sense
    limit: float
    tradeoff: TradeoffLosses
    audit: RecordCertificate
    proof: TradeoffProof | None

    @property
    def query(self) -> Query:
        """Return the query whose dataset classes are the mechanism's inputs."""
        return self.audit.channel.query

    @property
    def leakage(self) -> float:
        """Return the proved bound on the leakage of each record, in nats."""
        return self.audit.bound

    @property
    def level(self) -> float:
        """Return the certified leakage per record, in nats."""
        return self.leakage

    @property
    def distortion(self) -> float:
        """Return the expected distortion of the mechanism, recomputed from its matrix."""
        return self.tradeoff.compute_distortion(self.mechanism.matrix)

    @property
    def entropy(self) -> float:
        """Return the lower bound b on the dataset entropy, in nats."""
        return self.audit.entropy

    @property
    def violation(self) -> float:
        """Return the violation of the limit, beyond rounding.

        That of an expected distortion; of a leakage where b is log |X| up to the precision of a float: such
        a b allows priors next to the uniform one, under which what is independent leaks about as much.
        """
        # A distortion above D by no more than this share of max(1, D) counts as D: the rounding of its sum;
        # and a leakage of a dataset that is uniform up to rounding as L, with max(1, log |X|).
        relative_slack = 1e-12
        if self.sense == "distortion":
            over = self.leakage - self.limit
            size = self.query.log_size
            room = (
                relative_slack * max(1.0, size) if allows_only_uniform(self.entropy, size) else 0.0
            )
            return over if over > room else 0.0
        over = self.distortion - self.limit
        return over if over > relative_slack * max(1.0, self.limit) else 0.0

    @property
    def statement(self) -> str:
        """Return the leakage and distortion claims as text."""
        other = "distortion" if self.sense == "leakage" else "leakage"
        reached = f"{self.audit.statement}; distortion {self.distortion:.9g}"
        return f"{reached}, with the limit {self.limit:.9g} on the {other}"

    def by_dataset(self) -> Mechanism:
        """Expand the mechanism to one row q(y|x) for each dataset.

        Raises:
            QueryError: there are more than 2^20 datasets.
        """
        table = self.query.table()
        rows = self.mechanism.matrix[table.ravel()]
        return Mechanism(rows, product(*map(range, table.shape)), self.mechanism.outputs)

    @property
    def value_name(self) -> str:
        """Return what the value is, in words."""
        return self.sense

    def checks(self) -> tuple[Claim, ...]:
        """Recheck limit, leakage, value and bound in 50-digit decimal arithmetic.

        The classes with their counts, the losses, the limit and the entropy are the problem. Checked are
        the mechanism, that it keeps the limit, its leakage by an audit of this very matrix, that the priors
        of the bound have the entropy and their multipliers are at least 0, the bound, and that `value` is
        what follows.
        """
        query = self.query
        other = "leakage" if self.sense == "distortion" else "distortion"
        kept = is_limit_kept(self.tradeoff, self.sense, self.limit, self.mechanism.matrix)
        kept = kept and self.violation == 0
        limit = f"the {other} is {'' if kept else 'not '}proved to be at most {self.limit:.9g}"
        found = self.leakage if self.sense == "leakage" else self.distortion
        audited = is_audit_valid(query, self.mechanism, self.audit)
        return (
            Claim("limit", kept, DECIMAL, limit, self.limit),
            claim_proof("level", audited, DECIMAL, self.audit.statement, self.leakage),
            check_value(self.value, found, 0.0, DECIMAL, name=self.value_name),
            self._check_bound(kept),
            self._check_gap(),
        )

    def _check_bound(self, kept: bool) -> Claim:
        """Check that the dual bound holds, with valid losses, support and limit."""
        if self.bound == -math.inf:
            return Claim("bound", True, DECIMAL, "none is claimed", self.bound)
        proof = self.proof
        query = self.query
        about = self.tradeoff, self.sense, self.limit
        holds = (
            kept
            and proof is not None
            and is_bound_proved(*about, proof, query, self.entropy, self.bound)
        )
        text = f"no {self.sense} below {self.bound:.9g}"
        return claim_proof("bound", holds, DECIMAL, text, self.bound)
