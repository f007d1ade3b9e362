"""Pipes, devices, full disks and interrupts: what is no file stays what it is, and codes say how it ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
from cli.hostile import contents, mechanism, refused, write
from commands import run

import pmlopt
from pmlopt.core.files.disk import atomic_write

PLAN = "people-needed --for-bound --letters 3 --epsilon 1 --confidence-delta 0.1 --samples 99"
DESIGN = "design --prior p.csv --epsilon 1 --utility hamming"
POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes and devices as POSIX has them")
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
INTERRUPTED = 130
HEEDING = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from pmlopt.cli import main; main()"
)
"""The program where interrupts are heeded: what runs in the background may have inherited to ignore them."""
HERE = str(Path(pmlopt.__file__).parent.parent)
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")]),
}


def process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command as a process of its own."""
    command = [sys.executable, "-m", "pmlopt", *arguments]
    return subprocess.run(
        command, text=True, timeout=60, check=False, **{"env": ENVIRONMENT, **options}
    )


@POSIX
def test_a_pipe_receives_the_release_and_stays_a_pipe(folder: Path) -> None:
    pipe = folder / "pipe.csv"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    run("apply", "m.json", "data.csv", "--column", "level", "--keep", "id", "-o", pipe, "--seed", 1)
    reader.join(10)
    assert read[0].startswith("id,level\n1,")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@POSIX
def test_a_device_is_written_to_and_not_replaced_and_a_socket_is_no_file(tmp_path: Path) -> None:
    link = tmp_path / "null.json"
    link.symlink_to("/dev/null")
    for path in (Path("/dev/null"), link):
        atomic_write(path, b"nothing")
    assert link.is_symlink()
    assert Path("/dev/null").is_char_device()
    assert [path.name for path in tmp_path.iterdir()] == ["null.json"]
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s"))
        with pytest.raises(ValueError, match="cannot be written"):
            atomic_write(tmp_path / "s", b"nothing")


@FULL
def test_a_full_device_is_told(folder: Path) -> None:
    (folder / "full.json").symlink_to("/dev/full")
    assert "No space left" in refused(folder, f"{DESIGN} -o full.json")
    refused(folder, "apply m.json data.csv --column level -o /dev/full")


@FULL
def test_a_full_output_exits_with_2(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = process(*PLAN.split(), stdout=full, stderr=subprocess.PIPE, cwd=folder)
    assert ended.returncode == 2
    assert ended.stderr.startswith("pmlopt: ")
    assert "No space left" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@POSIX
def test_an_output_that_is_closed_is_no_bug() -> None:
    command = f"exec {sys.executable} -m pmlopt {PLAN} >&- 2>&-"
    assert subprocess.run(command, shell=True, env=ENVIRONMENT, check=False).returncode == 0


def test_letters_that_the_output_does_not_have_are_escaped(folder: Path) -> None:
    write(folder, "rule.json", mechanism(outputs=["é", "b", "c"]))
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    asked = ["audit", "rule.json", "--prior", "p.csv"]
    assert "\\xe9" in process(*asked, stdout=subprocess.PIPE, env=environment).stdout


def test_what_a_program_reads_is_the_result_alone(folder: Path) -> None:
    """A solver may write notices to the same stream, below Python: a process of its own shows them."""
    done = process(
        *DESIGN.split(), "--solver", "highs", "--json", stdout=subprocess.PIPE, cwd=folder
    )
    assert json.loads(done.stdout)["solver"] == "highs"


def interrupted(*_: Any, **__: Any) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (f"{DESIGN} -o out.json", "pmlopt.cli.privacy_options.PrivacyOptions.read_prior"),
        ("audit m.json --prior p.csv", "pmlopt.cli.privacy_options.PrivacyOptions.read_prior"),
        ("problems", "click.Command.make_context"),  # before the command
    ],
)
def test_an_interrupt_is_no_failed_claim(
    folder: Path, command: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, interrupted)
    assert refused(folder, command, INTERRUPTED) == "pmlopt: interrupted\n"


def test_an_interrupted_sweep_tells_how_it_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmlopt.sweeps.sweep", interrupted)
    sweep = "sweep --prior p.csv --epsilon 1,2 --utility hamming"
    assert "the same command goes on" in refused(folder, f"{sweep} -o table.csv", INTERRUPTED)
    assert "goes on" not in refused(folder, sweep, INTERRUPTED)


# the first imports, and those of a command
@pytest.mark.parametrize("module", ["pmlopt.cli.group", "pmlopt.cli.options"])
def test_an_interrupt_of_the_imports_is_told_as_any_other(module: str) -> None:
    code = """
import runpy, sys
MODULE = sys.argv.pop()
class Interrupt:
    def find_spec(self, name, *more):
        if name == MODULE:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
runpy.run_module("pmlopt", run_name="__main__")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, "bench", module],
        env=ENVIRONMENT,
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (INTERRUPTED, b"pmlopt: interrupted\n")


@POSIX
def test_a_sweep_that_the_keyboard_interrupts_goes_on(folder: Path) -> None:
    arguments = [
        "sweep",
        "--prior",
        "p.csv",
        "--epsilon",
        "0.1:2:60",
        "--utility",
        "hamming",
        "-o",
        "t.csv",
    ]
    part = folder / "t.csv.part"
    with subprocess.Popen(
        [sys.executable, "-c", HEEDING, *arguments],
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as running:  # fmt: skip
        end = time.monotonic() + 60
        while not (part.exists() and part.read_bytes().count(b"\n") > 3):
            assert running.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGINT)  # its workers too, as a terminal does
        _, said = running.communicate(timeout=30)
    assert running.returncode == INTERRUPTED
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert 3 < len(part.read_text().splitlines()) < 60
    assert "t.csv.lock" not in contents(folder)
    run(*arguments)
    assert len((folder / "t.csv").read_text().splitlines()) == 61
