"""The options of a release without a plan file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.data_options import DataOptions, KeepOptions, PersonColumn
from pmlopt.cli.strict_command import get_arguments
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.errors import InputError, PmloptError

if TYPE_CHECKING:
    from pmlopt.publishing import ReleasePlan
    from pmlopt.tables import Database


_FLAGS = {"name": "privacy", "columns": "column"}
"""The option of a key of a plan that has another name."""


@light_dataclass(frozen=True)
class SingleReleaseOptions(KeepOptions):
    """The options of a release without a plan file: one column or column tuple."""

    keep: Annotated[
        tuple[str, ...], "Another column that is published as it is. Give it once for each."
    ] = ()
    drop: Annotated[tuple[str, ...], "Another column that is left out. Give it once for each."] = ()
    drop_all: Annotated[bool, "All columns go that are neither released nor kept."] = False
    columns: Annotated[
        tuple[str, ...],
        "Without a plan: the column; several are released as one tuple, or designed together under --total.",
        "--column",
    ] = ()
    epsilon: Annotated[
        float | None, "With --column: the bound in nats; left out, a --total is it."
    ] = None
    privacy_name: Annotated[
        str, "With --epsilon: which bound, pml or ldp, or another one that an epsilon states."
    ] = "pml"
    confidence_delta: Annotated[
        float | None,
        "With --epsilon: the data are a sample; the bound holds for its population but with this "
        "probability.",
    ] = None
    utility: Annotated[
        str | None,
        "With --column: what stays useful: estimation-error (frequencies; of several columns under --total "
        "the default), hamming, absolute, ..., or of several columns model:FORMULA (coefficients of a "
        "regression).",
    ] = None
    mechanism_file: Annotated[Path | None, "With --column: a mechanism, in place of a design."] = (
        None
    )
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
        Path | None, "A ledger that must allow the release, and records it when it is published."
    ] = None
    person_column: PersonColumn = None
    within_ledger: Annotated[
        bool,
        "With --ledger: design within what it leaves to each of the people, with or without --epsilon.",
    ] = False

    def build_plan(self, data: Path | Database, form: DataOptions) -> ReleasePlan:
        """Build the plan of a release without a plan file."""
        from pmlopt.publishing import ReleasePlan

        if not self.columns:
            raise InputError("give --column NAME for one release, or --plan FILE for several")
        self._check_bound()
        with form.open_table(data) as rows:
            dropped = self._choose_dropped(rows.names)
        tables, margins = self._plan_columns()
        return ReleasePlan(
            tables, self.keep, dropped, self.total, None if self.law is None else str(self.law),
            ledger=None if self.ledger_file is None else str(self.ledger_file),
            person_column=self.person_column, margins=margins, group=self.household_column,
        )  # fmt: skip

    @contextmanager
    def name_options(self) -> Iterator[None]:
        """Raise errors about the keys of the plan as errors about the options that were given."""
        try:
            yield
        except PmloptError as cause:
            if not self.columns:
                raise
            named = "|".join(map(re.escape, ("+".join(self.columns), *self.columns)))
            said = re.sub(
                rf"release\.(?:{named})(?:\.privacy)?(?:\.(\w+)|: )",
                lambda key: f"--{_FLAGS.get(key[1], key[1].replace('_', '-'))}" if key[1] else "",
                str(cause),
            )
            if said == str(cause):
                raise
            raise InputError(said) from None

    def _check_bound(self) -> None:
        """Raise an error unless the options state one bound, and what stays useful under it."""
        twice = [name for name in self.columns if self.columns.count(name) > 1]
        if twice:
            raise InputError(f"--column {twice[0]} is given twice: give each column once")
        if self.total is not None and not self.total >= 0:
            raise InputError(f"--total is {self.total}: give nats, at least 0")
        designed = {"--epsilon": self.epsilon, "--utility": self.utility}
        given = [flag for flag, value in designed.items() if value is not None]
        own_privacy = self.privacy_name != "pml"
        if own_privacy and (self.epsilon is None or self.confidence_delta is not None):
            raise InputError(
                f"--privacy {self.privacy_name} goes with --epsilon, and --confidence-delta with pml"
            )
        if self.confidence_delta is not None and self.epsilon is None:
            raise InputError("--confidence-delta goes with --epsilon")
        if self.mechanism_file is not None:
            if given or self.within_ledger:
                other = (*given, "--within-ledger")[0]
                raise InputError(f"--mechanism is given, and {other} to design one: give one")
            return
        if self.epsilon is None and self.total is None and not self.within_ledger:
            raise InputError(
                "give how much may be revealed: --epsilon NATS, or --total NATS, or --mechanism FILE"
            )
        if self.utility is None and not (self._is_joint and len(self.columns) > 1):
            raise InputError(
                "give what must stay useful: --utility estimation-error (frequencies), hamming, absolute "
                "(numbers), ..."
            )

    @property
    def _is_joint(self) -> bool:
        """Return whether the total is the only bound."""
        own = (self.epsilon, self.mechanism_file)
        return self.total is not None and own == (None, None) and not self.within_ledger

    def _plan_columns(self) -> tuple[dict[str, dict[str, Any]], tuple[tuple[str, ...], ...] | None]:
        """Return the tables of the plan by their names, and the margins that columns together keep."""
        is_model = self.utility is not None and self.utility.startswith("model:")
        if self._is_joint and len(self.columns) > 1 and not is_model:
            if self.utility in (None, "estimation-error"):
                return {name: {} for name in self.columns}, (self.columns,)
            return {name: {"utility": self.utility} for name in self.columns}, None
        epsilon = self.total if self._is_joint else self.epsilon
        table: dict[str, Any] = {"columns": list(self.columns)}
        keys = {
            "confidence_delta": self.confidence_delta,
            "utility": self.utility,
            "mechanism": None if self.mechanism_file is None else str(self.mechanism_file),
            "within_ledger": self.within_ledger or None,
        }
        table |= {key: value for key, value in keys.items() if value is not None}
        if self.privacy_name != "pml":
            table["privacy"] = {"name": self.privacy_name, "epsilon": epsilon}
        elif epsilon is not None:
            table["epsilon"] = epsilon
        return {"+".join(self.columns): table}, None

    def _choose_dropped(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that are dropped, and raise an error for columns that nothing names."""
        if self.drop and self.drop_all:
            raise InputError("--drop and --drop-all both select the columns to drop: give one")
        named = {*self.columns, *self.keep, *self.drop}
        left = tuple(name for name in names if name not in named)
        if self.drop_all:
            return left
        left = tuple(name for name in left if name != self.household_column)
        if left and named <= set(names):
            flags = [word for name in left for word in ("--drop", name)]
            words = ["--drop-all"] if len(left) > 5 and not self.drop else flags
            raise InputError(
                f"nothing is said of the column{'s' if len(left) > 1 else ''} "
                f"{', '.join(map(repr, left))}: --keep publishes a column as it is, --drop leaves it out, "
                f"--drop-all all others. To leave out the rest: {complete_command(words)}"
            )
        return self.drop


def complete_command(words: Sequence[str]) -> str:
    """Return the command line that runs with more words; an address, which may hold a password, is DATA."""
    given = ["DATA" if "://" in word else word for word in get_arguments()]
    return shlex.join(["pmlopt", "release", *given, *words])
