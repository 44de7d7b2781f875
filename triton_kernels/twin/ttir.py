"""Reads TTIR text into functions, blocks and operations.

Knows the layout of printed MLIR (one operation a line, regions in braces, locations at the end) and nothing of what an
operation means. Imports neither Triton nor NumPy.
"""

import re
from dataclasses import dataclass, field


@dataclass
class Type:
    """A printed type: shape (() for scalars), element name such as "bf16", and whether it is a pointer to it."""

    shape: tuple
    element: str
    pointer: bool = False


@dataclass
class Block:
    """A straight line of operations; `live` says whether anything branches to it."""

    label: str
    parameters: list = field(default_factory=list)
    operations: list = field(default_factory=list)


@dataclass
class Operation:
    """One operation: result names with their counts, its name, the text after the name, regions, source line."""

    results: list
    name: str
    text: str
    regions: list
    source: str

    @property
    def arguments(self):
        """Return the text between the operation's name and its types."""
        return _split_type(self.text)[0]

    @property
    def type_text(self):
        """Return the text of the operation's types."""
        return _split_type(self.text)[1]

    @property
    def operands(self):
        """Return the names of the values the operation reads, in order."""
        return re.findall(VALUE, self.arguments)

    @property
    def operand_type(self):
        """Return the type of the first operand."""
        return parse_type(re.findall(TYPE, self.type_text)[0])

    @property
    def result_type(self):
        """Return the type of the only result."""
        return parse_type(re.findall(TYPE, self.type_text)[-1])

    def attribute(self, name):
        """Return the text of an attribute, or None."""
        match = re.search(rf"[{{<, ]{name} = (array<i\d+: [^>]*>|\"[^\"]*\"|[^\s,}}>]+)", self.text)
        return match[1] if match else None

    def integers(self, name):
        """Return an attribute printed as `array<i32: 1, 0>` as a tuple of numbers."""
        return tuple(int(number) for number in re.findall(r"-?\d+", self.attribute(name).split(":")[1]))


@dataclass
class Function:
    """A function: its name, its parameters as (name, type text), and its blocks."""

    name: str
    parameters: list
    blocks: list


VALUE = r"%[\w$.\-]+(?:#\d+)?"
_NESTED = r"<[^<>]*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>[^<>]*)*>"
TYPE = rf"!?[a-zA-Z][\w.]*(?:{_NESTED})?"
_LOCATION = re.compile(r"\s*loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_TRAILING_LOCATION = re.compile(r"\s*loc\((#loc\d*|unknown)\)$")
_RESULTS = re.compile(r"((?:%[\w$.\-]+(?::\d+)?(?:, )?)+) = (.*)")
_PARAMETER = re.compile(rf"(%[\w$.\-]+): ({TYPE})")


def parse(text):
    """Return the functions of a printed module, by name, the kernel first."""
    lines = [line.strip() for line in text.splitlines()]
    locations = {match[1]: match[2] for line in lines if (match := re.fullmatch(r"(#loc\d*) = loc\((.*)\)", line))}
    reader = _Reader([line for line in lines if line and not line.startswith("#loc")], locations)
    return reader.functions()


def parse_type(text):
    """Return the Type that a printed type denotes."""
    match = re.fullmatch(r"(?:tensor<((?:\d+x)*))?(!tt\.ptr<(\w+)(?:, \d+)?>|\w+)>?", text.strip())
    if not match:
        raise NotImplementedError(f"the twin cannot read the type {text!r}")
    shape = tuple(int(size) for size in (match[1] or "").split("x") if size)
    return Type(shape, match[3] or match[2], match[3] is not None)


def _split_type(text):
    """Split at the last top-level " : ", which MLIR puts before types."""
    depth, quoted, position = 0, False, len(text)
    for index, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and text[index - 1] != "-"):
            depth -= 1
        elif char == ":" and depth == 0 and text[index - 1 : index + 2] == " : ":
            position = index
    return text[:position], text[position + 1 :]


class _Reader:
    def __init__(self, lines, locations):
        self.lines = lines
        self.locations = locations
        self.position = 0

    def functions(self):
        found = {}
        while self.position < len(self.lines):
            line = self.lines[self.position]
            self.position += 1
            if line.startswith("tt.func"):
                function = self.function(line)
                found[function.name] = function
        return found

    def function(self, line):
        header = _LOCATION.sub("", line)
        name = re.search(r'@("[^"]*"|[\w$.\-]+)', header)[1]
        inside = header[header.index("@") + 1 + len(name) :]
        inside = re.sub(r" \{[^{}]*\}", "", inside.split(") attributes")[0].split(") ->")[0])
        blocks, _ = self.region()
        return Function(name, _PARAMETER.findall(inside), blocks)

    def region(self):
        """Read blocks up to the closing brace; return them and the closing line."""
        blocks = [Block("^entry")]
        while True:
            line = self.lines[self.position]
            self.position += 1
            if line.startswith("}"):
                return blocks, line
            if line.startswith("^"):
                label = re.match(r"\^\w+", line)[0]
                parameters = _PARAMETER.findall(_LOCATION.sub("", line))
                if blocks[0].operations or len(blocks) > 1:
                    blocks.append(Block(label, parameters))
                else:
                    blocks = [Block(label, parameters)]
            else:
                blocks[-1].operations.append(self.operation(line))

    def operation(self, line):
        regions = []
        text = line
        while text.endswith("{"):
            blocks, closing = self.region()
            regions.append(blocks)
            text = text[:-1] + closing[1:] if not closing.endswith("{") else text[:-1] + "{"
        source = ""
        if location := _TRAILING_LOCATION.search(text):
            source = self.source(location[1])
            text = text[: location.start()]
        results = []
        if match := _RESULTS.fullmatch(text):
            results = [(name, int(count or 1)) for name, count in re.findall(r"(%[\w$.\-]+)(?::(\d+))?", match[1])]
            text = match[2]
        name = re.match(r'"?([\w.]+)"?', text)
        return Operation(results, name[1], text[name.end() :].lstrip(), regions, source)

    def source(self, location):
        """Follow location aliases to a "file:line" text; "" where the compiler gave none."""
        text = self.locations.get(location, "")
        for _ in range(32):
            if match := re.search(r'"([^"]+)":(\d+):\d+', text):
                return f"{match[1]}:{match[2]}"
            alias = re.search(r"#loc\d*", text)
            if not alias:
                return ""
            text = self.locations.get(alias[0], "")
        return ""
