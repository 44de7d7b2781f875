"""Every program in README.md runs as it stands there and prints what stands below it; every link leads somewhere."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PROGRAM = re.compile(r"\*\*(?P<name>\w+)\.\*\*.*?```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```", re.DOTALL)
PROGRAMS = [match.groupdict() for match in PROGRAM.finditer(README)]


def test_every_program_has_its_output():
    assert len(PROGRAMS) == README.count("```python") == 3


HEAVY = {"Kernels"}  # loads Triton


@pytest.mark.parametrize(
    "program", [pytest.param(p, id=p["name"], marks=[pytest.mark.heavy] * (p["name"] in HEAVY)) for p in PROGRAMS]
)
def test_programs(program, tmp_path):
    if "import triton" in program["code"] and importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed: its wheels exist for Linux alone, see the extra fgrad[triton]")
    file = tmp_path / "program.py"  # Triton reads a kernel's source from its file
    file.write_text(program["code"])
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == program["output"]


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)", README))
def test_links(target):
    assert (ROOT / target).exists()


def test_commands_are_targets_of_make():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = set(re.findall(r"(?:^    |`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets


MEASURED = re.findall(r"^\| (W\d+) \| [^|]+ \| (.+) \|$", README, re.MULTILINE)


@pytest.mark.parametrize(("workload", "times"), MEASURED)
def test_measurements_are_those_of_the_benchmarks(workload, times):
    page = (ROOT / "docs/benchmarks.md").read_text()
    known = {cell.strip() for cell in page.split("|")}
    assert set(times.split(" | ")) <= known, f"write the README's row {workload} anew from docs/benchmarks.md"
