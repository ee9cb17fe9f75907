"""Probability calibration: from scores to probabilities that mean what they say.

Works on any scores with 0/1 labels and knows nothing of regression: this package
never imports `localexpert`. `__init__.pyi` lists its names.
"""

from calibration._lazy import find_lazily as _find_lazily

# The one place that says it: the build, the manual and `localexpert` read it here.
__version__ = "0.1.0.dev0"

__all__, __getattr__, __dir__ = _find_lazily(__name__)
