"""The lists of slow and nightly tests name tests that there are, and follow from a report of durations."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from documents import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from list_slow import (
    DAILY_SECONDS,
    HEAVY,
    choose_daily,
    nightly,
    read_nightly,
    seconds,
    slow,
    write_nightly,
)

from conftest import FEW_EXAMPLES, KEPT, NIGHTLY, SLOW, draw_few_examples

REPORT = """
========= slowest durations =========
0.30s call     tests/test_a.py::test_long
0.10s setup    tests/test_a.py::test_set_up
0.10s call     tests/test_a.py::test_set_up
0.20s call     tests/test_a.py::test_cases[x-1]
0.01s call     tests/test_a.py::test_cases[x-2]
0.01s call     tests/test_a.py::test_cases[x-3]
0.07s call     tests/test_a.py::test_many[1]
0.07s call     tests/test_a.py::test_many[2]
0.02s call     tests/test_a.py::test_short
0.25s call     pmlopt/data/prior.py::pmlopt.data.prior.Prior
========= 8 passed =========
"""


def test_what_is_slow() -> None:
    assert sorted(slow(seconds(REPORT))) == [
        "pmlopt/data/prior.py::pmlopt.data.prior.Prior", "tests/test_a.py::test_cases[x-1]",
        "tests/test_a.py::test_long", "tests/test_a.py::test_many", "tests/test_a.py::test_set_up",
    ]  # fmt: skip


DURATIONS = {
    "tests/test_a.py::test_dear": 2.5,
    "tests/test_a.py::test_dear_ones[1]": 9.0,
    "tests/test_a.py::test_dear_ones[2]": 2.1,
    "tests/test_a.py::test_once": 1.9,
    "tests/test_a.py::test_some[1]": 3.0,
    "tests/test_a.py::test_some[2]": 1.0,
    "tests/test_a.py::test_pairs[x-1]": 0.01,
    "tests/test_a.py::test_pairs[x-2]": 0.02,
    "tests/test_a.py::test_pairs[y-1]": 0.05,
    "tests/test_a.py::test_pairs[y-3]": 0.06,
    "tests/test_a.py::test_pairs[x-3]": 0.08,
    "tests/test_a.py::test_pairs[y-2]": 0.07,
    "tests/test_a.py::test_short[1]": 0.1,
    "tests/test_a.py::test_short[2]": 0.1,
    "tests/test_a.py::test_kept[1]": 3.0,
}


def test_what_is_nightly() -> None:
    """Each value of a parameter has a case before the shortest of the others fill up what time is left."""
    found = nightly(DURATIONS, kept=["tests/test_a.py::test_kept[1]"])
    assert found == {
        "tests/test_a.py::test_dear": [],
        "tests/test_a.py::test_dear_ones": [],
        "tests/test_a.py::test_some": ["[1]"],
        "tests/test_a.py::test_pairs": ["[x-3]", "[y-2]"],
    }
    assert read_nightly(write_nightly(found)) == {
        "tests/test_a.py::test_dear", "tests/test_a.py::test_dear_ones", "tests/test_a.py::test_some[1]",
        "tests/test_a.py::test_pairs[x-3]", "tests/test_a.py::test_pairs[y-2]",
    }  # fmt: skip


CASES = st.builds("[{}-{}]".format, st.sampled_from("ab"), st.integers(0, 9))


@given(st.dictionaries(CASES, st.floats(0, 3), min_size=1))
def test_each_test_has_a_daily_case_and_no_second_one_beyond_its_time(
    members: dict[str, float],
) -> None:
    chosen = choose_daily(members)
    assert chosen[0] == min(members, key=lambda case: (members[case], case))
    assert len(chosen) == 1 or sum(members[case] for case in chosen) <= DAILY_SECONDS


def test_what_is_fast_is_not_nightly() -> None:
    many = {f"test[{case}]": 0.001 for case in range(20)} | {
        f"test[a{case}]": 3.0 for case in range(3)
    }
    assert nightly(many) == {"test": ["[a0]", "[a1]", "[a2]"]}


def test_what_is_nightly_is_slow() -> None:
    """So the fast tests are a part of those that the README's command runs."""
    fast = [
        name
        for name in NIGHTLY
        if not {name, name.partition("[")[0], name.partition("::")[0]} & SLOW
    ]
    assert fast == []
    assert set() == NIGHTLY & KEPT


@cache
def list_definitions(path: Path) -> frozenset[str]:
    """List the names of the functions and classes of a file; none where there is no file."""
    source = path.read_text("utf-8") if path.is_file() else ""
    return frozenset(re.findall(r"\b(?:def|class) (\w+)", source))


def test_what_is_listed_is_there() -> None:
    gone = []
    for name in {name.partition("[")[0] for name in SLOW | NIGHTLY} - {"", *HEAVY}:
        path, *_, test = name.split("::")
        is_defined = test.rpartition(".")[2] in list_definitions(ROOT / path)
        if not is_defined and not test.startswith(path[:-3].replace("/", ".")):
            gone.append(name)
    gone += [name for name in HEAVY if not (ROOT / name).is_file()]
    assert not gone, f"take them off tests/slow.txt or tests/nightly.txt: {gone}"


def test_what_is_kept_fast_would_be_slow() -> None:
    for case in KEPT - {""}:
        assert {case, case.partition("[")[0]} & SLOW, f"{case} is fast: take it off tests/kept.txt"


@pytest.mark.parametrize(
    ("count", "drawn"), [(20, FEW_EXAMPLES), (FEW_EXAMPLES - 1, FEW_EXAMPLES - 1)]
)
def test_what_is_kept_draws_few_examples(count: int, drawn: int) -> None:
    seen: list[float] = []

    @settings(max_examples=count, deadline=None, database=None)
    @given(st.floats(0, 1))
    def test(number: float) -> None:
        seen.append(number)

    draw_few_examples(test)
    test()
    assert len(seen) == drawn


WHOLLY_SLOW = (
    "tests/core/files/test_files.py"
    "::test_an_archive_that_expands_to_far_more_than_it_has_is_refused"
)


def test_what_is_collected_as_fast() -> None:
    """Doctests are fast, too; files without any are not looked through, nor are cases of slow tests made."""
    listed = [
        "pmlopt/core/numbers/roots.py",
        "tests/core/files/test_files.py",
        "tests/programs/subconvex",
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "fast", "--collect-only", *listed]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "pmlopt/core/numbers/roots.py::pmlopt.core.numbers.roots" in found
    names = {line for line in found.splitlines() if "::" in line}
    kept = {case for case in KEPT if case.startswith("tests/programs/subconvex/")}
    assert kept
    assert all(
        any(name.partition("[")[0] == case or name == case for name in names) for case in kept
    )
    assert "tests/core/files/test_files.py::test_a_file_has_one_writer_at_a_time" in names
    assert WHOLLY_SLOW in SLOW
    assert WHOLLY_SLOW not in names


def test_each_test_is_fast_or_slow(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("fast") is not None
    assert request.node.get_closest_marker("slow") is None
