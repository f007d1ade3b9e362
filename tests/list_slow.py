"""Write tests/slow.txt from a report of durations.

    pytest -q --durations=0 -vv > report.txt
    python tests/list_slow.py report.txt

A test is slow if its cases take longer than 0.03 s together; where a few of many cases do, these are listed.
Files whose packages take a second to load are slow as a whole, and not even imported for `-m fast`.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

LONGEST_FAST = 0.03
"""Seconds: so that what is left takes less than 25 on two cores, half of which is collecting."""

HEAVY = (
    "pmlopt/adapters/dask.py",
    "pmlopt/adapters/expressions.py",
    "pmlopt/adapters/measurements.py",
    "pmlopt/adapters/transformer.py",
    "tests/adapters/test_engines.py",
    "tests/adapters/test_expressions.py",
    "tests/adapters/test_measurements.py",
    "tests/adapters/test_spark.py",
    "tests/adapters/test_transformer.py",
    "tests/programs/test_time_limits.py",
)
"""Files that load scikit-learn, OpenDP, Polars, Dask or Spark, or declare dozens of programs for cases."""

LINE = re.compile(r"^\s*(\d+\.\d+)s (?:call|setup|teardown)\s+(\S.*?)\s*$", re.MULTILINE)


def seconds(report: str) -> dict[str, float]:
    """The time of each case, by its id."""
    found: defaultdict[str, float] = defaultdict(float)
    for duration, case in LINE.findall(report):
        found[case] += float(duration)
    return dict(found)


def slow(cases: Mapping[str, float]) -> Iterable[str]:
    """The tests, or cases of a test, that are slow."""
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for case in cases:
        tests[case.partition("[")[0]].append(case)
    for test, members in tests.items():
        long = [case for case in members if cases[case] > LONGEST_FAST]
        rest = sum(cases[case] for case in members if case not in long)
        if rest > LONGEST_FAST or 2 * len(long) >= len(members):
            yield test
        else:
            yield from long


if __name__ == "__main__":
    found = slow(seconds(Path(sys.argv[1]).read_text("utf-8")))
    listed = sorted({*HEAVY, *(name for name in found if name.partition("::")[0] not in HEAVY)})
    Path(__file__).with_name("slow.txt").write_text("\n".join(listed) + "\n", "utf-8")
