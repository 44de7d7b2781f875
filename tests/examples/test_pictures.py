"""The pictures of the guide are drawn by its example, and each is a file that opens without a network."""

import importlib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/guides/pictures.md"


@pytest.mark.heavy
def test_every_picture_of_the_guide_is_drawn(tmp_path):
    drawn = importlib.import_module("pictures").main(tmp_path)
    for name in drawn:
        text = (tmp_path / name).read_text()
        ET.fromstring(text)
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
        assert f"(pictures/{name})" in PAGE.read_text()
        assert (PAGE.parent / "pictures" / name).exists()
    assert drawn == sorted(path.name for path in (PAGE.parent / "pictures").glob("*.svg"))
