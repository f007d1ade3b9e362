"""Streams: the levels after all outputs that can be, by enumeration of every path of the chain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles.streams import KINDS, enumerated, followed, random_chain

from pmlopt import LDP, PML, ExpectedLoss, Ledger, Mechanism, Prior
from pmlopt.data.chain import Chain
from pmlopt.errors import MechanismError, PrivacyError, UtilityError
from pmlopt.programs.streams.belief import ExactBelief, TargetValues
from pmlopt.programs.streams.stream import Stream, linear_caps

ABOUT: tuple[Any, ...] = ("state", "path", 2)


@pytest.mark.parametrize(
    ("kind", "about"),
    [
        (kind, about)
        for place, kind in enumerate(KINDS)
        for about in ABOUT
        if place < 2 or about == ABOUT[place % 3]
    ],
)
def test_no_output_sequence_tells_more_and_the_level_is_what_it_tells(
    about: Any, kind: str
) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    chain, epsilon = random_chain(rng, 3, 3, kind), float(rng.uniform(0.2, 1.2))
    caps = linear_caps(epsilon, 3, 0.3) if kind in ("plain", "rare") else None
    stream = Stream(chain, PML(epsilon), ExpectedLoss(rng.uniform(size=(3, 3))), about, caps)
    count = 0
    for after, emitted in followed(stream, 3):
        count += 1
        told = enumerated(chain, emitted, about)
        assert after.level == pytest.approx(told, abs=1e-12)
        assert told <= epsilon + 1e-12
        for step, level in enumerate(after.levels, 1):
            assert level == pytest.approx(enumerated(chain, emitted[:step], about), abs=1e-12)
            assert level <= epsilon + 1e-12
    assert count >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_of_the_state_is_protected_also_in_states_to_come(kind: str) -> None:
    rng, about = np.random.default_rng(KINDS.index(kind)), {0: "a", 1: "b", 2: "a"}
    chain, epsilon = random_chain(rng, 3, 5, kind), float(rng.uniform(0.2, 1.2))
    ends = Chain(chain.initial, np.stack([chain.kernel(time) for time in range(1, 5)]))
    stream = Stream(ends, PML(epsilon), ExpectedLoss(rng.uniform(size=(3, 3))), about)
    for after, emitted in followed(stream, 2):
        told = enumerated(ends, emitted, about, 5 - len(emitted))
        assert after.level == pytest.approx(told, abs=1e-12)
        assert told <= epsilon + 1e-12


def test_a_function_of_a_chain_that_never_ends_is_protected_until_all_is_forgotten() -> None:
    hub = Chain(
        [0.2, 0.4, 0.4], [[0.2, 0.4, 0.4], [0.9, 0.1, 0.0], [0.0, 0.1, 0.9]], ["ill", "near", "far"]
    )
    about = {"ill": True, "near": False, "far": False}  # near and far tell whether one will be ill
    stream = Stream(hub, PML(0.5), "hamming", about)
    places = dict(enumerate(about.values()))
    for after, emitted in followed(stream, 2):
        told = max(enumerated(hub, emitted, places, ahead) for ahead in (0, 2, 6))
        assert told == pytest.approx(after.level, abs=1e-12)
        assert told <= 0.5
    told_apart = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])  # nothing of being ill now
    stream.record(0, Mechanism(told_apart, hub.labels))
    now, then = (enumerated(hub, [told_apart[:, 0]], places, ahead) for ahead in (0, 1))
    assert now == pytest.approx(0, abs=1e-12)
    assert stream.level == pytest.approx(then, abs=1e-12)
    assert then > 0.3


def test_values_that_are_a_chain_themselves_need_no_bounds_ahead() -> None:
    stays = Stream(Chain([0.3, 0.3, 0.4], np.eye(3)), PML(0.5), "hamming", {0: "a", 1: "a", 2: "b"})
    assert stays.solve().level <= 0.5
    turns = np.eye(3)[[1, 2, 0]]
    with pytest.raises(PrivacyError, match="has not forgotten"):
        Stream(Chain([0.3, 0.3, 0.4], turns), PML(0.5), "hamming", {0: "a", 1: "a", 2: "b"}).solve()


def after_other_releases(rng: np.random.Generator, steps: int, about: Any) -> Stream:
    """A stream of which something was told by mechanisms that no design would take, within epsilon."""
    n, epsilon = int(rng.integers(2, 5)), float(rng.uniform(0.3, 2.0))
    kernel = 0.8 * rng.dirichlet(np.ones(n) * 0.4, size=n) + 0.2 * rng.dirichlet(np.ones(n))
    caps = [float(rng.uniform(0, epsilon))]
    stream = Stream(Chain(rng.dirichlet(np.ones(n)), kernel), PML(epsilon), "hamming", about, caps)
    for _ in range(steps):
        told, noise = rng.dirichlet(np.ones(n) * 0.5, size=n), np.full((n, n), 1 / n)
        for share in (0.0, 0.5, 0.8, 0.95, 1.0):
            after = stream.copy()
            after.record(int(rng.integers(n)), (1 - share) * told + share * noise)
            if after.level < 0.98 * epsilon:
                stream = after
                break
    return stream


def pasts_of(stream: Stream) -> tuple[TargetValues, ...]:
    """The past values that still count."""
    assert isinstance(stream._belief, ExactBelief)
    return stream._belief.pasts


@pytest.mark.parametrize("about", ["state", 2])
def test_bounds_that_are_left_out_hold_whatever_is_released(about: Any) -> None:
    rng, loose = np.random.default_rng(17), 0
    for _ in range(8):
        stream = after_other_releases(rng, 5, about)
        law, requirement, pasts = stream.law, stream.requirement, pasts_of(stream)
        for past in pasts:
            given = past.joint / past.joint.sum(axis=1, keepdims=True)
            for row, lift in zip(given, past.lifts, strict=True):
                most = requirement.support_function(
                    law, (row / law.pmf)[:, None]
                )  # the largest ratio that is allowed
                assert most * lift <= math.exp(stream.privacy.epsilon) * (1 + 1e-9)
        loose += sum(len(past.lifts) for past in pasts) > np.size(
            getattr(requirement, "epsilon", 0)
        )
    assert loose > 4  # the rules leave something out


def test_a_secret_that_stays_is_that_of_the_ledger() -> None:
    prior, epsilon = Prior([0.5, 0.3, 0.2]), 0.9
    stream = Stream(Chain(prior.pmf, np.eye(3)), PML(epsilon), "hamming", caps=[0.4, 0.9])
    ledger = Ledger(prior, total=epsilon)
    for rank in (0, 1, 0):
        chances = stream.law.pmf @ stream.mechanism.matrix
        output = int(np.argsort(-chances)[rank if chances.min() > 0 else 0])
        ledger.record(stream.mechanism, [output])
        stream.record(output)
        assert stream.level == pytest.approx(ledger.level, abs=1e-12)
    assert stream.law.pmf == pytest.approx(ledger.prior().pmf, abs=1e-12)


def test_states_that_do_not_remember_are_released_as_if_each_were_the_only_one() -> None:
    law = np.array([0.5, 0.3, 0.2])
    stream = Stream(Chain(law, np.tile(law, (3, 1))), PML(0.5), "hamming")
    alone = stream.solve().value
    for _ in range(3):
        stream.record(stream.mechanism.outputs[0])
        assert stream.solve().value == pytest.approx(alone, abs=1e-9)
    assert set(stream.worst_levels) == {1, 2, 3}
    assert len(pasts_of(stream)) == 1  # nothing of the past matters


@pytest.mark.parametrize("about", ABOUT)
def test_under_another_chain_the_same_releases_tell_what_they_tell_there(about: Any) -> None:
    rng = np.random.default_rng(8)
    stream = Stream(random_chain(rng, 3, 4, "plain"), PML(0.8), "hamming", about)
    other = random_chain(rng, 3, 4, "by step")
    for after, emitted in followed(stream, 2):
        assert after.replay_under(other).level == pytest.approx(
            enumerated(other, emitted, about), abs=1e-12
        )
        assert after.replay_under(stream.chain).levels == after.levels
    with pytest.raises(MechanismError, match="the same states"):
        stream.replay_under(Chain([1.0], [[1.0]]))
    sure = Stream(Chain([1.0, 0.0], np.eye(2)), PML(0.8), "hamming")
    sure.record(0)
    with pytest.raises(MechanismError, match="at time 1 the other chain can be in 1"):
        sure.replay_under(Chain([0.5, 0.5], np.eye(2)))


def test_the_path_tells_at_least_as_much_as_each_state_whatever_is_released() -> None:
    chain = Chain([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]])
    path, states = (Stream(chain, PML(0.6), "hamming", about) for about in ("path", "state"))
    for _ in range(4):
        output, mechanism = path.mechanism.outputs[0], path.mechanism
        path.record(output)
        states.record(output, mechanism)
        assert states.level <= path.level + 1e-12
    stream = Stream(Chain([0.25, 0.75], [[0.5, 0.5], [0.5, 0.5]], ["a", "b"]), PML(0.1), "hamming")
    stream.record(
        "a", Mechanism(np.eye(2), ["a", "b"], ["a", "b"])
    )  # past what its own mechanisms tell
    assert stream.level == pytest.approx(math.log(4))
    assert stream.law.pmf.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((LDP(1.0), "hamming"), PrivacyError, "under PML"),
        ((PML([0.5, 0.5]), "hamming"), PrivacyError, "under PML"),
        ((PML(1.0), "mutual-information"), UtilityError, "of a state and an output"),
        ((PML(1.0), "hamming", "week"), PrivacyError, "'state', 'path', a number"),
        ((PML(1.0), "hamming", 40), PrivacyError, "too many"),
        ((PML(1.0), "hamming", {0: "a"}), PrivacyError, "give one for each"),
        ((PML(1.0), "hamming", "state", []), PrivacyError, "no caps"),
        ((PML(1.0), "hamming", "state", [-1.0]), PrivacyError, "cap"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Stream(Chain([0.5, 0.5], np.eye(2)), *arguments)


def test_draws_are_recorded_and_repeat_with_the_seed_and_what_cannot_be_is_refused() -> None:
    chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])
    outputs = []
    for _ in range(2):
        stream, rng = (
            Stream(chain, PML(0.8), "hamming", caps=linear_caps(0.8, 5)),
            np.random.default_rng(4),
        )
        outputs.append(
            [stream.release(state, rng) for state in ("home", "home", "out", "out", "home")]
        )
        assert (stream.history, stream.time) == (tuple(outputs[-1]), 6)
        assert stream.level <= 0.8
    assert outputs[0] == outputs[1]
    stream = Stream(Chain([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]], ["a", "b"]), PML(1.0), "hamming")
    with pytest.raises(MechanismError, match="'b' cannot be after these outputs"):
        stream.release("b")
    with pytest.raises(MechanismError, match="'z'"):
        stream.record("z")
    with pytest.raises(MechanismError, match="has 2 rows"):
        stream.record("a", np.eye(2))
    with pytest.raises(PrivacyError, match="0 steps"):
        linear_caps(1.0, 0)
    ending = Stream(Chain([0.5, 0.5], np.array([np.eye(2)] * 2)), PML(0.8), "hamming")
    for output in (0, 1, 0):
        ending.record(output)
    with pytest.raises(PrivacyError, match="3 states"):
        ending.program()


def test_a_window_of_too_many_states_is_refused_before_its_values_are_counted() -> None:
    # 10^5 values are the most: 2^16 = 65,536 and 2^17 = 131,072; the last power is beyond any memory
    for states in (17, 10**4, 10**30):
        with pytest.raises(PrivacyError, match="more than 100,000 values"):
            Stream(Chain([0.5, 0.5], np.eye(2)), PML(0.4), "hamming", about=states)
    with pytest.raises(PrivacyError, match="more than 100,000 values"):
        Stream(Chain(np.full(18, 1 / 18), np.eye(18)), PML(0.4), "hamming", about=4)
    assert Stream(Chain([1.0], [[1.0]]), PML(0.4), "hamming", about=10**30).about == 10**30
