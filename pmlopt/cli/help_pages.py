"""Groups of options in the help of a command, and an example of its use at the end."""

from __future__ import annotations

import click

_LISTED = {
    "Input": """prior* counts* column* delimiter encoding sheet labels table query missing about*
        secret-column data records letters circle mechanism* law* from-samples* no-header* normalise
        traces* samples* edges stop deterministic group-by within weight-column time-column household-column
        person-column* person* state keep* drop* drop-all* public-classes count sum mean people keys
        plan* of for-bound""",
    "Requirement": """privacy* epsilon* over* distance gain delta alpha guesses known lower radius*
        confidence-delta* region total* ledger* within-ledger* envelope* min-mass caps kappa
        min-probability attributes* and-mechanism allow-duplicate in-order""",
    "Utility": """utility* minimise* outputs* constraint* target* workload half-width* designs smoothing
        compare* against* letter*""",
    "Inference": "method intervals confidence* formula* min-p-value posterior power*",
    "Solver": """solver solver-option tolerance time-limit isolated verbose workers scheduler
        repeats""",
    "Output": """output* page* plot* json* mps dry-run* issuer exact-counts round-counts* keep-order seed
        mechanisms* assess into to bits max-level name decode vipr registry""",
}
OPTION_GROUPS = {title: names.replace("*", "") for title, names in _LISTED.items()}
"""The options of the commands by the heading under which the help lists them."""

SHOWN_OF_MANY = frozenset(
    name.rstrip("*")
    for names in (*_LISTED.values(), "help*")
    for name in names.split()
    if name.endswith("*")
)
"""The options that the help shows of a command that has too many to show all: those with an asterisk."""

EXAMPLES = {
    "answer": "answer people.csv --mean education=1..16 --epsilon 0.5 -o mean.csv",
    "apply": "apply mechanism.json people.csv --column sex --drop id --drop education -o drawn.csv",
    "audit": "audit mechanism.json --prior counts.csv --epsilon 0.5",
    "bench": "bench --only 'robust-uniform-*'",
    "check": "check out",
    "design": "design --prior counts.csv --epsilon 0.5 --utility hamming -o mechanism.json",
    "estimate": "estimate out",
    "example": "example people.csv",
    "explore": "explore --prior counts.csv --utility hamming --epsilon 0.5,1 -o page.html",
    "export": "export mechanism.json -o answer.js",
    "ledger check": "ledger check ledger.npz mechanism.json",
    "ledger new": "ledger new ledger.npz --prior counts.csv --people 45000 --total 2",
    "ledger record": "ledger record ledger.npz mechanism.json answers.csv --column sex --in-order",
    "ledger show": "ledger show ledger.npz --person 0",
    "ledger stream new": "ledger stream new moves.csv --person-column who --column place --epsilon 0.8 "
    "-o streams.json",
    "ledger stream release": "ledger stream release streams.json --person ann --state home",
    "ledger stream show": "ledger stream show streams.json --person ann",
    "people-needed": "people-needed mechanism.json --prior counts.csv --half-width 0.03",
    "problems": "problems counting query",
    "prove": "prove mechanism.json -o proof",
    "release": "release people.csv --column sex --epsilon 0.3 --utility estimation-error --drop-all -o out",
    "report": "report mechanism.json -o report.html",
    "solve": "solve record-parity-laplace-b2",
    "sweep": "sweep --prior counts.csv --utility hamming --epsilon 0.1:1:4 -o curve.csv",
    "verify": "verify mechanism.json",
}
"""A command line for each command, which runs on a file of its kind."""


HELP_ALL = "--help-all"


class GroupedCommand(click.Command):
    """A command whose help lists its options in groups, and ends with an example."""

    def print_full_help(self, ctx: click.Context, args: list[str]) -> None:
        """Print the help with all options, and end, where that is asked for."""
        if HELP_ALL in args and not ctx.resilient_parsing and not isinstance(self, click.Group):
            ctx.meta[HELP_ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the heading of their group; those of a short command under one."""
        if len(self.params) < 9:  # fit on a screen
            super().format_options(ctx, formatter)
            return
        shown = None if ctx.meta.get(HELP_ALL) or self._has_few_options() else SHOWN_OF_MANY
        for title, options in group_options(ctx, self, shown).items():
            with formatter.section(f"{title} options" if title else "Other options"):
                formatter.write_dl(options)
        if shown is not None:
            formatter.write_paragraph()
            formatter.write_text(f"{HELP_ALL} shows all {len(self.params)} options.")

    def _has_few_options(self) -> bool:
        """Return whether the help shows every option."""
        most_shown = 20  # with --help
        return sum(isinstance(one, click.Option) for one in self.params) < most_shown

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        example = find_example(ctx)
        if example:
            with formatter.section("Example"):
                formatter.write_text(example)


def group_options(
    ctx: click.Context, command: click.Command, shown: frozenset[str] | None = None
) -> dict[str, list[tuple[str, str]]]:
    """Return the help of the options by group, each in its order; those of no group come last.

    Args:
        ctx: of the help.
        command: whose options they are.
        shown: the names of those that are listed; None for all.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    places = {name: title for title, names in OPTION_GROUPS.items() for name in names.split()}
    for title in (*OPTION_GROUPS, ""):
        for option in command.get_params(ctx):
            name = option.opts[-1].removeprefix("--")
            described = option.get_help_record(ctx) if shown is None or name in shown else None
            placed = places.get(name, "") == title
            if described and placed and isinstance(option, click.Option):
                groups.setdefault(title, []).append(described)
    return groups


def find_example(ctx: click.Context) -> str:
    """Return the example of a command as it is typed; empty for a group."""
    name = ctx.command_path.partition(" ")[2]
    return f"pmlopt {EXAMPLES[name]}" if name in EXAMPLES else ""
