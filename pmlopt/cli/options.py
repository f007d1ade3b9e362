"""Shared parts of the commands: what makes a function a command, and common options."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, isfunction, signature
from pathlib import Path
from shlex import quote
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NoReturn,
    ParamSpec,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from pmlopt.cli.completion import complete_by
from pmlopt.cli.exits import (
    BAD_INPUT,
    BUG,
    NOT_SOLVED,
    exit_with_error,
    handle_stream_errors,
    prints_json,
)
from pmlopt.cli.printing import (
    check_output,
    print_json,
    print_result,
    show_status,
    warn_of_exact_counts,
)
from pmlopt.cli.strict_command import StrictCommand
from pmlopt.cli.targets import PATH, PRINTS_APART, TARGET, check_file_formats, check_files
from pmlopt.cli.terminal import print_line
from pmlopt.core.failures import is_out_of_memory, is_worker_lost
from pmlopt.core.files import disk
from pmlopt.core.files.disk import redirect_standard_output
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.errors import (
    CountedTableWarning,
    FormerNameWarning,
    InfeasibleError,
    InputError,
    LabelWarning,
    MissingExtraError,
    PmloptError,
    SolverError,
    WorkerLostError,
)

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.programs.program import Program
    from pmlopt.programs.result import Result


class NumberOption(click.Option):
    """An option that tells how to write a number with a comma."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert the text of the option; the error for a number with commas has the number to write."""
        try:
            return super().type_cast_value(ctx, value)
        except click.BadParameter as error:
            texts = map(str, value if self.multiple else (value,))
            is_whole = "integer" in error.message
            hints = (explain_commas(text, is_whole) for text in texts)
            message = error.message + next(filter(None, hints), "")
            raise click.BadParameter(message, ctx=error.ctx, param=error.param) from None


def explain_commas(text: str, is_whole: bool = False) -> str:
    """Return how to write a number with commas; empty for other texts.

    Args:
        text: of the option.
        is_whole: whether the option takes whole numbers only.

    Examples:
        >>> explain_commas("1,4"), explain_commas("45,000,000"), explain_commas("1,000", True)
        (' Write 1.4.', ' Write 45000000.', ' Write 1000.')
        >>> explain_commas("1,000"), explain_commas("a,b")
        (' Write 1.000 or 1000, whichever is meant.', '')
    """
    plain, point = text.strip().replace(",", ""), text.strip().replace(",", ".")
    if not is_whole and re.fullmatch(r"[+-]?\d{1,3},\d{3}", text.strip()):
        return f" Write {point} or {plain}, whichever is meant."
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", text.strip()):
        return f" Write {plain}."
    if not is_whole and re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", text.strip()):
        return f" Write {point}."
    return ""


PRINTED_WARNINGS = (LabelWarning, FormerNameWarning, CountedTableWarning)
"""Warnings that a command prints in its own form."""

A = ParamSpec("A")


def handle_exit_codes(command: Callable[A, None], spends: bool = False) -> Callable[A, None]:
    """Wrap a command so that pmlopt errors become messages and exit codes.

    Args:
        command: to run.
        spends: whether it releases or records something: then its output must be writable before it begins.
    """

    @wraps(command)
    def run_command(*args: A.args, **kwargs: A.kwargs) -> None:
        try:
            with handle_stream_errors():
                if spends:
                    check_output()
                with _redirect_printing(), _print_own_warnings():
                    command(*args, **kwargs)
        except Exception as error:
            _exit_with_message(error)

    return run_command


def _exit_with_message(error: Exception) -> NoReturn:
    """Print an error's message, and exit with its code."""
    short_of_memory = not isinstance(error, PmloptError) or isinstance(error, MissingExtraError)
    if short_of_memory and is_out_of_memory(error):
        message = (
            "this needs more memory than there is: give fewer letters or outputs, such as groups of values "
            f"({error})"
        )
        exit_with_error(message, NOT_SOLVED, MemoryError)
    if isinstance(error, PmloptError):
        unsolved = isinstance(error, SolverError | InfeasibleError | WorkerLostError)
        exit_with_error(
            error, NOT_SOLVED if unsolved and not isinstance(error, InputError) else BAD_INPUT
        )
    if is_worker_lost(error):
        exit_with_error(
            f"a worker was lost ({type(error).__name__}), such as one that took more memory than there is: "
            "repeat the command, with fewer workers",
            NOT_SOLVED,
            type(error),
        )
    traceback.print_exception(error)  # a bug of pmlopt's must not look like a claim that fails
    sys.exit(BUG)


