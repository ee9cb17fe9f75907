"""Distributional regression by calibrated local experts (on its way).

One classifier per threshold says how likely the target lies below it; calibrated and
joined, their answers become one predictive distribution per row. Nothing of it is
here yet; the calibration core it stands on is the package `calibration`.

Import rule: files of this package may import the public names of `calibration` (and
its kernels may import kernels), never the reverse.
"""

from importlib.metadata import version

__version__ = version("localexpert")

__all__: list[str] = []
