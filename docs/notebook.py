"""Make the notebook of the tour from its page: `python docs/notebook.py`.

Text becomes text, and fences of examples become cells without prompts and outputs.
"""

import doctest
import json
import re
from pathlib import Path

PAGE = Path(__file__).parent / "tour.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
FENCE = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def markdown(text):
    """Return a cell of text."""
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip("\n").splitlines(keepends=True)}


def code(examples):
    """Return a cell of code; one that shows an error is marked as such."""
    tags = {"tags": ["raises-exception"]} if examples[-1].exc_msg is not None else {}
    blocks = [example.source + "\n" * (example.source.count("\n") > 1) for example in examples]
    source = "".join(blocks).strip("\n").splitlines(keepends=True)
    return {"cell_type": "code", "metadata": tags, "source": source, "execution_count": None, "outputs": []}


def code_cells(fence):
    """Yield the cells of a fence, each of which ends with the value it shows."""
    examples = []
    for example in doctest.DocTestParser().get_examples(fence):
        examples.append(example)
        if example.want:
            yield code(examples)
            examples = []
    if examples:
        yield code(examples)


def notebook(page):
    """Return the notebook of a page, as JSON."""
    text, *rest = FENCE.split(page.replace("\nThe same tour is a [notebook](tour.ipynb).", ""))
    cells = [markdown(text)]
    for fence, text in zip(rest[::2], rest[1::2], strict=True):
        cells += code_cells(fence)
        if text.strip():
            cells.append(markdown(text))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(PAGE.read_text()))
