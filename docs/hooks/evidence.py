"""Pages of evidence that are written when the site is built: the bibliography, what papers print,
measurements, and surprises of other software.

Each is made of files that the tests check: problems/references.bib, benchmarks/printed.toml and
benchmarks/measured.toml, the points and tables in benchmarks/data, and findings/README.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from citations import REFERENCES, ROOT, bibliography
from measurements import write_measurements
from mkdocs.structure.files import File

PRINTED = """# What is printed, and what comes out

This page is for readers who compare a figure or table of the five papers with a computation. Every value
that is printed as a number or can be computed by hand comes out, except in [wu2026entropy]: nine rows of its
Table 3, and one value of its Figure 4. Where the print is another number,
[Reproduction](reproduction.md#all-corrections) has a witness that can be checked by hand.

Leakages are in nats. *At most* is the largest over the points of a figure, *at least* the smallest.

- *printed*: empty where only the picture shows the value; 0 next to *at most* or *at least* is an inequality
  that the paper states.
- *computed*: the value here; of a proved interval the lower end, and *bound* its upper one.
- *difference*: computed less printed, or less a value known by formula. Places of jumps ("rise") are points
  of the grid of the figure.

`nox -s papers` computes all points again (`-- NAME` those of one figure), and fails where one is outside the
tolerance in `benchmarks/printed.toml`. The tables are of the points kept in `benchmarks/data`.

"""


def compare_printed() -> str:
    """Set what the papers print beside the kept points, a table for each figure."""
    script = [sys.executable, str(ROOT / "benchmarks" / "papers.py"), "--kept", "--markdown"]
    return subprocess.run(script, check=True, capture_output=True, text=True).stdout


SURPRISES = """# Where other software surprises

This page is for people who design, release or audit with several programs. Each row is a behaviour of other
software that good engineers guess wrong, on valid input, and what pmlopt does about it. The scripts in
`findings/` of the checkout show each without pmlopt, and say where it is documented and why it matters.

"""


def list_surprises() -> str:
    """Take the table of `findings/README.md`, without links to scripts, which are no pages."""
    table = re.findall(
        r"^\|.*$", (ROOT / "findings" / "README.md").read_text("utf-8"), re.MULTILINE
    )
    text = re.sub(r"\[([^]]*)\]\([\w-]+\.sh\)", r"`\1`", "\n".join(table) + "\n")
    return text.replace("](../docs/", "](")


@cache
def evidence_pages() -> dict[str, str]:
    """Write the pages, by their paths in docs."""
    return {
        "bibliography.md": bibliography(REFERENCES.read_text("utf-8")),
        "printed.md": PRINTED + compare_printed(),
        "measurements.md": write_measurements(),
        "surprises.md": SURPRISES + list_surprises(),
    }


def on_files(files: Any, config: Any) -> Any:
    """Add the pages; called by mkdocs."""
    for name, text in evidence_pages().items():
        files.append(File.generated(config, name, content=text))
    return files
