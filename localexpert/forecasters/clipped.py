"""A smooth road whose mass beyond the bounds is moved to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localexpert.data.sample import Sample
from localexpert.forecasters.around import ForecasterAround
from localexpert.forecasters.forecaster import RoadForecaster
from localexpert.forecasters.mixed import atom_widths
from localexpert.law.bounds import clip
from localexpert.law.law import Law


@dataclass
class ClippedForecaster(ForecasterAround):
    """Fit smooth laws without bounds, and clip what they forecast to the bounds.

    Laws that are cut off, each made whole by its own factor, may cross where whole ones
    do not; clipped ones do not (`clip`).

    Parameters
    ----------
    forecaster : RoadForecaster
        Unfitted, of smooth laws without bounds.
    bounds : (float, float)
        At least one of them finite.
    """

    forecaster: RoadForecaster
    bounds: tuple[float, float]

    def begin(self, sample: Sample) -> float:
        """Begin the smooth road."""
        ends = np.array(self.bounds[:1])
        self.width_ = float(atom_widths(ends, sample.y, sample.weight)[0])
        return self.forecaster.begin(sample)

    def _read_law(self, law: Law) -> Law:
        """Return the law with what lies beyond the bounds at them."""
        return clip(law, *self.bounds, self.width_)
