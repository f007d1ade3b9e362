"""Crowds and streams of many people: what is told of each, what they share, and the files that keep them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.streams import random_chain

from pmlopt import PML, Chain, Stream
from pmlopt.core.files import disk
from pmlopt.errors import FileFormatError, MechanismError, PrivacyError
from pmlopt.releases import StreamPopulation, Streams, linear_caps
from pmlopt.releases.accounts.array_files import read_arrays, write_arrays
from pmlopt.releases.streams import per_person
from pmlopt.releases.streams.population import FORMAT, POPULATION_FILE_VERSION

CHAIN = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])


def moved(rng: np.random.Generator, chain: Chain, states: np.ndarray, time: int) -> np.ndarray:
    return np.array([rng.choice(chain.size, p=chain.kernel(time)[state]) for state in states])


@pytest.mark.parametrize(
    ("kind", "designs"),
    [
        ("plain", 1),
        *((kind, 3) for kind in ("plain", "zeros", "absorbing", "moves", "rare", "by step")),
    ],
)
def test_each_person_is_told_of_within_epsilon_and_exactly_accounted(
    kind: str, designs: int
) -> None:
    rng = np.random.default_rng(2)
    chain, epsilon, people = random_chain(rng, 3, 6, kind), 0.8, 8
    first = Stream(chain, PML(epsilon), "absolute", caps=linear_caps(0.7, 4))
    crowd, own = StreamPopulation(first, people, designs), [first.copy() for _ in range(people)]
    states = rng.choice(3, size=people, p=chain.initial)
    for time in range(1, 6):
        mechanisms = [crowd.mechanism(person) for person in range(people)]
        told = crowd.release(states, rng)
        for person, stream in enumerate(own):
            stream.record(told[person], mechanisms[person])
            assert crowd.levels[person] == pytest.approx(stream.level, abs=1e-12)
            assert stream.level <= epsilon + 1e-12
            assert crowd.history(person) == stream.history
        states = moved(rng, chain, states, time)
    assert crowd.level == pytest.approx(max(stream.level for stream in own), abs=1e-12)


def test_values_that_count_no_more_are_bounded() -> None:
    rng = np.random.default_rng(4)
    chain, people = Chain([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]]), 6
    first = Stream(chain, PML(0.6), "hamming")
    crowd, own = StreamPopulation(first, people, 2), [first.copy() for _ in range(people)]
    states = rng.choice(2, size=people)
    for time in range(1, 12):
        mechanisms = [crowd.mechanism(person) for person in range(people)]
        told = crowd.release(states, rng)
        for person, stream in enumerate(own):
            stream.record(told[person], mechanisms[person])
            assert stream.level <= crowd.levels[person] + 1e-12
        states = moved(rng, chain, states, time)
    assert len(crowd._histories.times) < 2 * 11  # some are not kept
    assert crowd.level <= 0.6 + 1e-12


def test_one_history_has_the_design_of_its_stream() -> None:
    first = Stream(Chain([0.5, 0.3, 0.2], np.eye(3)), PML(0.8), "hamming", caps=[0.4, 0.8])
    used = first.mechanism.matrix.any(axis=0)
    found = StreamPopulation(first, 4).mechanism(0).matrix
    assert found == pytest.approx(first.mechanism.matrix[:, used], abs=1e-9)


def test_draws_have_the_law_of_the_mechanism_and_repeat_with_the_seed() -> None:
    stream = Stream(random_chain(np.random.default_rng(6), 3, 3, "plain"), PML(0.8), "hamming")
    crowd = StreamPopulation(stream, 3000, 2)
    told = [crowd.release([0] * 3000, seed).tolist() for seed in (1, 2)]
    law = crowd.mechanism(0)
    same = [person for person in range(3000) if crowd.history(person) == crowd.history(0)]
    last = crowd.release([1] * 3000, 3).tolist()
    drawn = [last[person] for person in same]
    for column, output in enumerate(law.outputs):
        chance = law.matrix[law.inputs.index(1), column]
        assert drawn.count(output) / len(same) == pytest.approx(chance, abs=4 / len(same) ** 0.5)
    assert told[0] == StreamPopulation(stream, 3000, 2).release([0] * 3000, 1).tolist()


def test_a_file_holds_the_crowd_and_goes_on_from_it(tmp_path: Path) -> None:
    path, first = tmp_path / "crowd.npz", Stream(CHAIN, PML(0.8), "hamming", caps=[0.3, 0.6])
    crowd = StreamPopulation(first, 5, 2)
    crowd.save(path)
    for time in range(3):
        states = ["home", "out", "home", "out", "home"]
        told = crowd.release(states, time)
        with StreamPopulation.open(path) as stored:
            assert stored.release(states, time).tolist() == told.tolist()
    again = StreamPopulation.load(path)
    assert again.levels.tolist() == crowd.levels.tolist()
    assert [again.history(person) for person in range(5)] == [
        crowd.history(person) for person in range(5)
    ]
    before = path.read_bytes()
    with pytest.raises(MechanismError), StreamPopulation.open(path) as stored:
        stored.release(["nowhere"] * len(stored.release(states)))
    assert path.read_bytes() == before
    for broken in (before[:-30], before.replace(b"pmlopt-crowd", b"pmlopt-other"), b""):
        path.write_bytes(broken)
        with pytest.raises(FileFormatError):
            StreamPopulation.load(path)
    with pytest.raises(FileFormatError):
        crowd.save(tmp_path / "crowd.json")
    crowd.save(path)
    about, arrays, *_ = read_arrays(path, "stream population", FORMAT, POPULATION_FILE_VERSION)
    write_arrays(path, {**about, "people": [{}] * 5}, arrays)
    with pytest.raises(FileFormatError, match=r"people\[0\] is"):
        StreamPopulation.load(path)


def test_what_cannot_be_meant_is_refused() -> None:
    chain = Chain([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]], ["a", "b"])
    first = Stream(chain, PML(1.0), "hamming")
    crowd = StreamPopulation(first, 2)
    with pytest.raises(MechanismError, match="1 state for 2 people"):
        crowd.release(["a"])
    with pytest.raises(MechanismError, match="person 1 cannot be in the state 'b'"):
        crowd.release(["a", "b"])
    for stream, people in ((first, 0), (Stream(chain, PML(1.0), "hamming", "path"), 1)):
        with pytest.raises(PrivacyError):
            StreamPopulation(stream, people)
    ends = StreamPopulation(Stream(Chain([1.0], [[1.0]] * 1), PML(1.0), "hamming"), 1)
    assert ends.release([0]).tolist() == [0]
    over = StreamPopulation(
        Stream(Chain([0.5, 0.5], np.stack([np.eye(2)] * 2)), PML(1.0), "hamming"), 1
    )
    state = [0]
    for _ in range(3):
        over.release(state, 1)
    with pytest.raises((PrivacyError, MechanismError)):
        over.release(state, 1)


CHAIN = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])


def begun() -> Streams:
    return Streams(Stream(CHAIN, PML(0.8), "hamming", caps=linear_caps(0.7, 5)))


def walked(many: Streams, steps: int, people: int, seed: int) -> list[dict[Any, Any]]:
    """Some people, of whom some come late and some are away at a step."""
    rng, told = np.random.default_rng(seed), []
    for step in range(steps):
        here = [k for k in range(people) if k <= people // 2 + step and rng.random() < 0.8]
        told.append(
            many.release(
                {f"p{k}": CHAIN.labels[rng.integers(2)] for k in here}, int(rng.integers(99))
            )
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
    assert len({id(alike._stream_at(place)) for place in alike._place.values()}) <= 2


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
    for changed in (
        text.replace("0.9", "0.8"),
        text[:-20],
        text.replace("pmlopt-streams-2", "other"),
        "{}",
    ):
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

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for place, name in ((Streams, "release"), (disk, "atomic_write")):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, interrupted)
            with pytest.raises(KeyboardInterrupt), Streams.open(path) as stored:
                stored.release({"ann": "home"}, 1)
        assert path.read_bytes() == before
        assert not list(tmp_path.glob("*.lock"))
    with Streams.open(path) as stored:
        told = stored.release({"ann": "home"}, 1)
    assert Streams.load(path).stream("ann").history == (told["ann"],)


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


@pytest.mark.parametrize("shape", [(0, 10**12), (0,), (0, 2, 1)])
def test_a_file_that_claims_more_people_than_it_holds_is_refused(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    path = tmp_path / "crowd.npz"
    StreamPopulation(Stream(CHAIN, PML(0.4), "hamming"), people=2).save(path)
    about, arrays, _, _ = read_arrays(path, "crowd", FORMAT, POPULATION_FILE_VERSION)
    write_arrays(path, about, {**arrays, "told": np.zeros(shape, dtype=np.int32)})
    with pytest.raises(FileFormatError, match="outputs are of the shape"):
        StreamPopulation.load(path)


def test_a_file_of_streams_without_streams_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "streams.json"
    digest = hashlib.sha256(disk.encode_json_bytes(None)).hexdigest()
    path.write_text(json.dumps({"format": per_person.FORMAT, "digest": digest}))
    with pytest.raises(FileFormatError, match=r"streams\.json: streams"):
        Streams.load(path)
