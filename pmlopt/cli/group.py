"""The group of all commands, which imports the module of a command when somebody asks for the command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

import click

from pmlopt.cli.exits import JSON_ERRORS, handle_stream_errors, print_usage_errors_as_json
from pmlopt.cli.meant_names import COMMANDS_MEANT
from pmlopt.cli.strict_command import StrictCommand
from pmlopt.core.suggestions import did_you_mean

COMMANDS: Mapping[str, tuple[str, str]] = {
    "apply": ("apply", "Replace columns of DATA by outputs, row by row."),
    "audit": ("audit", "Recompute every leakage of MECHANISM."),
    "bench": ("library", "Compare problems with their closed forms."),
    "check": ("release", "Check a release from its FOLDER only."),
    "compose": ("ledger", "Bound what several releases leak together."),
    "count": ("data_options", "Count the values in columns of DATA."),
    "deployment": ("export", "Describe a release for a registry of deployments."),
    "design": ("design", "Design the optimal mechanism."),
    "estimate": ("estimation", "Estimate frequencies from what was released."),
    "example": ("release", "Write made-up people to FILE to try things on."),
    "explore": ("release", "Write a page to explore a trade-off."),
    "export": ("export", "Write a mechanism as source code in a language."),
    "histogram": ("apply", "Release the counts of classes, with noise."),
    "leakage-distortion": ("queries", "Design a mechanism that answers a query."),
    "least-leakage": ("library", "Find the least level that allows a utility."),
    "ledger": ("ledger", "Keep account of what was released on people."),
    "noise-table": ("apply", "Write a mechanism on counts as a table of noise."),
    "noisy-answer": ("noisy_answer", "Answer counts, sums and means of columns with noise."),
    "people-needed": ("estimation", "Compute how many people an estimate needs."),
    "problems": ("library", "List the problem library."),
    "prove": ("verification", "Write the proof of a result for independent checkers."),
    "record-leakage": ("queries", "Bound what MECHANISM reveals of one record."),
    "release": ("release", "Release columns of DATA, with a report to sign."),
    "report": ("verification", "Write a page on what a saved result guarantees."),
    "sample-size": ("library", "Compute the sample size that a bound needs."),
    "solve": ("design", "Solve a problem file, or one of the library."),
    "stream": ("ledger", "Release a secret that moves, step by step."),
    "sweep": ("queries", "Design mechanisms for many privacy bounds."),
    "verify": ("verification", "Check what a saved result claims."),
    "worst-case": ("library", "Release no output of a low rank."),
}
"""The module of `pmlopt.cli` that each command is in, and the sentence by which the help lists it."""


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
            meant = COMMANDS_MEANT.get(name.lower())
            known = f"the commands are {', '.join(self.list_commands(ctx))}"
            near = f"type {meant}" if meant else did_you_mean(name, self.list_commands(ctx), known)
            ctx.fail(f"No such command {name!r:.80}: {near}")
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


class CommandTable(MutableMapping[str, click.Command]):
    """Commands by name, each of which is in the table once its module is imported.

    Args:
        modules: the module of each.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded and name in self._modules:
            import_module(self._modules[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._modules, **self._loaded})

    def __len__(self) -> int:
        return len({**self._modules, **self._loaded})


class MainGroup(CommandGroup):
    """The group of all commands."""

    group_class = CommandGroup

    def __init__(self, *args: Any, **more: Any) -> None:
        modules = {name: f"pmlopt.cli.{module}" for name, (module, _) in COMMANDS.items()}
        super().__init__(*args, commands=CommandTable(modules), **more)

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
