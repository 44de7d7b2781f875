"""docs/torch-parity.md: each name of torch.autograd, its state from the outcomes of the test programs, and notes.

`python -m tests.compat.parity_page` prints the page. A name works if programs of the tests use it and all of them end
as they should; the same programs run against the real torch in `make test-parity`.
"""

import functools
import importlib
import re

import fgrad.compat as compat
from tests.compat.programs import PROGRAMS, split
from tests.compat.torch_names import EXCEPTIONS, NAMES, NOTES
from tests.parity.both import Outcome
from tests.parity.test_compat_inplace import STATEMENTS, WRITES
from tests.parity.test_compat_inplace import program_of as program_of_statement
from tests.parity.test_compat_ops import EXPRESSIONS, NN, cases, program_of

HEADER = """# torch.autograd, name by name

`import fgrad.compat as torch` follows torch 2.13. Every row below is made from the tests: a name *works* if the
programs that use it, which also run against the real torch, all end as they should; *missing* names raise an
AttributeError that says what is near. `python -m tests.compat.parity_page > docs/torch-parity.md` makes this page.

## Exceptions to the 1.4 documentation

| the page says | here | why |
| --- | --- | --- |
"""
WORKS, FAILS, UNTESTED, MISSING = "works", "fails", "untested", "missing"

# How a program mentions a name of a namespace, where the bare name could mean another.
MENTIONS = {
    "torch.autograd.functional": r"functional\.{}\b",
    "torch.autograd.forward_ad": r"fw\w*\.{}\b",
    "torch.func": r"func\.{}\b",
    "torch.Tensor": r"\.{}\b",
    "ctx": r"\.{}\b",
    "torch.autograd.Function": r"(\.|def |\b){}\b",
}
OWNERS = {
    "torch.Tensor": compat.Tensor,
    "torch.autograd.Function": compat.autograd.Function,
    "ctx": compat.autograd.function.AutogradContext,
}
SPARSE = dir(type(compat.sparse_coo_tensor([[0]], [1.0], (1,))))
"""What sparse tensors have: in torch it belongs to all tensors."""


def has(namespace, name):
    """Return whether a name of a namespace is there."""
    if namespace in OWNERS:
        return name in dir(OWNERS[namespace]) or namespace == "torch.Tensor" and name in SPARSE
    return hasattr(importlib.import_module("fgrad.compat" + namespace.removeprefix("torch")), name)


@functools.cache
def corpus():
    """Return all test programs, as pairs of a text and whether it ends as it should."""
    programs = []
    for text in PROGRAMS.values():
        kind, phrase, code = split(text)
        programs.append((code, ends(code, kind, phrase)))
    programs += [(text, ends(program_of(text))) for text in [*cases(EXPRESSIONS), *cases(NN)]]
    programs += [(text, ends(program_of_statement(text))) for text in [*cases(WRITES), *cases(STATEMENTS)]]
    return programs


def ends(code, kind=None, phrase=""):
    """Return whether a program ends as it should: with no error, or one of a kind whose message has a phrase."""
    error = Outcome(compat, code).error
    return error is None if kind is None else isinstance(error, kind) and phrase in str(error)


def state(namespace, name):
    """Return the state of a name."""
    if not has(namespace, name):
        return MISSING
    mention = re.compile(MENTIONS.get(namespace, r"\b{}\b").format(re.escape(name)))
    outcomes = [passed for text, passed in corpus() if mention.search(text)]
    if not outcomes:
        return UNTESTED
    return WORKS if all(outcomes) else FAILS


@functools.cache
def states():
    """Return {namespace: {name: state}}."""
    return {space: {name: state(space, name) for name in text.split()} for space, text in NAMES.items()}


def note(namespace, name):
    """Return what is to be said of a name, or nothing."""
    return NOTES.get(namespace, {}).get(name, "")


def page():
    """Return the whole page."""
    parts = [HEADER + "".join(f"| {' | '.join(row)} |\n" for row in EXCEPTIONS)]
    for space in NAMES:
        parts.append(_methods(space) if space == "torch.Tensor" else _section(space))
    return "\n".join(parts)


def _section(space):
    rows = [
        f"| `{name}` | {found} | {note(space, name)} |"
        for name, found in sorted(states()[space].items(), key=lambda item: item[0].lower())
    ]
    return "\n".join([f"## {space}\n", "| name | state | notes |", "| --- | --- | --- |", *rows]) + "\n"


def _methods(space):
    """Return the section of a namespace that is too long for a row a name: those that work in one paragraph."""
    found = states()[space]
    lines = [f"## {space}\n"]
    for wanted in (WORKS, UNTESTED, FAILS):
        names = [f"`{name}`" for name, kind in found.items() if kind == wanted]
        if names:
            lines.append(f"{wanted.capitalize()} ({len(names)} of {len(found)}): {' '.join(names)}\n")
    lines += ["| name | state | notes |", "| --- | --- | --- |"]
    for text, names in _by_note(space, found).items():
        kinds = sorted({found[name] for name in names})
        lines.append(f"| {' '.join(f'`{name}`' for name in names)} | {', '.join(kinds)} | {text} |")
    return "\n".join(lines) + "\n"


def _by_note(space, found):
    """Return {note: names} of what is missing or differs."""
    grouped = {}
    for name, kind in found.items():
        text = note(space, name)
        if text or kind == MISSING:
            grouped.setdefault(text, []).append(name)
    return grouped


if __name__ == "__main__":
    print(page(), end="")
