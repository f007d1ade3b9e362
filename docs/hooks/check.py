"""Build the site and refuse it where something is missing: `python docs/hooks/check.py FOLDER`.

mkdocs in its strict mode finds what is not in the navigation and links between pages that lead nowhere. Here
the pages that came out are read: links and anchors of generated pages, images without a source or a text,
tags in attributes, angle brackets that became tags, formulas that were not set, citations without a work,
files from elsewhere, public names without a place in the reference, and pages that are too large. That code
runs is for the tests (`tests/test_documents.py`).
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

from citations import KEY, REFERENCES, entries
from public_names import ROOT, anchors, modules, top_names
from searching import missed

LARGEST = 700_000
"""Bytes of a page of the reference."""

DOLLARS = re.compile(r"\$[^$\n]{1,60}\$|```\w*")
RAW = re.compile(
    DOLLARS.pattern + r"|\S*(?<![\w.])[A-Za-z]'?_(?:[A-Za-z]|\d+)\b\S*|\S*\be\^\S*|\S* ?[<>]= ?\S*"
)
"""Formulas in prose that were not set: dollars, and on written pages `x_i`, `e^eps` and `a <= b` too."""

GENERATED = ("reference/", "library/", "commands/")

MOST_PROCESSOR_TIME = 150.0
"""Seconds of all processes of a build: a limit that other work on the machine does not move."""

TAGS = set(
    """
    a abbr annotation article aside autoref b blockquote body br button circle code dd del details div dl dt
    em figcaption figure footer form g h1 h2 h3 h4 h5 h6 head header hr html i iframe img input kbd label li
    link main math meta mfrac mi mn mo mover mpadded mroot mrow mspace msqrt mstyle msub msubsup msup mtable
    mtd mtext mtr munder munderover nav noscript ol output p path pre rect script section select semantics
    small source span strong style sub summary sup svg table tbody td th thead title tr tt u ul var
    """.split()  # noqa: SIM905 - a list of words
)


class Page(HTMLParser):
    """What is checked of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.faults: list[str] = []
        self.inside: list[str] = []
        self.prose: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note anchors and links; complain about tags that nobody meant."""
        found = {name: value or "" for name, value in attrs}
        if tag not in TAGS or any(re.search(r"[^\w:@.-]", name) for name in found):
            self.faults.append(f"a raw angle bracket: {self.get_starttag_text()}")
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if "<" in (self.get_starttag_text() or "")[1:]:
            self.faults.append(f"a tag in an attribute: {self.get_starttag_text()}")
        if tag == "img" and not re.search(r"\w", found.get("alt", "")):
            self.faults.append(f"an image without a text: {found.get('src')}")
        if tag == "img" and not found.get("src", "").strip():
            self.faults.append(f"an image without a source: {found.get('alt')}")
        loaded = found.get("src") or (found.get("href") if tag == "link" else None)
        if loaded and re.match(r"(https?:)?//", loaded) and found.get("rel") != "canonical":
            self.faults.append(f"a file from elsewhere: {loaded}")
        self.links += [address for address in (found.get("src"), found.get("href")) if address]
        if tag in ("pre", "code", "script", "style", "math"):
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave code."""
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        """Keep what is neither code nor a formula."""
        if not self.inside:
            self.prose.append(data)


def read(site: Path) -> dict[Path, Page]:
    """The pages of a built site."""
    return {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def faults(site: Path) -> Iterator[str]:
    """What is wrong with a site, a line each."""
    pages = read(site)
    works = entries(REFERENCES.read_text("utf-8"))
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        found = list(page.faults)
        if name != "404.html":  # its addresses are those of the server
            found += [f"a dead link, {link}" for link in page.links if not leads(path, link, pages)]
        text = "".join(page.prose)
        found += [
            f"not set, {formula}"
            for formula in (DOLLARS if name.startswith(GENERATED) else RAW).findall(text)
        ]
        cited = set(re.findall(rf"\[({KEY.pattern})", text))
        found += [f"no work for the citation {key}" for key in sorted(cited - set(works))]
        if name.startswith("reference/") and path.stat().st_size > LARGEST:
            found.append(f"{path.stat().st_size} bytes")
        yield from (f"{name}: {fault}" for fault in found)
    yield from unlisted(site, pages)


def unlisted(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Public names that have no place in the reference, which leaves out what has no docstring."""
    for name, place in top_names().items():
        file = ROOT.joinpath(*place.split("."), name)  # of a subpackage
        if (
            f"pmlopt.{name}" not in anchors()
            and not file.exists()
            and not file.with_suffix(".py").exists()
        ):
            yield f"pmlopt.{name} is in no module of the reference"
    for module in modules():
        for name in module.names:
            page = pages.get(site / module.page_of(name).removesuffix(".md") / "index.html")
            if page is None or module.identifier(name) not in page.ids:
                yield f"{module.identifier(name)} is public and not described"


def leads(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Whether a link of a page leads to a file of the site, and to an anchor that it has."""
    address, anchor = urldefrag(unquote(link))
    if re.match(r"[a-z]+:|//", address):
        return True
    target = (path.parent / address).resolve() if address else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    return not anchor or target not in pages or anchor in pages[target].ids


def main(folder: str) -> int:
    """Build, check, and say what is wrong."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    built = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # with what the build waited for
    seconds = used.ru_utime + used.ru_stime
    found = [] if built.returncode == 0 else ["mkdocs build --strict failed"]
    found += faults(Path(folder).resolve())
    found += missed(Path(folder).resolve())
    if seconds > MOST_PROCESSOR_TIME:
        found.append(f"built in {seconds:.0f} s of processor time")
    print("\n".join(found))
    sizes = [path.stat().st_size for path in Path(folder).rglob("*.html")]
    largest = max(sizes, default=0) / 1000
    print(
        f"{len(sizes)} pages in {seconds:.0f} s of processor time, the largest of {largest:.0f} kB,"
        f" {len(found)} faults"
    )
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