@contextmanager
def _redirect_printing() -> Iterator[None]:
    """Redirect printed text to standard error where a file goes to standard output."""
    context = click.get_current_context(silent=True)
    if context is None or not context.meta.get(PRINTS_APART):
        yield
        return
    with redirect_standard_output(sys.stdout), redirect_stdout(sys.stderr):
        yield


@contextmanager
def _print_own_warnings() -> Iterator[None]:
    """Print label and former-name warnings once each, as plain lines."""
    with warnings.catch_warnings():
        for kind in PRINTED_WARNINGS:
            warnings.simplefilter("always", kind)
        usual, printed = warnings.showwarning, set[str]()

        def print_warning(
            message: Warning | str, category: type[Warning], *place: Any, **more: Any
        ) -> None:
            if not issubclass(category, PRINTED_WARNINGS):
                usual(message, category, *place, **more)
            elif str(message) not in printed:
                printed.add(str(message))
                print_line(f"warning: {message}", err=True)

        warnings.showwarning = print_warning
        yield


@contextmanager
def _redirect_solver_logs() -> Iterator[None]:
    """Redirect solver logs, also from C code, to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _import_modules(_: click.Context, __: click.Parameter, modules: Sequence[str]) -> None:
    """Import modules by name, also from the current folder."""
    if modules:
        sys.path.append(str(Path.cwd()))
    for name in modules:
        try:
            import_module(name)
        except Exception as cause:  # a person's own module may raise anything
            raise click.UsageError(f"--import {name}: {type(cause).__name__}: {cause}") from None


imports = click.Option(
    ["--import"],
    multiple=True,
    expose_value=False,
    callback=_import_modules,
    is_eager=True,
    metavar="MODULE",
    help="Import a module of yours first, whose requirements and utilities are known by name then.",
)


@light_dataclass(frozen=True)
class OptionNote:
    """What an annotation `Annotated[kind, help, flags, type, complete]` states of the option of a parameter.

    The texts are the help and, where they do not follow from the name of the parameter (`derive_flags`),
    the flags; the click type and what completes the option follow where there are any.
    """

    help: str
    flags: tuple[str, ...]
    type: Any
    complete: Callable[[], Iterable[str]] | None

    @classmethod
    def read(cls, key: str, hint: Any) -> OptionNote:
        """Read the note of a parameter from its name and its annotation."""
        notes = hint.__metadata__
        texts = [one for one in notes if isinstance(one, str)]
        flags = texts[1] if len(texts) > 1 else derive_flags(key)
        kind = next((one for one in notes if isinstance(one, click.ParamType | tuple)), None)
        complete = next((one for one in notes if isfunction(one)), None)
        return cls(texts[0], tuple(flags.split("/")), kind, complete)


def derive_flags(key: str) -> str:
    """Return the flags of the option of a parameter that states none.

    Examples:
        >>> derive_flags("keep_order"), derive_flags("prior_file"), derive_flags("output")
        ('--keep-order', '--prior', '-o/--output')
    """
    plain = key.removesuffix("_file").removesuffix("_name").replace("_", "-")
    return "-o/--output" if key == "output" else f"--{plain}"


@light_dataclass(frozen=True)
class ArgumentNote:
    """An annotation that makes a parameter a positional argument, what completes it, and its click type."""

    metavar: str
    complete: Callable[[], Iterable[str]] | None = None
    type: click.Path | None = None


def add_command(
    group: click.Group, name: str = "", extra: Sequence[click.Parameter] = (), spends: bool = False
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that registers a function with annotated parameters as a command.

    A parameter whose type is a dataclass gathers options: the fields of the class. What has no default and
    may not be None is required; a truth value is a flag, and a tuple is given once for each entry. A command
    that `spends`, by a release or a record, is refused where its output cannot be written.
    """

    def decorate_function(function: Callable[..., None]) -> click.Command:
        @wraps(function)
        def run_function(**given: Any) -> None:
            check_files(command.params, given)
            hints = get_type_hints(function, include_extras=True)
            gathered: dict[str, Any] = {key: one for key, one in hints.items() if is_dataclass(one)}
            for key, kind in gathered.items():
                given[key] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
            function(**given)

        command: click.Command = group.command(
            name or function.__name__,
            cls=StrictCommand,
            list_parameters=lambda: [*_list_parameters(function), *extra],
        )(handle_exit_codes(run_function, spends))
        return command

    return decorate_function


