"""The certificate of a record's largest leakage: a prior as lower bound, multipliers as upper bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import Shape
from pmlopt.model.queries import RecordChannel
from pmlopt.programs.certificate import DECIMAL, Certificate
from pmlopt.programs.claims import Claim, claim_proof
from pmlopt.programs.record_leakage.proof import (
    RecordKindProof,
    is_channel_of,
    leaks_at_least,
    proves_bound,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordCertificate(Certificate):
    """The certificate of the leakage per record, from both sides.

    `value` is what `joint` leaks, `bound` what no prior of that entropy exceeds for any record.

    Attributes:
        channel: the query and the mechanism, by classes of datasets.
        entropy: b, in nats.
        record: the record that `joint` is about.
        joint: (A, T) the law of (X_i, T) under the worst prior found, T the class.
        proofs: of the bound, one for each kind of records; none where nothing was proved.
    """

    kind: ClassVar[str] = "record-leakage"
    is_of_design: ClassVar[bool] = False
    arithmetic: ClassVar[str] = DECIMAL
    """Decimals, of the prior and of the bound on each cell; that the cells hold every law is exact."""

    channel: RecordChannel
    entropy: float
    record: int
    joint: Annotated[FloatArray, Shape("A", "T")]
    proofs: tuple[RecordKindProof, ...]

    @property
    def level(self) -> float:
        """Return the upper bound on the leakage of any record, in nats."""
        return self.bound

    @property
    def statement(self) -> str:
        """Return the leakage bound as text."""
        return (
            f"no record leaks more than {self.bound:.9g} nats at {self.entropy:.9g} nats of entropy"
        )

    def prior(self) -> FloatArray:
        """Build the (k_1, ..., k_n) worst-case prior of the dataset.

        Raises:
            QueryError: there are more than 2^20 datasets.
        """
        table = self.channel.class_table()
        letters = np.indices(table.shape)[self.record]
        # where a cell has no dataset it is 0 / 0, and np.where takes the 0
        with np.errstate(invalid="ignore"):
            each = np.where(
                self.joint > 0, self.joint / np.exp(self.channel.log_counts(self.record)), 0.0
            )
        return np.asarray(each[letters, table])

    def checks(self) -> tuple[Claim, ...]:
        """Recheck prior, value and bound in decimal arithmetic of 50 digits.

        That the channel is that of the query and the mechanism; that the prior has the entropy, up to the
        precision of a float, and leaks `value`; that the cells hold every law; and that no bound on a cell
        exceeds `bound`. The matrix, the logarithms of the counts and the multipliers are taken as given.
        """
        own = math.isfinite(self.entropy) and is_channel_of(self.channel, self.mechanism)
        if not own:
            return (
                Claim("channel", False, DECIMAL, "it is not that of the query and the mechanism"),
            )
        leaks = leaks_at_least(self.channel, self.entropy, self.record, self.joint, self.value)
        text = f"a prior reaches {self.value:.9g}"
        value = claim_proof("value", leaks, DECIMAL, text, self.value)
        # a local method proves nothing: that is no failure, and no promise
        if self.bound == math.inf:
            text = "no bound is claimed, so that nothing is promised of the leakage"
            return (value, Claim("bound", None, DECIMAL, text, self.bound))
        holds = self.bound >= self.value
        holds = holds and proves_bound(self.channel, self.entropy, self.proofs, self.bound)
        bound = claim_proof("bound", holds, DECIMAL, self.statement, self.bound)
        return (value, bound, self._check_gap())
