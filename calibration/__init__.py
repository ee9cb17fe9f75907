"""Probability calibration: from scores to probabilities that mean what they say.

The package works on any scores with 0/1 labels. It knows nothing of regression: it
never imports `localexpert`. `__init__.pyi` lists its names.
"""

from calibration._lazy import find_lazily as _find_lazily

# The version is written only here. The build, the manual and `localexpert` read it.
__version__ = "0.1.0.dev0"

__all__, __getattr__, __dir__ = _find_lazily(__name__)
