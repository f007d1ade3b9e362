"""A crowd: what is told of each person, accounted for by the stream of the own outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oracles.streams import random_chain

from pmlopt import PML, Chain, Stream
from pmlopt.errors import FileFormatError, MechanismError, PrivacyError
from pmlopt.releases import Crowd, linear_caps
from pmlopt.releases.crowd import FORMAT, VERSION
from pmlopt.releases.stored import read_arrays, write_arrays

CHAIN = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])


def moved(rng: np.random.Generator, chain: Chain, states: np.ndarray, time: int) -> np.ndarray:
    return np.array([rng.choice(chain.size, p=chain.kernel(time)[state]) for state in states])


@pytest.mark.parametrize("kind", ["plain", "zeros", "absorbing", "moves", "rare", "by step"])
@pytest.mark.parametrize("designs", [1, 3])
def test_each_person_is_told_of_within_epsilon_and_exactly_accounted(kind: str, designs: int) -> None:
    rng = np.random.default_rng(2)
    chain, epsilon, people = random_chain(rng, 3, 6, kind), 0.8, 12
    first = Stream(chain, PML(epsilon), "absolute", caps=linear_caps(0.7, 4))
    crowd, own = Crowd(first, people, designs), [first.copy() for _ in range(people)]
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
    crowd, own = Crowd(first, people, 2), [first.copy() for _ in range(people)]
    states = rng.choice(2, size=people)
    for time in range(1, 16):
        mechanisms = [crowd.mechanism(person) for person in range(people)]
        told = crowd.release(states, rng)
        for person, stream in enumerate(own):
            stream.record(told[person], mechanisms[person])
            assert stream.level <= crowd.levels[person] + 1e-12
        states = moved(rng, chain, states, time)
    assert len(crowd._histories.times) < 2 * 15  # some are not kept
    assert crowd.level <= 0.6 + 1e-12


def test_one_history_has_the_design_of_its_stream() -> None:
    first = Stream(Chain([0.5, 0.3, 0.2], np.eye(3)), PML(0.8), "hamming", caps=[0.4, 0.8])
    crowd = Crowd(first, 4)
    used = first.mechanism.matrix.any(axis=0)
    assert crowd.mechanism(0).matrix == pytest.approx(first.mechanism.matrix[:, used], abs=1e-9)


def test_draws_have_the_law_of_the_mechanism_and_repeat_with_the_seed() -> None:
    rng = np.random.default_rng(6)
    chain = random_chain(rng, 3, 3, "plain")
    told = []
    for _ in range(2):
        crowd = Crowd(Stream(chain, PML(0.8), "hamming"), 3000, 2)
        told = [crowd.release([0] * 3000, seed).tolist() for seed in (1, 2)]
        law = crowd.mechanism(0)
        same = [person for person in range(3000) if crowd.history(person) == crowd.history(0)]
        told.append(crowd.release([1] * 3000, 3).tolist())
        drawn = [told[-1][person] for person in same]
        for column, output in enumerate(law.outputs):
            chance = law.matrix[law.inputs.index(1), column]
            assert drawn.count(output) / len(same) == pytest.approx(chance, abs=4 / len(same) ** 0.5)
    assert told[0] == Crowd(Stream(chain, PML(0.8), "hamming"), 3000, 2).release([0] * 3000, 1).tolist()


def test_a_file_holds_the_crowd_and_goes_on_from_it(tmp_path: Path) -> None:
    path, first = tmp_path / "crowd.npz", Stream(CHAIN, PML(0.8), "hamming", caps=[0.3, 0.6])
    crowd = Crowd(first, 5, 2)
    crowd.save(path)
    for time in range(3):
        states = ["home", "out", "home", "out", "home"]
        told = crowd.release(states, time)
        with Crowd.open(path) as stored:
            assert stored.release(states, time).tolist() == told.tolist()
    again = Crowd.load(path)
    assert again.levels.tolist() == crowd.levels.tolist()
    assert [again.history(person) for person in range(5)] == [crowd.history(person) for person in range(5)]
    before = path.read_bytes()
    with pytest.raises(MechanismError), Crowd.open(path) as stored:
        stored.release(["nowhere"] * len(stored.release(states)))
    assert path.read_bytes() == before
    for broken in (before[:-30], before.replace(b"pmlopt-crowd", b"pmlopt-other"), b""):
        path.write_bytes(broken)
        with pytest.raises(FileFormatError):
            Crowd.load(path)
    with pytest.raises(FileFormatError):
        crowd.save(tmp_path / "crowd.json")
    crowd.save(path)
    about, arrays, *_ = read_arrays(path, "crowd", FORMAT, VERSION)
    write_arrays(path, {**about, "people": [{}] * 5}, arrays)
    with pytest.raises(FileFormatError, match=r"people\[0\] is"):
        Crowd.load(path)


def test_what_cannot_be_meant_is_refused() -> None:
    chain = Chain([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]], ["a", "b"])
    first = Stream(chain, PML(1.0), "hamming")
    crowd = Crowd(first, 2)
    with pytest.raises(MechanismError, match="1 state for 2 people"):
        crowd.release(["a"])
    with pytest.raises(MechanismError, match="person 1 cannot be in the state 'b'"):
        crowd.release(["a", "b"])
    for stream, people in ((first, 0), (Stream(chain, PML(1.0), "hamming", "path"), 1)):
        with pytest.raises(PrivacyError):
            Crowd(stream, people)
    ends = Crowd(Stream(Chain([1.0], [[1.0]] * 1), PML(1.0), "hamming"), 1)
    assert ends.release([0]).tolist() == [0]
    over = Crowd(Stream(Chain([0.5, 0.5], np.stack([np.eye(2)] * 2)), PML(1.0), "hamming"), 1)
    state = [0]
    for _ in range(3):
        over.release(state, 1)
    with pytest.raises((PrivacyError, MechanismError)):
        over.release(state, 1)
