"""The options of a release without a plan file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.data_options import DataOptions, KeepOptions, PersonColumn
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.publishing import ReleasePlan
    from pmlopt.tables import Database


@dataclass(frozen=True)
class SingleReleaseOptions(KeepOptions):
    """The options of a release without a plan file: one column or column tuple."""

    columns: Annotated[
        tuple[str, ...],
        "Without a plan: the column; several are released as one tuple.",
        "--column",
    ] = ()
    epsilon: Annotated[float | None, "With --column: the bound in nats."] = None
    privacy_name: Annotated[
        str,
        "With --epsilon: which bound, pml or ldp, or another one that an epsilon states.",
        "--privacy",
    ] = "pml"
    confidence_delta: Annotated[
        float | None,
        "With --epsilon: the data are a sample; the bound holds for its population but with this "
        "probability.",
    ] = None
    utility: Annotated[
        str | None,
        "With --column: what stays useful: estimation-error (frequencies), hamming, absolute, ..., or of "
        "several columns model:FORMULA (coefficients of a regression).",
    ] = None
    mechanism_file: Annotated[
        Path | None, "With --column: a mechanism, in place of a design.", "--mechanism"
    ] = None
    law: Annotated[
        Path | None,
        "Other data with the same columns: the stated shares, which the level is about, are theirs.",
    ] = None
    total: Annotated[
        float | None,
        "The largest level of all that leaves, in clear too, in nats: above it nothing is written.",
    ] = None

    household_column: Annotated[
        str | None,
        "The column with the household of each row: the level about a member counts all rows of a household.",
    ] = None
    ledger_file: Annotated[
        Path | None,
        "A ledger that must allow the release, and records it when it is published.",
        "--ledger",
    ] = None
    person_column: PersonColumn = None
    within_ledger: Annotated[
        bool,
        "With --ledger: design within what it leaves to each of the people, with or without --epsilon.",
    ] = False

    def build_plan(self, data: Path | Database, form: DataOptions) -> ReleasePlan:
        """Build the plan of a single release."""
        from pmlopt.publishing import ReleasePlan

        if not self.columns:
            raise InputError("give --column NAME for one release, or --plan FILE for several")
        keys = ("epsilon", "confidence_delta", "utility")
        table: dict[str, Any] = {
            name: getattr(self, name) for name in keys if getattr(self, name) is not None
        }
        if self.privacy_name != "pml":
            if self.epsilon is None or self.confidence_delta is not None:
                raise InputError(
                    f"--privacy {self.privacy_name} goes with --epsilon, and --confidence-delta with pml"
                )
            table["privacy"] = {"name": self.privacy_name, "epsilon": table.pop("epsilon")}
        if self.within_ledger:
            table["within_ledger"] = True
        if self.mechanism_file is not None:
            table["mechanism"] = str(self.mechanism_file)
        named = {"+".join(self.columns): {**table, "columns": list(self.columns)}}
        ledger = None if self.ledger_file is None else str(self.ledger_file)
        dropped = self.drop
        if self.drop_all:
            if self.drop:
                raise InputError("--drop and --drop-all both select the columns to drop: give one")
            with form.open_table(data) as rows:
                dropped = tuple(
                    name for name in rows.names if name not in (*self.columns, *self.keep)
                )
        return ReleasePlan(
            named, self.keep, dropped, self.total, None if self.law is None else str(self.law),
            ledger=ledger, person_column=self.person_column, group=self.household_column,
        )  # fmt: skip
