"""The group of all commands, which imports the module of a command when somebody asks for the command."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from pmlopt.cli.exits import JSON_ERRORS, handle_stream_errors, print_usage_errors_as_json
from pmlopt.cli.meant_names import suggest_command
from pmlopt.cli.strict_command import StrictCommand, name_manual_page
from pmlopt.cli.terminal import print_line

COMMANDS: Mapping[str, tuple[str, str]] = {
    "answer": ("noisy_answer", "Answer counts, sums and means of columns with noise."),
    "apply": ("apply", "Replace columns of DATA by outputs, row by row."),
    "audit": ("audit", "Recompute every leakage of MECHANISM."),
    "bench": ("library", "Compare problems with their closed forms."),
    "check": ("release", "Check a release from its FOLDER only."),
    "design": ("design", "Design the optimal mechanism."),
    "estimate": ("estimation", "Estimate frequencies from what was released."),
    "example": ("release", "Write made-up people to FILE to try things on."),
    "explore": ("release", "Write a page to explore a trade-off."),
    "export": ("export", "Write a mechanism as source code in a language."),
    "ledger": ("ledger", "Keep account of what was released on people."),
    "people-needed": ("estimation", "Compute how many people an estimate needs."),
    "problems": ("library", "List the problem library, or begin a problem file."),
    "prove": ("verification", "Write the proof of a result for independent checkers."),
    "release": ("release", "Release columns of DATA, with a report to sign."),
    "report": ("verification", "Write a page on what a saved result guarantees."),
    "solve": ("design", "Solve a problem file, or one of the library."),
    "sweep": ("sweeps", "Solve a problem for many values of one of its numbers."),
    "verify": ("verification", "Check what a saved result claims."),
}
"""The module of `pmlopt.cli` that each command is in, and the sentence by which the help lists it."""

START = (
    "release a column    pmlopt release DATA --column NAME --epsilon 0.3 --drop-all -o out",
    "check a folder      pmlopt check out",
    "design a mechanism  pmlopt design --prior counts.csv --epsilon 0.5 --utility hamming",
    "audit a mechanism   pmlopt audit mechanism.csv --prior counts.csv --epsilon 0.5",
    "read the manual     docs/index.md; its page commands.md and pmlopt --help list all",
)
"""What is printed where nothing is asked."""


class CommandGroup(StrictCommand, click.Group):
    """A command group with uniform exit codes, also for option errors."""

    command_class = StrictCommand
    group_class: type = type

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by name, with a suggestion for unknown ones."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            near = suggest_command(args, self.list_commands(ctx))
            ctx.fail(f"No such command {name!r:.80}: {near} ({name_manual_page(ctx)})")
        return super().resolve_command(ctx, args)

    def make_context(
        self, info_name: str | None, args: list[str], *rest: Any, **kwargs: Any
    ) -> click.Context:
        """Parse the options before the command."""
        as_json = "--json" in args
        with handle_stream_errors(), print_usage_errors_as_json(as_json):
            context = super().make_context(info_name, args, *rest, **kwargs)
        context.meta[JSON_ERRORS] = as_json
        return context

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command."""
        with (
            handle_stream_errors(),
            print_usage_errors_as_json(ctx.meta.get(JSON_ERRORS, False)),
        ):
            return super().invoke(ctx)


class MainGroup(CommandGroup):
    """The group of all commands."""

    group_class = CommandGroup

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, whose module registers it when it is imported."""
        if cmd_name in COMMANDS:
            import_module(f"pmlopt.cli.{COMMANDS[cmd_name][0]}")
        return self.commands.get(cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options before the command; where nothing is asked, print how to start."""
        if not args and not ctx.resilient_parsing:
            for line in START:
                print_line(line)
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with a sentence on each, without importing them."""
        listed = [click.Command(name, help=text) for name, (_, text) in COMMANDS.items()]
        click.Group(commands=listed).format_commands(ctx, formatter)


@click.group(
    cls=MainGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(package_name="pmlopt")
def main() -> None:
    """Design privacy mechanisms by convex optimization, with a proof of the bound."""
