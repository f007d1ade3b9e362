"""Dates and times in files of SPSS, Stata and SAS: numbers since an origin, which a format shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import pyarrow
from pmlopt.errors import FileFormatError

_DAY, _SECOND = 86_400_000_000, 1_000_000
_UNIX = datetime(1970, 1, 1)

_SPSS_DATES = "DATE|ADATE|EDATE|JDATE|SDATE|QYR|MOYR|WKYR"
_SAS_DATES = r"DATE|WEEKDAT[EX]|JULIAN|MONYY|(MMDDYY|DDMMYY|YYMMDD)[BCDNPS]?|(B8601|E8601|IS8601)DA"
_SAS_TIMES = r"TIME|HHMM|TOD|TIMEAMPM|(B8601|E8601|IS8601)TM"
_SAS_MOMENTS = r"DATETIME|DTDATE|DATEAMPM|MDYAMPM|(B8601|E8601|IS8601)D[TN]"
_FORMATS: dict[str, tuple[tuple[str, str, int], ...]] = {
    "spss": (
        (_SPSS_DATES, "date", _SECOND),
        ("DATETIME|YMDHMS", "moment", _SECOND),
        ("D?TIME", "time", _SECOND),
    ),
    "stata": (
        (r"%tc[Hh][Hh]:MM(:SS)?", "time", 1_000),
        (r"%-?t?d.*", "date", _DAY),
        (r"%-?tc.*", "moment", 1_000),
    ),
    "sas": (
        (_SAS_DATES, "date", _DAY),
        (_SAS_MOMENTS, "moment", _SECOND),
        (_SAS_TIMES, "time", _SECOND),
    ),
}
"""By the program the names of formats, what they show, and the microseconds of a unit.

Stata's weeks, months, quarters and moments with leap seconds (`%tC`) are numbers here.
"""

_DEFAULT_FORMATS = {
    "spss": {"date": "DATE11", "moment": "DATETIME23.3"},
    "stata": {"date": "%td", "moment": "%tc"},
    "sas": {"date": "DATE9", "moment": "DATETIME22.3"},
}
"""The formats of dates and moments that come from files of other programs."""

_ORIGINS = {
    "spss": datetime(1582, 10, 14),
    "stata": datetime(1960, 1, 1),
    "sas": datetime(1960, 1, 1),
}


@dataclass(frozen=True)
class TimeFormat:
    """How the numbers of a column are dates, moments (dates with times) or times of day.

    Attributes:
        kind: date, moment or time.
        unit: in microseconds.
        origin: the microseconds from 1970 to the number 0; 0 for times.
    """

    kind: str
    unit: int
    origin: int

    @property
    def arrow_type(self) -> Any:
        """Return the Arrow type of such a column in other files."""
        types = {"date": pyarrow.date32(), "moment": pyarrow.timestamp("us")}
        return types.get(self.kind, pyarrow.string())

    def format_number(self, number: float) -> str | None:
        """Write a number as date and time of ISO 8601 with a blank between; None where no year has 4 digits.

        Examples:
            >>> find_time_format("%td", "stata").format_number(366)
            '1961-01-01'
            >>> find_time_format("TIME8", "spss").format_number(3723.5)
            '01:02:03.500000'
        """
        passed = round(number * self.unit)
        if self.kind == "time":
            seconds, rest = divmod(passed, _SECOND)
            sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
            fraction = f".{rest:06}" if rest else ""
            if sign and rest:  # of -0.5 seconds the whole part is -1
                seconds = seconds - 1
                fraction = f".{_SECOND - rest:06}"
            return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
        try:
            moment = _UNIX + timedelta(microseconds=self.origin + passed)
        except OverflowError:
            return None
        is_day = self.kind == "date" and (self.origin + passed) % _DAY == 0
        return str(moment.date() if is_day else moment)

    def parse_text(self, text: str) -> float | None:
        """Return the number that is written as a text; None where none is.

        Examples:
            >>> find_time_format("DATE11", "spss").parse_text("1582-10-15")
            86400.0
        """
        try:
            if self.kind == "time":
                hours, minutes, seconds = text.split(":")
                whole = abs(int(hours)) * 3600 + int(minutes) * 60 + float(seconds)
                passed = round((-whole if text.startswith("-") else whole) * _SECOND)
            else:
                passed = (datetime.fromisoformat(text) - _UNIX) // timedelta(microseconds=1)
                passed -= self.origin
        except (ValueError, TypeError):
            return None
        number = passed / self.unit
        return number if self.format_number(number) == text else None

    def to_arrow(self, column: Any, name: str) -> Any:
        """Convert the numbers of a column to dates, moments, or times as text.

        Raises:
            FileFormatError: a date has a time of day, or is beyond what files hold.
        """
        numbers = np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)
        missing = np.isnan(numbers)
        if self.kind == "time":
            return pyarrow.array(
                [None if gone else self.format_number(one)
                 for one, gone in zip(numbers.tolist(), missing.tolist(), strict=True)],
                pyarrow.string(),
            )  # fmt: skip
        passed = np.where(missing, 0.0, np.round(numbers * self.unit)) + self.origin
        is_odd = np.abs(passed) > 2.0**62
        if self.kind == "date":
            is_odd |= passed % _DAY != 0
        if (is_odd & ~missing).any():
            shown = self.format_number(float(numbers[(is_odd & ~missing).argmax()]))
            raise FileFormatError(
                f"the column {name!r} of dates has {shown or 'a number that is none'}, which only a file of "
                "the same program can hold: write the format of the data"
            )
        moments = pyarrow.array(passed.astype(np.int64), mask=missing).cast(pyarrow.timestamp("us"))
        return moments.cast(self.arrow_type)


def find_time_format(name: str | None, program: str) -> TimeFormat | None:
    """Return what a format of a program (spss, stata or sas) shows; None for numbers and text."""
    bare = name or ""
    if program != "stata":
        bare = re.sub(r"[\d.]+$", "", bare.upper())
    origin = (_ORIGINS[program] - _UNIX) // timedelta(microseconds=1)
    for pattern, kind, unit in _FORMATS[program]:
        if re.fullmatch(pattern, bare):
            return TimeFormat(kind, unit, 0 if kind == "time" else origin)
    return None


def choose_time_format(kind: Any, program: str) -> str | None:
    """Return the format of a program for an Arrow type of dates or moments; None for another type."""
    if pyarrow.types.is_date(kind):
        return _DEFAULT_FORMATS[program]["date"]
    is_moment = pyarrow.types.is_timestamp(kind) and kind.tz is None
    return _DEFAULT_FORMATS[program]["moment"] if is_moment else None


def count_units(column: Any, program: str) -> Any:
    """Convert an Arrow column of dates or moments to the numbers of a program, NaN for missing ones.

    Examples:
        >>> import datetime, pyarrow
        >>> count_units(pyarrow.array([datetime.date(1960, 1, 2), None]), "sas").tolist()
        [1.0, nan]
    """
    about = find_time_format(choose_time_format(column.type, program), program)
    assert about is not None
    passed = (
        column.cast(pyarrow.timestamp("us")).cast(pyarrow.int64()).to_numpy(zero_copy_only=False)
    )
    return (np.asarray(passed, dtype=float) - about.origin) / about.unit
