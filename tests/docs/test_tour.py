"""The notebook of the tour is made of its page, runs from top to bottom, and shows Programs and graphs as such."""

import importlib.util
from pathlib import Path

import nbclient
import nbformat
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("notebook", DOCS / "notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notebook_is_made_of_the_page(maker):
    made = maker.notebook(maker.PAGE.read_text())
    assert maker.NOTEBOOK.read_text() == made, "run: python docs/notebook.py"
    nbformat.validate(nbformat.reads(made, as_version=4))


@pytest.mark.heavy
def test_the_notebook_runs(maker):
    notebook = nbformat.read(maker.NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    shown = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    assert [out.ename for out in shown if out.output_type == "error"] == ["NonFiniteError"]
    pages = [out.data["text/html"] for out in shown if "text/html" in out.get("data", {})]
    for what in ("<table", "<svg"):
        assert any(what in page for page in pages), what
