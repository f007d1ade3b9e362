"""The accounting of releases: joint leakage of several mechanisms, attributes, people and clear columns."""

from pmlopt.programs.streams.stream import (
    Stream,
    linear_caps,
    next_release,
    stream_bounds,
    sweep_caps,
)
from pmlopt.releases.accounts.attributes import (
    AttributeLevels,
    attribute_levels,
    level_in_clear,
    level_with_clear_column,
)
from pmlopt.releases.accounts.joint import (
    JointOutcome,
    chained_level,
    compose,
    compose_attributes,
    joint_level,
    worst_outcome,
)
from pmlopt.releases.accounts.ledger import Ledger
from pmlopt.releases.accounts.shuffled import (
    calibrate_shuffled,
    shuffled_failure,
    shuffled_level,
    shuffled_slack,
)
from pmlopt.releases.accounts.split import Split, best_split
from pmlopt.releases.rows.batches import BatchRelease, ColumnRelease, by_history
from pmlopt.releases.streams.per_person import Streams
from pmlopt.releases.streams.population import StreamPopulation

__all__ = [
    "AttributeLevels",
    "BatchRelease",
    "ColumnRelease",
    "JointOutcome",
    "Ledger",
    "Split",
    "Stream",
    "StreamPopulation",
    "Streams",
    "attribute_levels",
    "best_split",
    "by_history",
    "calibrate_shuffled",
    "chained_level",
    "compose",
    "compose_attributes",
    "joint_level",
    "level_in_clear",
    "level_with_clear_column",
    "linear_caps",
    "next_release",
    "shuffled_failure",
    "shuffled_level",
    "shuffled_slack",
    "stream_bounds",
    "sweep_caps",
    "worst_outcome",
]  # fmt: skip
