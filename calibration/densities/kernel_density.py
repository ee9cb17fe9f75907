"""One class's kernel density estimate, from weighted rows on a grid of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from calibration._kernels.kernel_sums import bin_rows, kernel_sums
from calibration.densities.class_densities import robust_spread
from calibration.typing import Float64Array

KernelName: TypeAlias = Literal["gaussian", "boxcar", "epanechnikov", "tricube"]

# Steps of the grid per bandwidth. Binning and joining nodes by lines widen a kernel
# by (h / 16)^2 / 3 in variance, about a thousandth of its own.
STEPS = 16
# More points than this are put in order first: neighbours share their work.
_SORT_FROM = 4096


@dataclass(frozen=True)
class KernelShape:
    """A kernel K(u), symmetric about 0.

    Parameters
    ----------
    reach : float
        K is 0 (for the normal kernel: below 1e-9 of its peak) at |u| beyond.
    roughness : float
        Integral of K^2.
    variance : float
        Integral of u^2 K.
    """

    reach: float
    roughness: float
    variance: float

    @property
    def canonical(self) -> float:
        """Bandwidth at which kernels of all shapes smooth alike (Marron & Nolan)."""
        return float((self.roughness / self.variance**2) ** 0.2)


KERNELS: dict[str, KernelShape] = {
    "gaussian": KernelShape(6.5, 0.5 / float(np.sqrt(np.pi)), 1.0),
    "boxcar": KernelShape(1.0, 1.0 / 2.0, 1.0 / 3.0),
    "epanechnikov": KernelShape(1.0, 3.0 / 5.0, 1.0 / 5.0),
    "tricube": KernelShape(1.0, 175.0 / 247.0, 35.0 / 243.0),
}


def tabulate_kernel(kernel: KernelName) -> Float64Array:
    """Return K(d / STEPS) / K(0) for d = 0, 1, ... up to the kernel's reach."""
    u = np.arange(int(KERNELS[kernel].reach * STEPS) + 1) / STEPS
    if kernel == "gaussian":
        return np.asarray(np.exp(-0.5 * u**2))
    if kernel == "boxcar":
        # Half at the edge, so that the steps sum to the integral.
        return np.where(u < 1.0, 1.0, 0.5)
    if kernel == "epanechnikov":
        return 1.0 - u**2
    return np.asarray((1.0 - u**3) ** 3)


@dataclass(frozen=True)
class KernelDensity:
    """Rows of one class, binned for one bandwidth.

    Build it with `from_rows`.

    Parameters
    ----------
    kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}
    bandwidth : float
    nodes, mass : ndarrays of shape (k,)
        Occupied nodes, in steps of bandwidth / 16, and their weights.
    """

    kernel: KernelName
    bandwidth: float
    nodes: Float64Array
    mass: Float64Array

    @classmethod
    def from_rows(
        cls,
        x: Float64Array,
        weight: Float64Array,
        kernel: KernelName,
        bandwidth: float,
    ) -> KernelDensity:
        """Bin rows at sorted `x`.

        Parameters
        ----------
        x, weight : ndarrays of shape (n,)
        kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}
        bandwidth : float

        Returns
        -------
        KernelDensity
        """
        binned = bin_rows(x, weight, bandwidth / STEPS)
        return cls(kernel, bandwidth, *binned)

    def sums(self, x: Float64Array) -> Float64Array:
        """Return sum_i w_i K((x - x_i) / h) / K(0): rows at x, as the kernel counts."""
        order = np.argsort(x) if len(x) > _SORT_FROM else np.arange(len(x))
        table, step = tabulate_kernel(self.kernel), self.bandwidth / STEPS
        out = np.empty(len(x))
        out[order] = kernel_sums(x[order], self.nodes, self.mass, table, step)
        return out

    def own(self, x: Float64Array) -> Float64Array:
        """Return what a row of weight 1 at each of `x` adds to `sums` there."""
        table, step = tabulate_kernel(self.kernel), self.bandwidth / STEPS
        # It lies between two nodes, and so does its place: two pairs meet, two are a
        # step apart.
        share = x / step - np.floor(x / step)
        apart = 2.0 * share * (1.0 - share)
        return np.asarray((1.0 - apart) * table[0] + apart * table[1])

    def density(self, x: Float64Array) -> Float64Array:
        """Return the density at `x`, which integrates to 1."""
        # The integral of the kernel as it is used, a sum over the steps.
        steps = 2.0 * float(tabulate_kernel(self.kernel).sum()) - 1.0
        height = STEPS / (steps * self.bandwidth * float(self.mass.sum()))
        return height * self.sums(x)


def silverman_bandwidth(
    x: Float64Array, weight: Float64Array, kernel: KernelName
) -> float:
    """Return 1.06 min(sd, IQR / 1.349) n^(-1/5), as wide for other kernels; 0 if tied.

    Parameters
    ----------
    x, weight : ndarrays of shape (n,)
        Sorted places and how many rows each has.
    kernel : {"gaussian", "boxcar", "epanechnikov", "tricube"}

    Returns
    -------
    float
    """
    # Canonical kernels: one number for how much is smoothed, whatever the shape.
    alike = KERNELS[kernel].canonical / KERNELS["gaussian"].canonical
    spread = robust_spread(x, weight)
    return float(1.06 * spread * weight.sum() ** -0.2 * alike)
