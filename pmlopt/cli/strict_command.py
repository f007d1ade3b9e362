"""Commands that reject repeated options, and make their parameters when they first need them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import click

from pmlopt.cli.help_pages import GroupedCommand
from pmlopt.core.suggestions import did_you_mean

ARGUMENTS = "pmlopt.arguments"
"""The key of a context's `meta` for the words that a command was given."""


def get_arguments() -> list[str]:
    """Return the words that the command that runs was given after its name; none outside of a command."""
    context = click.get_current_context(silent=True)
    return [] if context is None else list(context.meta.get(ARGUMENTS, ()))


class StrictCommand(GroupedCommand):
    """A command that rejects repeated options, except for cumulative ones.

    Args:
        list_parameters: returns its parameters, where they are made when they are first needed: most commands
            of a process never run.
    """

    def __init__(
        self,
        *args: Any,
        list_parameters: Callable[[], list[click.Parameter]] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        if list_parameters is not None:
            self._list_parameters = list_parameters
            del self.params

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        """Return the options and arguments."""
        return self._list_parameters()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options, and reject repeated ones."""
        self.print_full_help(ctx, args)
        ctx.meta[ARGUMENTS] = tuple(args)
        try:
            given = self.make_parser(ctx).parse_args(list(args))[2]
        except click.NoSuchOption as error:
            raise self._explain_option(ctx, error) from None
        for option in given:
            if isinstance(option, click.Option) and not option.multiple and given.count(option) > 1:
                raise click.UsageError(
                    f"{'/'.join(option.opts)} is given more than once: give it once", ctx
                )
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            values = error.message or getattr(error.param, "help", None)
            raise click.MissingParameter(values, error.ctx, error.param) from None
        except click.UsageError as error:
            takes_prior = any("--prior" in one.opts for one in self.params)
            if not takes_prior or not error.message.startswith("Got unexpected extra argument"):
                raise
            hint = f"{error.message}: a prior is given by --prior FILE"
            raise click.UsageError(hint, error.ctx) from None

    def _explain_option(self, ctx: click.Context, error: click.NoSuchOption) -> click.NoSuchOption:
        """Return the error of an unknown option with the nearest of this command, and where all are."""
        name, page = error.option_name, name_manual_page(ctx)
        own = [flag for one in self.params for flag in one.opts]
        near = did_you_mean(name, own, "--help lists them")
        return click.NoSuchOption(name, f"No such option {name!r}: {near} ({page})", ctx=ctx)


def name_manual_page(ctx: click.Context) -> str:
    """Return the place in the manual that is on a command."""
    words = ctx.command_path.split()[1:]
    return "manual: commands.md" + (f"#pmlopt-{'-'.join(words)}" if words else "")
