"""Streams of many people: what they share, and the file that keeps them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import PML, Chain, Stream
from pmlopt.core import files
from pmlopt.errors import FileFormatError, MechanismError, PrivacyError
from pmlopt.releases import Streams, linear_caps

CHAIN = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])


def begun() -> Streams:
    return Streams(Stream(CHAIN, PML(0.8), "hamming", caps=linear_caps(0.7, 5)))


def walked(many: Streams, steps: int, people: int, seed: int) -> list[dict[Any, Any]]:
    """Some people, of whom some come late and some are away at a step."""
    rng, told = np.random.default_rng(seed), []
    for step in range(steps):
        here = [k for k in range(people) if k <= people // 2 + step and rng.random() < 0.8]
        told.append(
            many.release({f"p{k}": CHAIN.labels[rng.integers(2)] for k in here}, int(rng.integers(99)))
        )
    return told


def test_each_person_has_the_stream_of_the_own_outputs() -> None:
    many = begun()
    told = walked(many, 5, 12, 1)
    assert set(many.people) == {person for step in told for person in step}
    for person in many.people:
        own, first = Stream(CHAIN, PML(0.8), "hamming", caps=linear_caps(0.7, 5)), True
        for step in told:
            if person in step:
                own.record(step[person])
                first = False
            elif not first:
                own.skip()
        assert many.stream(person).history == own.history
        assert many.levels[person] == pytest.approx(own.level, abs=1e-12)
    assert many.level == max(many.levels.values()) <= 0.8
    alike = begun()  # people to whom the same was told share one design
    alike.release(dict.fromkeys(map(str, range(200)), "home"), seed=3)
    assert len({id(alike._at(place)) for place in alike._place.values()}) <= 2


def test_a_file_holds_all_of_them(tmp_path: Path) -> None:
    path, many = tmp_path / "streams.json", begun()
    many.save(path)
    walked(many, 4, 8, 5)
    with Streams.open(path) as stored:
        walked(stored, 4, 8, 5)
    again = Streams.load(path)
    assert again.levels == many.levels
    assert [again.stream(who).history for who in again.people] == [
        many.stream(who).history for who in many.people
    ]
    assert again.release({"p1": "home"}, 5) == many.release({"p1": "home"}, 5)
    text = path.read_text()
    for changed in (text.replace("0.9", "0.8"), text[:-20], text.replace("pmlopt-streams-2", "other"), "{}"):
        path.write_text(changed)
        with pytest.raises(FileFormatError):
            Streams.load(path)
    with pytest.raises(FileFormatError):
        many.save(tmp_path / "streams.csv")


def test_a_block_that_fails_or_is_interrupted_counts_nothing_and_lets_the_next_one_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "streams.json"
    begun().save(path)
    before = path.read_bytes()
    with pytest.raises(MechanismError), Streams.open(path) as stored:
        stored.release({**stored.release({"a": "home"}, seed=3), "b": "no state"})
    assert path.read_bytes() == before

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    for place, name in ((Streams, "release"), (files, "write_whole")):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, interrupted)
            with pytest.raises(KeyboardInterrupt), Streams.open(path) as stored:
                stored.release({"ann": "home"}, 1)
        assert path.read_bytes() == before
        assert not list(tmp_path.glob("*.lock"))
    with Streams.open(path) as stored:
        told = stored.release({"ann": "home"}, 1)
    assert Streams.load(path).stream("ann").history == (told["ann"],)


def test_two_writers_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "streams.json"
    begun().save(path)

    def write(who: str) -> None:
        for _ in range(3):
            with Streams.open(path) as stored:
                stored.release({who: "home", "both": "out"})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ["ann", "bob"]))
    assert len(Streams.load(path).stream("both").history) == 6


def test_a_state_that_cannot_be_is_refused_for_all() -> None:
    many = Streams(Stream(Chain([1.0, 0.0], np.eye(2)), PML(1.0), "hamming"))
    with pytest.raises(MechanismError, match="'b' cannot be in the state 1"):
        many.release({"a": 0, "b": 1})
    assert many.people == ()
    assert many.level == 0
    started = Stream(CHAIN, PML(1.0), "hamming")
    started.skip()
    with pytest.raises(PrivacyError, match="of which nothing is"):
        Streams(started)
