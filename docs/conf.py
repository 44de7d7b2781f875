"""How the site is built: `make docs`. Pages are Markdown; the reference is made of docstrings."""

import re

import fgrad

project = "fgrad"
author = "the fgrad authors"
copyright = "the fgrad authors"
release = version = fgrad.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "fgrad"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say what is taken, in words
autodoc_default_options = {"members": True, "imported-members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
nitpicky = False


def _skip(app, what, name, obj, skip, options):
    """Leave out what other packages made and a module of ours merely passes on, such as NumPy's dtypes."""
    module = getattr(obj, "__module__", None) or ""
    return True if module and not module.startswith("fgrad") else None


CODE = re.compile(r"(`+)(.+?)\1(\w?)")


def _as_rest(line):
    """Return a line of a docstring, which is plain text with `code` in it, as reStructuredText."""
    parts = []
    end = 0
    for code in CODE.finditer(line):
        parts += [re.sub(r"([*|])", r"\\\1", line[end : code.start()]), f"``{code[2]}``", code[3] and f"\\ {code[3]}"]
        end = code.end()
    return "".join([*parts, re.sub(r"([*|])", r"\\\1", line[end:])])


def _plain_text(app, what, name, obj, options, lines):
    """Keep reStructuredText from reading `*args` or `|x|` in docstrings as markup of its own; examples stay."""
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            lines[i] = _as_rest(line)


def setup(app):
    """Connect to Sphinx."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _plain_text, priority=400)  # napoleon, at 500, makes markup
