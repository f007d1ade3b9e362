"""Draw docs/figures/report.png, the report of the README: `python benchmarks/report_picture.py`.

Chromium takes the picture (Debian: `apt-get install chromium`).
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from click.testing import CliRunner
from PIL import Image

from pmlopt.cli import main as pmlopt

TARGET = Path(__file__).parents[1] / "docs" / "figures" / "report.png"
WIDTH, HEIGHT, COLOURS = 900, 1160, 16
COMMANDS = (
    "example people.csv",
    "release people.csv --column sex --epsilon 0.3 --utility estimation-error --drop id"
    " --drop education -o out",
)


def main() -> None:
    """Release, open the report, and keep a picture with few colours."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("install chromium")
    runner = CliRunner()
    with tempfile.TemporaryDirectory() as here, contextlib.chdir(here):
        for command in COMMANDS:
            runner.invoke(pmlopt, command.split(), catch_exceptions=False)
        shown, taken = Path(here, "out", "report.html"), Path(here, "report.png")
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--screenshot={taken}"]
        size = f"--window-size={WIDTH},{HEIGHT}"
        subprocess.run([chromium, *flags, size, shown.as_uri()], check=True, capture_output=True)
        Image.open(taken).convert("RGB").quantize(COLOURS).save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
