"""Programs that say `import torch` run unchanged; names that are missing say what is there."""

import subprocess
import sys
import textwrap

import pytest

import fgrad.compat


def test_as_torch_puts_back_what_torch_was():
    before = sys.modules.get("torch")
    with fgrad.compat.as_torch() as torch:
        import torch as inside
        import torch.nn.functional as functional
        from torch.autograd import Function

        assert inside is torch is fgrad.compat
        assert functional is fgrad.compat.nn.functional
        assert Function is fgrad.compat.autograd.Function
    assert sys.modules.get("torch") is before


def test_a_script_runs_with_its_arguments(tmp_path):
    script = tmp_path / "script.py"
    (tmp_path / "helper.py").write_text("import torch\nx = torch.ones(2, requires_grad=True)\n")
    script.write_text(
        textwrap.dedent("""
        import sys
        import torch
        import torch.fft, torch.linalg, torch.utils.checkpoint
        from torch.autograd import Variable, gradcheck
        from helper import x
        (x * 3).sum().backward()
        print(sys.argv[1:], x.grad.tolist(), torch.__name__, __name__)
        """)
    )
    found = subprocess.run(
        [sys.executable, "-m", "fgrad.compat", str(script), "a", "-b"], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "['a', '-b'] [3.0, 3.0] fgrad.compat __main__"


def test_without_arguments_it_says_how_it_is_used():
    found = subprocess.run([sys.executable, "-m", "fgrad.compat"], capture_output=True, text=True)
    assert found.returncode == 2
    assert "usage" in found.stderr


def test_a_missing_name_says_what_is_there():
    with pytest.raises(AttributeError, match="did you mean .*sinh"):
        fgrad.compat.sinhh  # noqa: B018
