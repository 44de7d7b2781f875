"""What the tests of pictures share: reading SVG and DOT as strictly as their readers do."""

import re
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|-?\d+(?:\.\d+)?|->|[{}\[\]=,;])')


def parse_svg(text):
    """Return the root of an SVG file; ParseError if it is not well-formed."""
    return ET.fromstring(text)


def texts(root):
    return ["".join(t.itertext()) for t in root.iter(SVG + "text")]


def parse_dot(text):
    """Return nodes (name to attributes) and edges of DOT text, read by its grammar; AssertionError if it is not DOT."""
    tokens = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match, f"not DOT at {text[at : at + 40]!r}"
        tokens.append(match[1])
        at = match.end()
    assert tokens[:2] == ["digraph", "{"]
    assert tokens[-1] == "}"
    nodes, edges = {}, []
    rest = tokens[2:-1]
    while rest:
        name = rest.pop(0)
        if rest and rest[0] == "->":
            edges.append((name, rest[1]))
            del rest[:2]
            continue
        attributes = {}
        assert rest.pop(0) == "["
        while rest[0] != "]":
            key, equals, value = rest[:3]
            assert equals == "="
            attributes[key] = unquoted(value)
            del rest[:3]
            if rest[0] == ",":
                rest.pop(0)
        rest.pop(0)
        nodes[name] = attributes
    return {k: v for k, v in nodes.items() if k not in ("graph", "node", "edge")}, edges


def unquoted(value):
    """Return what Graphviz shows for an attribute."""
    if not value.startswith('"'):
        return value
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value[1:-1])
