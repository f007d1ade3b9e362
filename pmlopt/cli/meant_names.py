"""Names of commands that people type and that there are not, with what to type instead."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from pmlopt.core.suggestions import did_you_mean

_PROBLEM = "pmlopt problems new {} -o p.toml, fill it in, and type pmlopt solve p.toml"
COMMANDS_MEANT = {
    "budget": "pmlopt ledger",
    "compose": "pmlopt audit *",
    "convert": "pmlopt design ... -o FILE, whose ending names the format",
    "count": "pmlopt design --prior DATA --column NAME, which counts the column",
    "decode": "pmlopt estimate MECHANISM",
    "deployment": "pmlopt report * --registry",
    "histogram": "pmlopt answer DATA --count COLUMN=CLASS,CLASS",
    "leakage": "pmlopt audit MECHANISM",
    "leakage-distortion": _PROBLEM.format("leakage-distortion"),
    "least-leakage": _PROBLEM.format("least-leakage"),
    "level": "pmlopt audit MECHANISM",
    "list": "pmlopt problems",
    "noise-table": "pmlopt export * --to ptable",
    "noisy-answer": "pmlopt answer *",
    "optimise": "pmlopt design, or pmlopt solve PROBLEM",
    "optimize": "pmlopt design, or pmlopt solve PROBLEM",
    "perturb": "pmlopt apply MECHANISM DATA",
    "plan": "pmlopt people-needed, or pmlopt release --plan FILE",
    "post-randomization": "pmlopt design --constraint invariant, and then pmlopt apply",
    "pram": "pmlopt design --constraint invariant, and then pmlopt apply (post-randomization)",
    "ptable": "pmlopt export MECHANISM --to ptable",
    "randomize": "pmlopt apply MECHANISM DATA",
    "record-leakage": _PROBLEM.format("record-leakage"),
    "sample": "pmlopt apply MECHANISM DATA",
    "sample-size": "pmlopt people-needed --for-bound *",
    "stream": "pmlopt ledger stream *",
    "unbias": "pmlopt estimate MECHANISM",
    "worst-case": _PROBLEM.format("worst-case-utility"),
}
"""What to type for names of commands that there are not; * stands for what was typed after the name."""


def suggest_command(words: Sequence[str], known: Sequence[str]) -> str:
    """Return what to type in place of a command that there is not, with the arguments that were given.

    Args:
        words: what was typed: the name, and its arguments.
        known: the names of the commands.

    Examples:
        >>> suggest_command(["compose", "a.csv", "b.csv"], ["audit"])
        'type pmlopt audit a.csv b.csv'
    """
    meant = COMMANDS_MEANT.get(words[0].lower())
    if meant is None:
        return did_you_mean(words[0], known, f"the commands are {', '.join(known)}")
    return f"type {meant.replace('*', shlex.join(words[1:]) or '...')}"
