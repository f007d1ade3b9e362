"""Synthetic example data, drawn from published counts."""

from __future__ import annotations

import os

import numpy as np

from pmlopt.core.files import disk
from pmlopt.core.files.csv_rows import encode_csv

EDUCATION_BY_SEX = (
    (16, 35), (46, 122), (84, 249), (160, 486), (144, 370), (295, 638), (432, 743), (144, 289),
    (3390, 7111), (2806, 4485), (500, 882), (421, 646), (1619, 3736), (536, 1187), (92, 484), (86, 327),
)  # fmt: skip
"""Women and men of each level of education, from 1 (preschool) and 9 (high school) to 13 (bachelor) and 16
(doctorate), in the train part of the Adult data [becker1996adult]."""

PLAN = """\
# pmlopt release people.csv --plan FILE -o out
title = "Education and sex"
total = 1.0       # nats, of everything that leaves
drop = ["id"]     # left out; keep = [...] would be published as it is

[release.education]
utility = "absolute"

[release.sex]
utility = "balanced-match"
"""
"""A plan for the example: two columns that are designed together."""


def write_example_plan(path: str | os.PathLike[str]) -> None:
    """Write a plan file for the example's people.

    Raises:
        FileFormatError: the file cannot be written.
    """
    disk.atomic_write(path, PLAN.encode())


def write_example(path: str | os.PathLike[str]) -> None:
    """Write a CSV file of made-up people: an id, a level of education from 1 to 16 and a sex, drawn from
    the shares of `EDUCATION_BY_SEX`, each row independently. It is the same file each time.

    Raises:
        FileFormatError: the file cannot be written.
    """
    counts = np.array(EDUCATION_BY_SEX, dtype=float)
    # Rows of the example.
    drawn = np.random.default_rng(45_000).choice(
        counts.size, 45_000, p=counts.ravel() / counts.sum()
    )
    rows = [
        [place, 1 + cell // 2, ("Female", "Male")[cell % 2]]
        for place, cell in enumerate(drawn.tolist(), start=1)
    ]
    disk.atomic_write(path, encode_csv([["id", "education", "sex"], *rows]))
