"""Write tests/slow.txt and tests/nightly.txt from a report of durations.

    pytest -q --durations=0 --durations-min=0 > report.txt
    python tests/list_slow.py report.txt

A test is slow if its cases take longer than 0.03 s together; where a few of many cases do, these are listed.
Files whose packages take a second to load are slow as a whole, and not even imported for `-m fast`.

A test is nightly where its shortest case takes longer than 2 s. Of every other test cases are daily until
they take 0.2 s, and at least one: first one for each value of each parameter, then the shortest. The rest
are nightly, unless they are fast. In the file they stand below their test, which is nightly as a whole where
none does.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
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

DAILY_SECONDS = 0.2
"""Of the cases of a test that are not nightly, together."""

LONGEST_DAILY = 2.0
"""Seconds of the shortest case: a test of which each case takes longer is nightly."""

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


def nightly(cases: Mapping[str, float], kept: Collection[str] = ()) -> Mapping[str, list[str]]:
    """The cases of each test that are nightly, in brackets; none where the test is, as a whole.

    Args:
        cases: the time of each.
        kept: cases, or tests, that are fast whatever they take.
    """
    long = set(slow(cases))
    tests: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for case, duration in cases.items():
        test, bracket, rest = case.partition("[")
        if not {case, test} & set(kept):
            tests[test][bracket + rest] = duration
    found = dict[str, list[str]]()
    for test, members in tests.items():
        if min(members.values()) > LONGEST_DAILY:
            found[test] = []
            continue
        late = sorted(set(members) - set(choose_daily(members)))
        late = [case for case in late if {test, test + case} & long]
        if late:
            found[test] = late
    return found


def choose_daily(members: Mapping[str, float]) -> list[str]:
    """The cases of one test that are daily."""
    shortest_first = sorted(members, key=lambda case: (members[case], case))
    seen = set[tuple[int, str]]()
    covering = list[str]()
    for case in shortest_first:
        values = set(enumerate(case.strip("[]").split("-")))
        if not values <= seen:
            covering.append(case)
            seen |= values
    chosen, used = list[str](), 0.0
    for case in dict.fromkeys(covering + shortest_first):
        used += members[case]
        if chosen and used > DAILY_SECONDS:
            break
        chosen.append(case)
    return chosen


def write_nightly(found: Mapping[str, list[str]]) -> str:
    """The text of tests/nightly.txt."""
    return "".join(f"{line}\n" for test in sorted(found) for line in (test, *found[test]))


def read_nightly(text: str) -> frozenset[str]:
    """The names in tests/nightly.txt, of tests that are nightly as a whole and of cases."""
    lines = text.splitlines()
    names, test = set[str](), ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("["):
            names.add(test + line)
        else:
            test = line
            names |= set() if following.startswith("[") else {test}
    return frozenset(names)


if __name__ == "__main__":
    FOLDER = Path(__file__).parent
    durations = seconds(Path(sys.argv[1]).read_text("utf-8"))
    listed = {name for name in slow(durations) if name.partition("::")[0] not in HEAVY}
    (FOLDER / "slow.txt").write_text("\n".join(sorted({*HEAVY, *listed})) + "\n", "utf-8")
    kept = (FOLDER / "kept.txt").read_text("utf-8").split("\n")
    (FOLDER / "nightly.txt").write_text(write_nightly(nightly(durations, kept)), "utf-8")
