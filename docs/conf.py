"""Sphinx configuration."""

from calibration import __version__

project = "localexpert"
author = "the localexpert developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc"]
exclude_patterns = ["_build"]
default_role = "code"

html_theme = "furo"
html_title = f"localexpert {release}"

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
# The docstrings give the types, with shapes.
autodoc_typehints = "none"
numpydoc_show_class_members = False
_FROM_SKLEARN = ("get_metadata_routing", "set_output")


def skip_what_sklearn_adds(
    app: object, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Leave out the methods that scikit-learn adds, which are in its own manual."""
    del app, what, obj, skip, options
    is_request = name.startswith("set_") and name.endswith("_request")
    return True if is_request or name in _FROM_SKLEARN else None


def setup(app: object) -> None:
    """Connect the hook."""
    app.connect("autodoc-skip-member", skip_what_sklearn_adds)  # type: ignore[attr-defined]