def _list_parameters(function: Callable[..., None]) -> list[click.Parameter]:
    """List the options and arguments of a function with annotated parameters."""
    hints = get_type_hints(function, include_extras=True)
    found: list[click.Parameter] = []
    for key, one in signature(function).parameters.items():
        if is_dataclass(hints[key]):
            found += _list_options(hints[key])
        else:
            found.append(_make_parameter(key, hints[key], one.default))
    return found


def _list_options(kind: Any) -> list[click.Parameter]:
    """List the options of a dataclass's fields, and its additional ones."""
    hints = get_type_hints(kind, include_extras=True)
    own_first = sorted(fields(kind), key=lambda one: one.name not in kind.__annotations__)
    own = [_make_parameter(one.name, hints[one.name], one.default) for one in own_first]
    return [*own, *getattr(kind, "EXTRA", ())]


def _make_parameter(key: str, hint: Any, default: Any) -> click.Parameter:
    """Build the click option or argument of one parameter."""
    kind, last = hint.__origin__, hint.__metadata__[-1]
    note = last if isinstance(last, ArgumentNote) else OptionNote.read(key, hint)
    optional = type(None) in get_args(kind)
    kind = next(one for one in get_args(kind) if one is not type(None)) if optional else kind
    several = get_origin(kind) is tuple
    kind = get_args(kind)[0] if several else kind
    given = default if default not in (Parameter.empty, MISSING) else None
    required = (
        given is None and not optional and kind is not bool and not (several and default == ())
    )
    choice: Any = PATH if kind is Path else kind
    if get_origin(kind) is Literal:
        choice = click.Choice(get_args(kind))
    completes: dict[str, Any] = (
        {} if note.complete is None else {"shell_complete": complete_by(note.complete)}
    )
    if isinstance(note, ArgumentNote):
        return click.Argument(
            [key], type=note.type or choice, metavar=note.metavar, nargs=-1 if several else 1,
            required=required, **completes,
        )  # fmt: skip
    more: dict[str, Any] = {} if given is None or several else {"default": given}
    more |= completes
    shown = bool(more) and kind is not bool and given != Path("-")
    more |= {"is_flag": True} if kind is bool else {"type": note.type or choice}
    return NumberOption(
        [*note.flags, key], help=note.help, multiple=several,
        required=required, show_default=shown, **more,
    )  # fmt: skip


def refuse_options(*rules: tuple[object, str]) -> None:
    """Raise an error with the text of the first rule whose condition holds.

    Args:
        rules: whether options do not go together, and what to say then.

    Raises:
        InputError: a condition is true.

    Examples:
        >>> refuse_options((False, "give --prior"), (None, "give --epsilon"))
    """
    for is_wrong, text in rules:
        if is_wrong:
            raise InputError(text)


json_option = click.Option(["--json"], is_flag=True, expose_value=False, help="Print JSON.")
"""By which a command prints JSON; see `prints_json`."""
Plot: TypeAlias = Annotated[
    Path | None, "Draw the mechanism, or the curve: .png, .pdf or .svg.", TARGET
]


@light_dataclass(frozen=True, kw_only=True)
class SolverChoice:
    """The options on how to solve and what to print."""

    solver: Annotated[
        str, "auto, or a method by name: one that does not solve the problem lists those that do."
    ] = "auto"
    time_limit: Annotated[
        float | None, "Seconds for all methods together; in a sweep for each point."
    ] = None
    tolerance: Annotated[
        float | None,
        "Largest certified gap: a share of the utility's range, or nats where a level is sought; 1e-7 where "
        "left out (1e-6 for trade-offs).",
    ] = None
    solver_option: Annotated[
        tuple[str, ...],
        "An option of the solver that --solver names, as key=value; may be given several times.",
    ] = ()
    plot: Plot = None

    EXTRA: ClassVar[tuple[click.Option, ...]] = (json_option,)


