"""Run the README's blocks of Python and of the shell in the current folder, by the pmlopt of this Python."""

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import documents  # noqa: E402 - from tests/

PAGE = documents.blocks((ROOT / "README.md").read_text("utf-8"))
code = "\n".join(
    block.code for block in PAGE if block.language == "python" and block.reason is None
)
subprocess.run([sys.executable, "-c", code], check=True)
lines = [line for block in PAGE if block.language == "text" for line in documents.commands(block)]
for line in lines:
    print(f"+ {line}", flush=True)
    if line.startswith("printf"):
        path, text = documents.printed_file(line)
        path.write_text(text)
    else:
        _, *arguments = shlex.split(line, comments=True)
        subprocess.run([sys.executable, "-m", "pmlopt", *arguments], check=True)
if Path("out/released.csv").read_text().splitlines()[0] not in ("sex", '"sex"'):
    sys.exit("README: its commands released no column `sex` alone")
