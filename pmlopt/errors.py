"""The exceptions of pmlopt, all children of `PmloptError`.

Each message states what is wrong, with which value, and what to do about it. Errors in what a
person typed are children of `InputError`, which is a `ValueError` too.
"""

from __future__ import annotations

import re
from typing import Any

_FUNCTION = re.compile(
    r"<(?:built-in )?function (?:[\w.]|<locals>)*?(<lambda>|\w+)(?: at 0x[0-9a-fA-F]+)?>"
)
_OBJECT = re.compile(r"<(?:[\w.]|<locals>)*?(\w+) object at 0x[0-9a-fA-F]+>")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]*")
_CELL = r"(?:nan|inf|[\s\d.,eE+\-()\[\]])"
_NUMBERS = re.compile(rf"[\[(]{{2,}}{_CELL}{{80,}}|\[{_CELL}{{160,}}")
_ARRAY = re.compile(
    rf"array\([\[(]+(?:{_CELL}{{40,}}(?:shape=\([\d, ]+\))?(?:, dtype=\w+)?\)?|[\d.]*\.\.\.[^:]{{0,20}}?\)+)"
)
# 400 characters or more without a space between them are cut to the first 60
_LONG = re.compile(r"(\S{60})\S{340,}")


class PmloptError(Exception):
    """The base of all errors that pmlopt raises deliberately.

    Whatever value a message quotes, it has no address in memory, no nameless function and no whole matrix.

    Examples:
        >>> print(InputError(f"the bound is {object()}, not {[[0.25] * 9] * 9}: give a number"))
        the bound is an object of the class object, not a matrix or list of numbers: give a number
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(
            *(shorten_quoted_values(one) if isinstance(one, str) else one for one in arguments)
        )


def shorten_quoted_values(message: str) -> str:
    """Shorten the values quoted in a message.

    Examples:
        >>> shorten_quoted_values("give a number, not <function f.<locals>.<lambda> at 0x7f00>")
        'give a number, not a function without a name'
        >>> len(shorten_quoted_values("x" * 9999)) < 100
        True
    """
    # Characters of a message.
    max_message = 2000

    def describe_function(found: re.Match[str]) -> str:
        return (
            "a function without a name" if found[1] == "<lambda>" else f"the function {found[1]!r}"
        )

    text = _OBJECT.sub(r"an object of the class \1", _FUNCTION.sub(describe_function, message))
    text = _ADDRESS.sub("", text).replace("<lambda>", "lambda")
    text = _NUMBERS.sub(_describe_numbers, _ARRAY.sub(_describe_numbers, text))
    text = _LONG.sub(lambda found: f"{found[1]}...{_get_end_punctuation(found[0])}", text)
    if len(text) <= max_message:
        return text
    return f"{text[: max_message * 2 // 3]} ... {text[-max_message // 4 :]}"


def _describe_numbers(found: re.Match[str]) -> str:
    """Describe a long row of numbers in few words."""
    return f"a matrix or list of numbers{_get_end_punctuation(found[0])}"


def _get_end_punctuation(text: str) -> str:
    """Return the trailing punctuation of a value."""
    return text[len(text.rstrip(" .,;:-")) :]


class InputError(PmloptError, ValueError):
    """An argument or input file is invalid."""


class LabelWarning(UserWarning):
    """Labels differ only in how they are written, or one may mean a missing cell."""


class CountedTableWarning(UserWarning):
    """A table that may be one of shares or counts was counted as rows of people."""


class SampleSupportWarning(UserWarning):
    """The least and the largest value of a sample were taken as the ends of its support."""


class FormerNameWarning(FutureWarning):
    """A name of an earlier version was given, which the next version no longer accepts."""


class PriorError(InputError):
    """A prior, a table of counts or a list of samples is not usable."""


class MechanismError(InputError):
    """A mechanism matrix, its labels, or its match with a prior is not usable."""


class QueryError(InputError):
    """A query on a dataset of records has an impossible parameter, or cannot be used as requested."""


class PrivacyError(InputError):
    """A privacy requirement has an impossible parameter, or lies outside a theorem's domain."""


class UtilityError(InputError):
    """A gain or loss is not finite, has the wrong shape, or cannot be computed on the labels."""


class ProgramError(InputError):
    """A design problem cannot be declared, extended or written as requested."""


class FileFormatError(InputError):
    """A file cannot be read, or does not hold what its ending promises."""


class InstanceError(InputError):
    """A problem file has an unknown key, a missing key or a value of the wrong kind."""


class SweepError(InputError):
    """A sweep cannot be declared, handed to its executor, continued or written as requested."""


class SweepStoppedError(PmloptError):
    """The executor of a sweep broke before every point was solved.

    `sweep` carries the `Sweep` of the rows that are finished. Where a table was requested they are on
    disk too, and the same call goes on after them.
    """

    def __init__(self, message: str, sweep: Any | None = None) -> None:
        super().__init__(message)
        self.sweep = sweep


class WorkerLostError(PmloptError):
    """A worker of an executor was lost, such as one that was killed because it took too much memory.

    What was finished is kept, and the same call goes on after it.
    """


class MissingExtraError(PmloptError, ImportError):
    """An optional dependency is needed; the message names the extra to install."""


class InfeasibleError(PmloptError):
    """No mechanism satisfies the constraints. A design without them is always feasible, so the
    constraints that were added to it are the reason.
    """


class SolverError(PmloptError):
    """No solver found a mechanism, or what was found contradicts itself.

    A mechanism that is feasible is a `Result` and no error, however large its gap is. `result` carries the
    certified `Result` whose value is beyond its own bound, or None where there is none.
    """

    def __init__(self, message: str, result: Any | None = None) -> None:
        super().__init__(message)
        self.result = result


class SolverUnavailableError(SolverError, InputError):
    """A solver was requested by a name that is unknown, or that is not installed."""


class SolverOptionError(SolverUnavailableError):
    """A solver does not know an option, or does not take its value; or the method takes no options."""
