"""Generated samplers as they run: compilers and interpreters of each language, where the machine has them.

A driver prints the labels that the generated code holds, as hexadecimal UTF-8, and then an answer for each
line that it reads: `b ROW BITS` for the outcome of these bits, `d ROW COUNT` for how often each outcome was
drawn. It knows nothing of the matrix.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

JS_DRIVER = """
const sampler = require(MODULE);
const hex = (text) => Buffer.from(text, "utf8").toString("hex");
console.log("labels " + sampler.inputs.map(hex).join(" "));
console.log("labels " + sampler.outputs.map(hex).join(" "));
const answers = require("fs").readFileSync(0, "utf8").trim().split("\\n").map((line) => {
  const [kind, row, number] = line.split(" ");
  const letter = sampler.inputs[Number(row)];
  if (kind === "b") return sampler.outputs.indexOf(sampler.releaseFromBits(Number(number), letter));
  const counts = sampler.outputs.map(() => 0);
  for (let i = 0; i < Number(number); i++) counts[sampler.outputs.indexOf(sampler.release(letter))]++;
  return counts.join(" ");
});
console.log(answers.join("\\n"));
let refused = 0;
for (const value of ["no such letter", "", null, undefined, NaN, "toString", "__proto__"]) {
  try { sampler.release(value); } catch { refused++; }
}
console.log("refused " + refused);
"""

C_DRIVER = """
#include "sampler.c"
#include <stdio.h>
#include <stdlib.h>
static void print_labels(const char *const *labels, int count) {
  printf("labels");
  for (int i = 0; i < count; i++) {
    printf(" ");
    for (const char *c = labels[i]; *c; c++) printf("%02x", (unsigned char)*c);
  }
  printf("\\n");
}
static int place_of(const char *found) {
  for (int i = 0; i < pmlopt_output_count; i++) if (pmlopt_outputs[i] == found) return i;
  return -1;
}
int main(void) {
  char kind; int row; unsigned long long number;
  print_labels(pmlopt_inputs, pmlopt_input_count);
  print_labels(pmlopt_outputs, pmlopt_output_count);
  while (scanf(" %c %d %llu", &kind, &row, &number) == 3) {
    if (kind == 'b') {
      printf("%d\\n", place_of(pmlopt_release_from_bits(number, pmlopt_inputs[row])));
      continue;
    }
    long *counts = calloc(pmlopt_output_count, sizeof *counts);
    for (unsigned long long i = 0; i < number; i++) counts[place_of(pmlopt_release(pmlopt_inputs[row]))]++;
    for (int i = 0; i < pmlopt_output_count; i++) printf(i ? " %ld" : "%ld", counts[i]);
    printf("\\n"); free(counts);
  }
  printf("refused %d\\n", (pmlopt_release("no such letter") == NULL) + (pmlopt_release(NULL) == NULL));
  return 0;
}
"""

RUST_DRIVER = """
#[path = "sampler.rs"]
mod sampler;
use std::io::BufRead;
fn labels(all: &[&str]) {
    let hex = |text: &&str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
    println!("labels {}", all.iter().map(hex).collect::<Vec<_>>().join(" "));
}
fn place(found: &str) -> usize { sampler::OUTPUTS.iter().position(|one| *one == found).unwrap() }
fn main() {
    labels(&sampler::INPUTS);
    labels(&sampler::OUTPUTS);
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let parts: Vec<&str> = line.split(' ').collect();
        let letter = sampler::INPUTS[parts[1].parse::<usize>().unwrap()];
        let number: u64 = parts[2].parse().unwrap();
        if parts[0] == "b" {
            println!("{}", place(sampler::release_from_bits(number, letter).unwrap()));
            continue;
        }
        let mut counts = vec![0u64; sampler::OUTPUTS.len()];
        for _ in 0..number { counts[place(sampler::release(letter).unwrap())] += 1; }
        println!("{}", counts.iter().map(|c| c.to_string()).collect::<Vec<_>>().join(" "));
    }
    println!("refused {}", sampler::release("no such letter").is_err() as u8);
}
"""

KOTLIN_DRIVER = """
fun hex(text: String) = text.toByteArray(Charsets.UTF_8).joinToString("") { "%02x".format(it) }
fun main() {
    println("labels " + Pmlopt.inputs.joinToString(" ") { hex(it) })
    println("labels " + Pmlopt.outputs.joinToString(" ") { hex(it) })
    while (true) {
        val line = readLine() ?: break
        val parts = line.split(" ")
        val letter = Pmlopt.inputs[parts[1].toInt()]
        if (parts[0] == "b") {
            println(Pmlopt.outputs.indexOf(Pmlopt.releaseFromBits(parts[2].toLong(), letter)))
            continue
        }
        val counts = LongArray(Pmlopt.outputs.size)
        for (i in 0 until parts[2].toLong()) counts[Pmlopt.outputs.indexOf(Pmlopt.release(letter))]++
        println(counts.joinToString(" "))
    }
    println("refused " + (if (runCatching { Pmlopt.release("no such letter") }.isFailure) 1 else 0))
}
"""

SWIFT_DRIVER = """
func hex(_ text: String) -> String {
    text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
func place(_ found: String) -> Int {
    Pmlopt.outputs.firstIndex { Array($0.unicodeScalars) == Array(found.unicodeScalars) }!
}
print("labels " + Pmlopt.inputs.map(hex).joined(separator: " "))
print("labels " + Pmlopt.outputs.map(hex).joined(separator: " "))
while let line = readLine() {
    let parts = line.split(separator: " ")
    let letter = Pmlopt.inputs[Int(parts[1])!]
    if parts[0] == "b" {
        print(place(try! Pmlopt.releaseFromBits(UInt64(parts[2])!, letter)))
        continue
    }
    var counts = Array(repeating: 0, count: Pmlopt.outputs.count)
    for _ in 0..<Int(parts[2])! { counts[place(try! Pmlopt.release(letter))] += 1 }
    print(counts.map(String.init).joined(separator: " "))
}
print("refused", (try? Pmlopt.release("no such letter")) == nil ? 1 : 0)
"""

R_DRIVER = """
source("sampler.R", encoding = "UTF-8")
hex <- function(text) paste(as.character(charToRaw(enc2utf8(text))), collapse = "")
cat("labels", vapply(pmlopt$inputs, hex, ""), "\\n")
cat("labels", vapply(pmlopt$outputs, hex, ""), "\\n")
lines <- strsplit(readLines(file("stdin")), " ")
kinds <- vapply(lines, `[`, "", 1)
rows <- as.integer(vapply(lines, `[`, "", 2)) + 1
numbers <- as.numeric(vapply(lines, `[`, "", 3))
ask <- kinds == "b"
found <- character(length(lines))
if (any(ask)) {
  drawn <- pmlopt$release_from_bits(numbers[ask], pmlopt$inputs[rows[ask]])
  found[ask] <- match(drawn, pmlopt$outputs) - 1
}
for (place in which(!ask)) {
  drawn <- pmlopt$release(rep(pmlopt$inputs[rows[place]], numbers[place]))
  found[place] <- paste(tabulate(match(drawn, pmlopt$outputs), length(pmlopt$outputs)), collapse = " ")
}
writeLines(found)
refused <- function(value) inherits(try(pmlopt$release(value), silent = TRUE), "try-error")
cat("refused", sum(refused("no such letter"), refused(NA)), "\\n")
"""

PYTHON_DRIVER = """
import sys, sampler
for side in (sampler.INPUTS, sampler.OUTPUTS):
    print("labels", *(text.encode().hex() for text in side))
for line in sys.stdin.read().splitlines():
    kind, row, number = line.split()
    letter = sampler.INPUTS[int(row)]
    if kind == "b":
        print(sampler.OUTPUTS.index(sampler.release_from_bits(int(number), letter)))
    else:
        drawn = [sampler.release(letter) for _ in range(int(number))]
        print(*(drawn.count(one) for one in sampler.OUTPUTS))
refused = 0
for value in ("no such letter", None, 1.5, True):
    try:
        sampler.release(value)
    except ValueError:
        refused += 1
print("refused", refused)
"""


@dataclass(frozen=True)
class Toolchain:
    """How the sampler of a language is built and run in a folder.

    Attributes:
        language: as it is exported.
        file: the name of the sampler.
        driver: the name and the text of what calls it.
        build: commands.
        run: the command.
        tool: the program that the machine must have.
        refusals: how many wrong values the driver tries.
    """

    language: str
    file: str
    driver: tuple[str, str]
    build: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]
    tool: str
    refusals: int

    @property
    def is_there(self) -> bool:
        """Whether the machine has what it needs."""
        return find_tool(self.tool) is not None

    def prepare(self, folder: Path) -> None:
        """Build the driver beside the sampler, which must be there."""
        name, text = self.driver
        (folder / name).write_text(text, "utf-8")
        for command in self.build:
            subprocess.run(resolve(command), cwd=folder, check=True, capture_output=True)

    def ask(self, folder: Path, lines: Sequence[str]) -> list[str]:
        """What the driver prints for some lines."""
        answered = subprocess.run(
            resolve(self.run), cwd=folder, input="\n".join(lines) + "\n", check=True,
            capture_output=True, text=True, encoding="utf-8",
        )  # fmt: skip
        return answered.stdout.splitlines()


def find_tool(name: str) -> str | None:
    """The path of a program, also where installers of languages put it."""
    if name == "rustc":
        own = Path.home() / ".cargo" / "bin" / name
        return shutil.which(name) or (str(own) if own.is_file() else None)
    if name == "tsc":
        return os.environ.get("TSC") or shutil.which(name)
    return sys.executable if name == "python" else shutil.which(name)


def resolve(command: Sequence[str]) -> list[str]:
    return [find_tool(command[0]) or command[0], *command[1:]]


def make_js_driver(module: str) -> str:
    return JS_DRIVER.replace("MODULE", repr(module))


def make_mjs_driver(module: str) -> str:
    """The same driver as a module, which imports the sampler by its named exports."""
    imports = (
        'import { createRequire } from "module";\nconst require = createRequire(import.meta.url);\n'
    )
    return imports + JS_DRIVER.replace(
        "const sampler = require(MODULE)", f"import * as sampler from {module!r}"
    )


_TYPE = r"(?:readonly |\()*(?:string|number|boolean|unknown|undefined)(?:\[\]|\))*"
_ANNOTATION = re.compile(rf": {_TYPE}(?: \| {_TYPE})*(?=[,)=]| =| \{{)")


def erase_types(text: str) -> str:
    """TypeScript of a sampler without its types: the module in JavaScript that a compiler makes of it."""
    return _ANNOTATION.sub("", text)


_GCC = ("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "driver.c", "-o", "driver")
_TSC = ("tsc", "--strict", "--target", "es2020", "--lib", "es2020,dom", "--module", "commonjs",
        "--outDir", "out", "sampler.ts")  # fmt: skip
_KOTLIN = ("kotlinc", "sampler.kt", "driver.kt", "-include-runtime", "-d", "driver.jar")
_RUN_KOTLIN = ("java", "-cp", "driver.jar", "DriverKt")

_RUSTC = ("rustc", "-O", "driver.rs", "-o", "driver")
_SWIFTC = ("swiftc", "-O", "sampler.swift", "main.swift", "-o", "driver")
_NODE = ("node", "driver.js")

_ALL = (
    Toolchain(
        "js", "sampler.js", ("driver.js", make_js_driver("./sampler.js")), (), _NODE, "node", 7
    ),
    Toolchain(
        "mjs",
        "sampler.mjs",
        ("driver.mjs", make_mjs_driver("./sampler.mjs")),
        (),
        ("node", "driver.mjs"),
        "node",
        7,
    ),
    Toolchain(
        "ts",
        "sampler.ts",
        ("driver.js", make_js_driver("./out/sampler.js")),
        (_TSC,),
        _NODE,
        "tsc",
        7,
    ),
    Toolchain("c", "sampler.c", ("driver.c", C_DRIVER), (_GCC,), ("./driver",), "gcc", 2),
    Toolchain(
        "rust", "sampler.rs", ("driver.rs", RUST_DRIVER), (_RUSTC,), ("./driver",), "rustc", 1
    ),
    Toolchain(
        "kotlin", "sampler.kt", ("driver.kt", KOTLIN_DRIVER), (_KOTLIN,), _RUN_KOTLIN, "kotlinc", 1
    ),
    Toolchain(
        "swift",
        "sampler.swift",
        ("main.swift", SWIFT_DRIVER),
        (_SWIFTC,),
        ("./driver",),
        "swiftc",
        1,
    ),
    Toolchain("r", "sampler.R", ("driver.R", R_DRIVER), (), ("Rscript", "driver.R"), "Rscript", 2),
    Toolchain(
        "python",
        "sampler.py",
        ("driver.py", PYTHON_DRIVER),
        (),
        ("python", "driver.py"),
        "python",
        4,
    ),
)
TOOLCHAINS = {one.language: one for one in _ALL}
"""All languages but SQL, which needs a server."""


class PostgresServer:
    """A server of PostgreSQL of its own, in a folder."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self.programs = folder, programs
        self._data = str(folder / "data")
        # the server refuses to run as root
        self._user = ("runuser", "-u", "postgres", "--") if os.geteuid() == 0 else ()

    def _run(self, program: str, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            [*self._user, str(self.programs / program), *arguments],
            input=text, capture_output=True, text=True, encoding="utf-8", cwd="/",
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def start(self) -> None:
        """Start it, which raises a RuntimeError where it does not run."""
        self._run("initdb", "-D", self._data, "-A", "trust", "-E", "UTF8")
        options = f"-k {self.folder} -c listen_addresses=''"
        self._run(
            "pg_ctl", "-D", self._data, "-o", options, "-l", f"{self._data}/log", "-w", "start"
        )

    def ask(self, text: str) -> list[str]:
        """The lines of the answer to SQL."""
        options = ("-h", str(self.folder), "-d", "postgres", "-qAt", "-v", "ON_ERROR_STOP=1")
        return self._run("psql", *options, text=text).splitlines()

    def stop(self) -> None:
        """Stop it at once."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")


@contextmanager
def serve_postgres() -> Iterator[Callable[[str], list[str]] | None]:
    """Yield a function from SQL to the lines of its answer; None where no server can be started."""
    programs = find_postgres()
    if programs is None:
        yield None
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o777)  # the server runs as another user
        server = PostgresServer(Path(place), programs)
        try:
            server.start()
        except RuntimeError:
            yield None
            return
        try:
            yield server.ask
        finally:
            server.stop()


def find_postgres() -> Path | None:
    """The folder of the programs of the newest PostgreSQL; None where there is none, or it cannot be run."""
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return None
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def write_postgres_questions(
    labels: Sequence[str], cases: Sequence[tuple[int, int]], name: str = "pmlopt"
) -> str:
    """SQL that prints, for each row and bits, the outcome as hexadecimal UTF-8."""
    texts = ",".join(f"convert_from('\\x{text.encode().hex()}','UTF8')" for text in labels)
    values = ",".join(f"({place},{row + 1},{bits})" for place, (row, bits) in enumerate(cases))
    return (
        f"WITH asked(place, letter, bits) AS (VALUES {values}), known(labels) AS (SELECT ARRAY[{texts}]) "
        f"SELECT encode(convert_to({name}_release_from_bits(bits, labels[letter]), 'UTF8'), 'hex') "
        "FROM asked, known ORDER BY place;"
    )
