"""Sphinx configuration."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError
from sphinx_gallery.sorting import ExplicitOrder

from calibration import __version__

project = "localexpert"
author = "the localexpert developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
default_role = "code"

html_theme = "furo"
html_title = f"localexpert {release}"
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
# The docstrings give the types, with shapes.
autodoc_typehints = "none"
numpydoc_show_class_members = False

# The scripts are shown with the pictures of images/. They are not run here, since that
# takes minutes. tests/test_examples.py runs them, and `make pictures` draws.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": ExplicitOrder(
        [
            "first_distribution.py",
            "house_price_risk.py",
            "calibrate_classifier.py",
            "three_classes.py",
            "explain_forecast.py",
            "stack_forecasts.py",
            "monotone_rents.py",
            "*",
        ]
    ),
    "plot_gallery": "False",
    "download_all_examples": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "show_signature": False,
}

_FROM_SKLEARN = ("get_metadata_routing", "set_output")


def skip_what_sklearn_adds(
    app: object, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out the methods that scikit-learn adds, which are in its own manual."""
    del app, what, obj, skip, options
    is_request = name.startswith("set_") and name.endswith("_request")
    return True if is_request or name in _FROM_SKLEARN else None


# What docutils does not know of TeX: sizes that say no side, and one name for dots.
_SIZED = re.compile(r"\\([bB]ig)([(\[|/)\]])")
_SIDES = {")": "r", "]": "r"}


def plain_tex(text: str) -> str:
    """Return a formula in the commands that docutils has."""
    sided = _SIZED.sub(lambda m: f"\\{m[1]}{_SIDES.get(m[2], 'l')}{m[2]}", text)
    return re.sub(r"\\dots\b", r"\\ldots", sided)


def write_formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers show without a script or a network."""
    block = isinstance(node, nodes.math_block)
    try:
        translator.body.append(tex2mathml(plain_tex(node.astext()), as_block=block))
    except MathError as error:
        message = f"a formula cannot be written: {node.astext()}: {error}"
        raise ExtensionError(message) from error
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Connect the hook, and say how formulas are written."""
    app.connect("autodoc-skip-member", skip_what_sklearn_adds)
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