def read_solver_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse solver options from `key=value` texts; values are JSON or text.

    Raises:
        InputError: a text has no equals sign, or a key stands twice.
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not key or key in found:
            raise InputError(f"--solver-option takes key=value, each key once, not {pair!r:.60}")
        try:
            found[key] = json.loads(text)
        except ValueError:
            found[key] = text
    return found


@light_dataclass(frozen=True, kw_only=True)
class SolveOptions(SolverChoice):
    """The common options of solving commands: solver, output and report files."""

    output: Annotated[
        Path | None,
        "Write .json or .npz (with the certificate), or the matrix as .csv, .tsv, .npy, .mat, .parquet or "
        ".xlsx; - for JSON to standard output.",
        TARGET,
    ] = None
    isolated: Annotated[
        bool,
        "Run each solver in a process of its own: one that hangs is stopped, and the next is tried.",
    ] = False
    verbose: Annotated[bool, "Print the solver's log."] = False
    mps: Annotated[Path | None, "Write the LP in the MPS format too.", TARGET] = None

    EXTRA = (json_option, imports)

    def check(self) -> None:
        """Raise an error for unknown output formats, before solving."""
        check_file_formats(self.output, self.plot)

    @property
    def solve_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `pmlopt.solve`."""
        names = ("solver", "time_limit", "tolerance", "isolated", "verbose")
        own = {name: getattr(self, name) for name in names}
        return {**own, "solver_options": read_solver_options(self.solver_option)}

    def solve_and_write(
        self,
        declare: Callable[[], Program[Any]],
        solver: str = "auto",
        solver_options: Mapping[str, Any] | None = None,
    ) -> Result[Any]:
        """Build and solve a program, and write the output files.

        Args:
            declare: makes the program.
            solver: what solves it where the command names none.
            solver_options: those of that solver, which options of the command replace one by one.
        """
        how = self.solve_arguments
        if how["solver"].lower() == "auto":
            options = {**(solver_options or {}), **how["solver_options"]}
            how |= {"solver": solver, "solver_options": options}
        with show_status("solving"):
            from pmlopt.programs.solving import solve

            program = declare()
            prior = getattr(program, "prior", None)
            self._check_symmetric(prior)
            if self.plot is not None and prior is None:
                raise InputError("--plot draws a mechanism for a prior, and this problem has none")
            if self.mps is not None:
                program.write_mps(self.mps)
            with _redirect_solver_logs() if self.verbose else nullcontext():
                result = solve(program, **how)
        if self.output is not None:
            result.save(self.output)
            warn_of_exact_counts(self.output, result)
        if self.plot is not None:
            from pmlopt.programs.plots import draw_mechanism, save_figure

            assert prior is not None
            save_figure(draw_mechanism(prior, result.mechanism), self.plot)
        return result

    def solve_and_exit(self, declare: Callable[[], Program[Any]], title: str) -> NoReturn:
        """Solve a program, print the result, and exit with its code."""
        result = self.solve_and_write(declare)
        self.print_answer(result, title)
        sys.exit(exit_code_of(result))

    def _check_symmetric(self, prior: Prior | None) -> None:
        """Raise an error for output files that orbit mechanisms do not support."""
        from pmlopt.data.symmetry import SymmetricPrior

        if isinstance(prior, SymmetricPrior):
            if self.output is not None:
                disk.get_file_format(self.output, (".json",))
            if self.plot is not None:
                prior.check_listable()

    def print_answer(
        self,
        result: Result[Any],
        title: str,
        rows: Sequence[tuple[str, str]] = (),
        record: Mapping[str, Any] | None = None,
    ) -> None:
        """Print a result as a table, or as JSON with additional fields."""
        if prints_json():
            print_json("result", {**(record or {}), **result.to_dict()})
            return
        print_result(result, title, rows)
        if self.output is not None and self.output.suffix == ".json":
            print_line(
                f"Whoever has the file checks it by: pmlopt verify {quote(str(self.output))}"
            )


def exit_code_of(result: Result[Any]) -> int:
    """Return the exit code of a result: `NOT_SOLVED` after a time limit or violation, else 0."""
    return NOT_SOLVED if result.status.value in ("limit_reached", "violated") else 0
