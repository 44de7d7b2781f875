"""The built wheel, not the checkout: it installs into an empty environment and imports from anywhere."""

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("fgrad", "compat", "triton_kernels")

pytestmark = [pytest.mark.heavy, pytest.mark.xdist_group("wheel")]  # one build, one environment


def run(*command, cwd):
    """Run a command to its end and return its output; its error text is the failure's."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    # Built from a copy: a build folder in the tree would hand the files of an older build to the next wheel.
    tree = tmp_path_factory.mktemp("tree")
    for name in SOURCES:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tree / "dist", ".", cwd=tree)
    (built,) = (tree / "dist").glob("fgrad-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Return the Python of an environment that holds the wheel and its one dependency, and an empty folder."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    (folder / "elsewhere").mkdir()
    return python, folder / "elsewhere"


def test_holds_every_source_file(wheel):
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".py", "py.typed"))}
    expected = set()
    for top in SOURCES:
        prefix = "fgrad" if top == "fgrad" else f"fgrad/{top}"
        files = [path for path in (ROOT / top).rglob("*") if path.suffix == ".py" or path.name == "py.typed"]
        expected |= {f"{prefix}/{path.relative_to(ROOT / top).as_posix()}" for path in files}
    assert inside == expected


def test_imports_outside_the_checkout(installed):
    python, elsewhere = installed
    code = "import fgrad, fgrad.compat, fgrad.triton_kernels; print(fgrad.__file__, fgrad.compat.__file__)"
    printed = run(python, "-I", "-c", code, cwd=elsewhere)
    assert str(ROOT) not in printed
    assert printed.count("site-packages") == 2


def test_a_users_compat_module_is_no_obstacle(installed):
    python, elsewhere = installed
    (elsewhere / "compat.py").write_text("raise AssertionError('shadowed')")
    run(python, "-c", "import fgrad.compat", cwd=elsewhere)


def test_differentiates(installed):
    python, elsewhere = installed
    printed = run(python, "-c", "import fgrad; print(fgrad.grad(lambda x: x * x)(3.0))", cwd=elsewhere)
    assert float(printed) == 6.0


def test_describes_itself(installed):
    python, elsewhere = installed
    assert "numpy" in run(python, "-m", "fgrad", cwd=elsewhere)
