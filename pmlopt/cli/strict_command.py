"""Commands that reject repeated options, and make their parameters when they first need them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import click

from pmlopt.cli.help_pages import GroupedCommand
from pmlopt.cli.meant_names import OPTIONS_MEANT


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
        try:
            given = self.make_parser(ctx).parse_args(list(args))[2]
        except click.NoSuchOption as error:
            self._suggest_option(ctx, error.option_name)
            raise
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

    def _suggest_option(self, ctx: click.Context, name: str) -> None:
        """Suggest this command's option of another or former name, if any."""
        own = {flag for one in self.params for flag in one.opts}
        for meant in OPTIONS_MEANT.get(name, ()):
            if meant in own:
                message = f"No such option {name!r}: write {meant}"
                raise click.NoSuchOption(name, message, ctx=ctx) from None
