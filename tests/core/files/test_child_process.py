"""Calls in another process: what comes back, and what its end, its time and its memory come to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pmlopt.core.files.child_process import call_in_child
from pmlopt.errors import FileFormatError

MODULE = """
import os, time
from pmlopt.errors import FileFormatError

def turn(content, times):
    return content[::-1] * times

def refuse(content):
    raise FileFormatError("no é: " + content.decode())

def crash(content):
    print("half of an answer", flush=True)
    os.abort()

def fail(content):
    raise RuntimeError("a fault of ours")

def wait(content):
    time.sleep(1000)

def fill(content):
    return bytes(bytearray(2 * 10**9))[:1]
"""


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "ours_elsewhere.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import ours_elsewhere  # type: ignore[import-not-found]

    yield ours_elsewhere
    del sys.modules["ours_elsewhere"]


def test_bytes_come_back_and_refusals_are_those_of_the_function(ours: Any) -> None:
    assert call_in_child(ours.turn, b"a\n\0b", times=2, max_bytes=2**31) == b"b\0\nab\0\na"
    with pytest.raises(FileFormatError, match="no é: x"):
        call_in_child(ours.refuse, b"x", max_bytes=2**31)


@pytest.mark.parametrize("name", ["crash", "fail"])
def test_the_end_of_the_process_is_an_error_of_the_file(ours: Any, name: str) -> None:
    with pytest.raises(FileFormatError, match="ended with the code"):
        call_in_child(getattr(ours, name), b"", max_bytes=2**31)


def test_time_is_limited(ours: Any) -> None:
    with pytest.raises(FileFormatError, match=r"more than 0\.5 seconds"):
        call_in_child(ours.wait, b"", max_bytes=2**31, seconds=0.5)


@pytest.mark.skipif(sys.platform != "linux", reason="no other system enforces the limit")
def test_memory_is_limited(ours: Any) -> None:
    with pytest.raises(FileFormatError, match="more memory"):
        call_in_child(ours.fill, b"", max_bytes=10**8)


def test_without_an_interpreter_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(FileFormatError, match="interpreter"):
        call_in_child(bytes, b"", max_bytes=1)
