"""Distributional regression: for each row a whole calibrated distribution.

May import the public names of `calibration` (and its kernels), never the reverse.
`__init__.pyi` lists its names.
"""

from calibration import __version__ as __version__
from calibration._lazy import find_lazily as _find_lazily

__all__, __getattr__, __dir__ = _find_lazily(__name__)
