"""Which other columns stay beside what is released of a data file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pmlopt.cli.options import Opt
from pmlopt.cli.printing import say
from pmlopt.errors import InputError


@dataclass(frozen=True)
class Beside:
    """Which of the other columns of a data file stay, in clear, beside what is released."""

    keep: Annotated[
        tuple[str, ...], Opt("Another column that stays, in clear; the rest goes. Give it once for each.")
    ] = ()
    drop: Annotated[tuple[str, ...], Opt("Another column that goes. Give it once for each.")] = ()
    drop_all: Annotated[bool, Opt("All other columns go.")] = False

    def columns(self, names: Sequence[str], taken: Sequence[str], where: object, assessed: bool) -> list[str]:
        """The names of the other columns that stay, which are said: nothing is written yet.

        Args:
            names: of all columns.
            taken: those that are released.
            where: the data file, for messages.
            assessed: whether it is printed later what they tell.

        Raises:
            InputError: a name is of no other column, or more than one option says which stay.
        """
        from pmlopt.data.tables import column_place

        places = [column_place(names, name, where) for name in taken]
        others = [name for place, name in enumerate(names) if place not in places]
        if (self.keep != ()) + (self.drop != ()) + self.drop_all > 1:
            raise InputError("--keep, --drop and --drop-all all say which columns stay: give one")
        for name in self.keep + self.drop:
            if name not in others:
                raise InputError(
                    f"--keep or --drop: {name!r} is no other column of {list(names)}: name one column by "
                    "each option, and give --drop-all to drop all"
                )
        if self.drop_all:
            return []
        stay = [name for name in others if (name in self.keep if self.keep else name not in self.drop)]
        if stay:
            text = f"stay in clear: {', '.join(map(repr, stay))}"
            if not self.keep and not self.drop and not assessed:
                text = (
                    f"warning: {text}; the level of the mechanism does not count what they tell: choose with "
                    "--keep, --drop or --drop-all, and see --assess"
                )
            say(text, err=True)
        return stay
