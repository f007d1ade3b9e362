"""The command that writes a page to explore a trade-off."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

from pmlopt.cli.asked import Asked
from pmlopt.cli.options import NOT_SOLVED, Arg, Opt, check_apart, command, imports, main
from pmlopt.cli.printing import say, status
from pmlopt.cli.reading import Minimise, read_utility
from pmlopt.cli.sweep import UNASKED, problem_at, read_grid
from pmlopt.core import files
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.publishing.exploring import Exploration

PRIOR = {"prior_file", "counts_file", "columns", "missing", "delimiter", "encoding"}
"""The options of the prior, which every requirement that is compared shares."""

_Page: TypeAlias = Annotated[Path, Opt("The page to write (.html).", "-o/--output")]
_UtilityName: TypeAlias = Annotated[str | None, Opt("As of pmlopt design.", "--utility")]
_Epsilons: TypeAlias = Annotated[str | None, Opt(
    "The levels in nats: with commas between, or START:STOP:COUNT; left out, 40 up to 3 nats at most.",
    "--epsilon"
)]  # fmt: skip
_Beside: TypeAlias = Annotated[str | None, Opt(
    "What a design is compared with, with commas between: ldp, response (randomized response), nothing (what "
    "releasing nothing is worth); left out, all of them; none for none."
)]  # fmt: skip
_Total: TypeAlias = Annotated[
    float | None, Opt("With --about: release both columns of it, and split this level over them, in nats.")
]
_Person: TypeAlias = Annotated[str | None, Opt("Whose, where FILE has streams.")]
_HalfWidth: TypeAlias = Annotated[
    float | None, Opt("Of the intervals of estimated frequencies for which people are counted; else 0.01.")
]


@command(main, "explore", extra=(imports,))
def explore_command(
    asked: Asked,
    output: _Page,
    saved: Annotated[str | None, Arg("[FILE]")] = None,
    utility_name: _UtilityName = None,
    minimise: Minimise = False,
    epsilons: _Epsilons = None,
    beside: _Beside = None,
    total: _Total = None,
    person: _Person = None,
    half_width: _HalfWidth = None,
    time_limit: Annotated[float | None, Opt("Seconds for each solver and point.")] = None,
) -> None:
    """Write a page to explore a trade-off.

    The page shows what each level would be worth and would tell, for choosing one by sliders. It is one file
    that needs no network. Each number is one of a certified answer. In place of a prior, FILE is a ledger
    (.npz), streams (.json), or a problem file or id. Exits with 3 when a point could not be solved.
    """
    files.ending_of(output, (".html",))
    files.check_target(output)
    inputs = [*asked.files, *([] if saved is None else [Path(saved)])]
    check_apart([output], inputs)
    options: dict[str, Any] = {} if half_width is None else {"half_width": half_width}
    options |= {} if time_limit is None else {"time_limit": time_limit}
    with status("exploring", False):
        if saved is not None:
            if asked != UNASKED or utility_name is not None or beside is not None or total is not None:
                raise InputError(f"{saved} says what is explored: leave out the options of a prior")
            found = _of_file(saved, person, epsilons, options)
        elif person is not None:
            raise InputError("--person belongs to a FILE of streams")
        elif utility_name is None:
            raise InputError("give the utility by --utility, or a FILE to explore")
        elif total is not None:
            found = _of_columns(asked, (utility_name, minimise), total, epsilons, options)
        else:
            found = _of_prior(asked, (utility_name, minimise), epsilons, beside, options)
        found.save(output)
    for line in found.failures:
        say(line, err=True)
    say(f"Wrote {output}: {sum(len(curve.points) for curve in found.curves)} points.")
    sys.exit(NOT_SOLVED if found.failures else 0)


def _of_file(saved: str, person: str | None, epsilons: str | None, options: dict[str, Any]) -> Exploration:
    """Explore a ledger, the stream of a person, or a problem at other levels."""
    from pmlopt.publishing.exploring import explore
    from pmlopt.releases import Ledger, Streams

    kind = Path(saved).suffix.lower()
    if (person is not None) != (kind == ".json"):
        raise InputError("a FILE of streams (.json) and --person belong together: give both")
    if kind in (".json", ".npz") and (epsilons is not None or options):
        raise InputError(f"{saved} has its levels, and nothing is solved: leave out the other options")
    if kind == ".npz":
        return explore(Ledger.load(saved), title=Path(saved).stem)
    if kind == ".json":
        return explore(Streams.load(saved).stream(person), title=f"{Path(saved).stem}: {person}")
    if epsilons is None:
        raise InputError("give the levels by --epsilon")
    builder, name = problem_at(saved)
    return explore(builder, {"epsilon": read_grid(epsilons)}, across="epsilon [nats]", title=name, **options)


def _of_columns(
    asked: Asked, utility: tuple[str, bool], total: float, epsilons: str | None, options: dict[str, Any]
) -> Exploration:
    from pmlopt.publishing.exploring import explore

    asked.check()
    secret = asked.secret
    if secret is None or epsilons is not None or utility[1] or "time_limit" in options:
        raise InputError("--total splits the columns of --about, with a utility by name: leave out the rest")
    return explore(secret, utility[0], total=total, title=asked.title, **options)


def _of_prior(
    asked: Asked,
    asked_utility: tuple[str, bool],
    epsilons: str | None,
    beside: str | None,
    options: dict[str, Any],
) -> Exploration:
    from pmlopt.publishing.exploring import explore
    from pmlopt.publishing.exploring.sources import BESIDE

    prior = asked.prior()
    given = asked.given(prior)
    utility, outputs = read_utility(*asked_utility, prior)
    plain = asked.privacy_name in ("pml", "ldp") and all(value is None for value in given.values())
    names = BESIDE if beside is None else tuple(name for name in beside.split(",") if name != "none")
    return explore(
        prior,
        utility if outputs is not None else asked_utility[0],
        asked.kind if plain else lambda epsilon: asked.requirement(epsilon, prior, given),
        None if epsilons is None else read_grid(epsilons),
        beside=names if asked.secret is None or beside is not None else BESIDE[1:],
        outputs=outputs,
        title=f"{asked.title}: {Path(asked_utility[0]).stem}",
        copied=_copied(asked, asked_utility, prior),
        **options,
    )


def _copied(asked: Asked, utility: tuple[str, bool], prior: Prior) -> Any:
    """How a point is said again: by the options that were given here."""
    from pmlopt.model.privacy import LDP
    from pmlopt.publishing.exploring.sources import copied_of

    def line(privacy: Any, level: float) -> str:
        beside = privacy is LDP and asked.kind is not LDP
        words = [*typed(asked, PRIOR), "--privacy", "ldp"] if beside else typed(asked)
        rest = ["--epsilon", repr(level), "--utility", utility[0], *(["--minimise"] if utility[1] else [])]
        return shlex.join(["pmlopt", "design", *words, *rest, "-o", "mechanism.json"])

    found = replace(copied_of(prior, utility[0]), command=line, before="")
    is_file = Path(utility[0]).suffix.lower() == ".csv"
    return replace(found, utility=f"...  # that of {utility[0]}") if is_file else found


def typed(record: Any, names: set[str] | None = None) -> list[str]:
    """The options that were given, as they are typed; of some fields alone, where names are given.

    Examples:
        >>> typed(Asked(prior_file=Path("p.csv"), privacy_name="ldp"))
        ['--prior', 'p.csv', '--privacy', 'ldp']
    """
    hints = get_type_hints(type(record), include_extras=True)
    found: list[str] = []
    for one in fields(record):
        value = getattr(record, one.name)
        if value != one.default and (names is None or one.name in names):
            flag = hints[one.name].__metadata__[-1].flags(one.name)[0]
            found += [
                text
                for part in (value if isinstance(value, tuple) else (value,))
                for text in (flag, str(part))
            ]
    return found
