"""The losses that laws expect of themselves, by quadrature that adapts to each row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.laws.discrete import DiscreteLaw
from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw

# Scores whose quantiles border the first panels, to where floats end: of a tail whose
# mean is all but infinite, much lies where hardly any probability does.
_SCORES = np.array([0.5, 1.0, 1.75, 2.5, 3.5, 4.75, 6.5, 8.5, 11.5, 16.0, 24.0, 37.5])
_LEVELS = np.concatenate([-_SCORES[::-1], [0.0], _SCORES])
# A panel is halved until both rules agree to this share of the row's integrals. The
# finer one is what counts, and is right to far more digits.
_TOLERANCE = 2e-10
_ROUNDS = 60
_CHUNK = 512


def _both_rules() -> tuple[Float64Array, Float64Array]:
    """Return nodes in [0, 1], and weights (2, 15) of Gauss's and of Kronrod's rule.

    Of 7 and of 15 nodes, the former being every other one of the latter (Piessens et
    al. 1983, QUADPACK).
    """
    x = [
        0.991455371120812639206854697526329,
        0.949107912342758524526189684047851,
        0.864864423359769072789712788640926,
        0.741531185599394439863864773280788,
        0.586087235467691130294144691258,
        0.405845151377397166906606412076961,
        0.207784955007898467600689403773245,
    ]
    fine = [
        0.022935322010529224963732008058970,
        0.063092092629978553290700663189204,
        0.104790010322250183839876322541518,
        0.140653259715525918745189590510238,
        0.169004726639267902826583426598550,
        0.190350578064785409913256402421014,
        0.204432940075298892414161999234649,
    ]
    few = [
        0.129484966168869693270611432679082,
        0.279705391489276667901467771423780,
        0.381830050505118944950369775488975,
    ]
    nodes = np.array([-each for each in x] + [0.0] + x[::-1])
    weights = np.zeros((2, 15))
    weights[1] = [*fine, 0.209482141084727828012999174891714, *fine[::-1]]
    weights[0, 1::2] = [*few, 0.417959183673469387755102040816327, *few[::-1]]
    return 0.5 * (1.0 + nodes), 0.5 * weights


_NODES, _WEIGHTS = _both_rules()


class _Panels(NamedTuple):
    """Rows of m panels, their ends, and whether they are above the row's median."""

    rows: NDArray[np.intp]
    low: Float64Array
    high: Float64Array
    above: NDArray[np.bool_]

    @property
    def can_halve(self) -> NDArray[np.bool_]:
        """Whether a float lies between the ends."""
        middle = 0.5 * self.low + 0.5 * self.high
        return np.asarray((middle > self.low) & (middle < self.high))

    def halves(self, which: NDArray[np.bool_]) -> _Panels:
        """Return both halves of some panels."""
        rows, low, high, above = (field[which] for field in self)
        middle = 0.5 * low + 0.5 * high
        return _Panels(
            np.tile(rows, 2),
            np.concatenate([low, middle]),
            np.concatenate([middle, high]),
            np.tile(above, 2),
        )


def own_losses(law: Law) -> tuple[Float64Array, Float64Array]:
    r"""Return E crps(Y) and E abs(Y - median) of each row, for Y from the row's law.

    They are the integral of F (1 - F), and those of F below the median and 1 - F above.

    Parameters
    ----------
    law : Law

    Returns
    -------
    crps, abs_error : ndarrays of shape (n,)
        Right to 1e-9 of themselves; of a discrete law sums; infinite where the mean is.
    """
    if isinstance(law, DiscreteLaw):
        return _sum_values(law)
    out = np.empty((2, len(law)))
    for start in range(0, len(law), _CHUNK):
        rows = slice(start, start + _CHUNK)
        out[:, rows] = _integrate(law.take(rows))
    out[:, ~np.isfinite(law.moments()[:, 0])] = np.inf
    return out[0], out[1]


def _sum_values(law: DiscreteLaw) -> tuple[Float64Array, Float64Array]:
    """Return both as sums over the gaps between values."""
    gaps, upto = np.diff(law.values), law.cumulative[:, :-1]
    # Summed from above, what is beyond keeps its digits.
    beyond = np.cumsum(law.probabilities[:, :0:-1], axis=1)[:, ::-1]
    # Of the two the lesser is asked for below the median, and above.
    lesser = np.minimum(upto, beyond)
    return (gaps * upto * beyond).sum(axis=1), (gaps * lesser).sum(axis=1)


def _integrate(law: Law) -> Float64Array:
    """Return both integrals of a smooth or mixed law of a few rows, shape (2, n)."""
    panels, n = _first_panels(law), len(law)
    whole, sure = np.zeros((2, n)), np.zeros((2, n))
    for number in range(_ROUNDS):
        rough, fine = _apply_rules(law, panels)
        if number == 0:
            whole += _sum_rows(panels.rows, fine, n)
        off = np.abs(fine - rough) > _TOLERANCE * whole[:, panels.rows]
        coarse = off.any(axis=0) & panels.can_halve & (number < _ROUNDS - 1)
        sure += _sum_rows(panels.rows[~coarse], fine[:, ~coarse], n)
        if not coarse.any():
            break
        panels = panels.halves(coarse)
    return sure


def _sum_rows(rows: NDArray[np.intp], parts: Float64Array, n: int) -> Float64Array:
    """Return sums (2, n) of parts (2, m) of some rows each."""
    return np.stack([np.bincount(rows, part, n) for part in parts])


def _first_panels(law: Law) -> _Panels:
    """Return panels between quantiles, and atoms if there are any."""
    borders = law.ppf_scores(np.tile(_LEVELS, (len(law), 1)))
    median = borders[:, len(_SCORES), None]
    if isinstance(law, MixedLaw):
        atoms = np.broadcast_to(law.atoms, law.masses.shape)
        inside = np.clip(atoms, borders[:, :1], borders[:, -1:])
        borders = np.sort(np.hstack([borders, inside]), axis=1)
    low, high = borders[:, :-1], borders[:, 1:]
    held = (high > low) & np.isfinite(low) & np.isfinite(high)
    rows, _ = np.nonzero(held)
    return _Panels(rows, low[held], high[held], (low >= median)[held])


def _apply_rules(law: Law, panels: _Panels) -> Float64Array:
    """Return integrals (2, 2, m) over panels by both rules, of both functions."""
    width = panels.high - panels.low
    y = panels.low[:, None] + width[:, None] * _NODES
    # The lesser of F and 1 - F, which has all of its digits.
    lesser = np.empty(y.shape)
    for side, name in ((~panels.above, "cdf"), (panels.above, "sf")):
        if side.any():
            part = law.take(panels.rows[side])
            lesser[side] = getattr(part, name)(y[side])
    values = np.stack([lesser * (1.0 - lesser), lesser])
    return np.asarray(width * np.moveaxis(values @ _WEIGHTS.T, 2, 0))
