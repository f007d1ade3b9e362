"""What a reader finds: queries to the search of a built site, and the page that each must find.

The site's own worker answers them, in Node: where there is none, nothing is checked.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SEARCHES = {
    "getting started": "getting_started/",
    "quickstart": "getting_started/",
    "how many people": "tutorials/estimate/",
    "sample size": "tutorials/estimate/",
    "matlab": "interfaces/",
    "excel": "interfaces/",
    "design": "reference/design/",
    "MutualInformation": "reference/MutualInformation/",
    "PML": "reference/PML/",
    "Prior": "reference/Prior/",
    "Mechanism": "reference/Mechanism/",
    "Stream": "reference/Stream/",
    "hamming": "reference/utility.hamming/",
    "audit": "tutorials/audit/",
    "estimate": "tutorials/estimate/",
    "release": "tutorials/release/",
    "verify": "certificate/",
    "ledger": "releases/",
    "randomized response": "tutorials/from_ldp/",
    "cite": "versioning/",
}
"""The page that is among the first three for each query."""


def missed(site: Path) -> Iterator[str]:
    """The queries whose page is not among the first three, a line each."""
    node = shutil.which("node")
    if node is None:
        return
    done = subprocess.run(
        [node, str(Path(__file__).with_name("search.js")), str(site)],
        input=json.dumps(list(SEARCHES)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    for query, found in json.loads(done.stdout).items():
        first = [location.partition("#")[0] for location in found[:3]]
        if SEARCHES[query] not in first:
            yield f"the search for {query!r} finds {first}, not {SEARCHES[query]}"
