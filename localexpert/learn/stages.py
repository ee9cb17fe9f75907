"""`Stages`: what roads have fitted, to be looked up by other roads of the same rows."""

from __future__ import annotations

from copy import copy
from typing import TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate import CentreStack, Frame
from localexpert.data.blend import blend_weights
from localexpert.data.folds import Rows
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.learn.steps import Carry

# A linear centre of less weight is left out.
_LEAST_SHARE = 0.05

# A table by its identity, and a target by its bytes.
_Key: TypeAlias = tuple[int, bytes]


class Stages:
    """Frames that were fitted, by their rows; they live as long as the fit.

    A frame of the same rows and target is fitted once. The centre of a function of a
    target is the function of that target's centre: the experts, who are told it, bend
    it as they need.
    """

    def __init__(self) -> None:
        self._frames: dict[tuple[_Key, str | None], Frame] = {}
        self._tables: list[Table] = []
        self._parts: dict[int, tuple[Sample, Rows]] = {}

    def note_part(self, part: Sample, whole: Sample, rows: Rows) -> None:
        """Note which rows of a sample a part of it has; both have all rows judged.

        Parameters
        ----------
        part, whole : Sample
        rows : ndarray of int
        """
        self._parts[id(part.table)] = whole, rows

    def fit_frame(
        self, frame: Frame, sample: Sample, carry: Carry | None, outer: Sample
    ) -> Frame:
        """Return a fitted frame, that of an earlier road if there is one.

        Parameters
        ----------
        frame : Frame
            Unfitted.
        sample : Sample
        carry : Carry or None
            The last step to the sample's target, if it is a function.
        outer : Sample
            The same rows before it.

        Returns
        -------
        Frame
            Its own, whatever becomes of the other road's.
        """
        key = _key(sample), frame.kind
        if key not in self._frames:
            if isinstance(frame.center, str):
                frame.center = self._known_centre(sample, carry, outer) or frame.center
            self._frames[key] = frame.fit(sample)
            # An identity is that of another table once this one is gone.
            self._tables.append(sample.table)
        return copy(self._frames[key])

    def _known_centre(
        self, sample: Sample, carry: Carry | None, outer: Sample
    ) -> CarriedCentre | None:
        """Return the unfitted centre that follows from one of other roads."""
        rows = None
        if carry is None:
            if id(sample.table) not in self._parts:
                return None
            outer, rows = self._parts[id(sample.table)]
        for (known, _), frame in self._frames.items():
            ours = isinstance(frame.center, str | CentreStack)
            if known == _key(outer) and ours and hasattr(frame, "centre_"):
                y = outer.without_outliers().y
                return CarriedCentre(frame.centre_, carry, y, rows)
        return None


def _key(sample: Sample) -> _Key:
    return id(sample.table), sample.y.tobytes()


class CarriedCentre(CentreStack):
    """A centre that follows from one of another target, or of more rows.

    It is an increasing function of the known centre, blended with a linear one that
    is soon fitted; or of a part of its rows the straight line through it that has the
    least squared error there.

    Parameters
    ----------
    known : CentreStack
        Fitted.
    step : Carry or None
        The function.
    y : ndarray of shape (n,)
        Targets of the known one, in whose range the function is defined.
    rows : ndarray of int, optional
        Which of the judged rows of the known centre these are.
    """

    def __init__(
        self,
        known: CentreStack,
        step: Carry | None,
        y: Float64Array,
        rows: Rows | None = None,
    ):
        # The step and not its method: a file may name a class of ours alone.
        self.known, self.step, self._rows = known, step, rows
        self.low, self.high = float(y.min()), float(y.max())
        self.out_of_bag, self.n_jobs = known.out_of_bag, known.n_jobs
        self.random_state = known.random_state

    def fit(self, sample: Sample) -> CarriedCentre:
        """Fit the line, and the share of the linear centre."""
        known, rows = self.known, self._rows
        del self._rows
        self.weights_, self.report_ = known.weights_, {}
        self.dense_inputs_ = known.dense_inputs_
        self.origin_, self.unit_ = 0.0, 1.0
        judged = sample.judged
        w, y = sample.weight[judged], sample.y[judged]
        carried = self._carry(known.oof_ if rows is None else known.oof_[rows])
        self.line_, self.share_ = (0.0, 1.0), 0.0
        self.own_: CentreStack | None = None
        if rows is None:
            self._blend(carried, sample)
        else:
            self.line_ = _fit_line(carried, y, w)
        self.oof_ = self._join(carried, None if self.own_ is None else self.own_.oof_)
        # As much less as of the known one, relative to the error.
        self.gain_ = known.gain_
        self.ambiguity_ = self.gain_ * float(w @ (y - self.oof_) ** 2 / w.sum())
        return self

    def predict(self, table: Table) -> Float64Array:
        """Return the centre of new rows, shape (n,)."""
        carried = self._carry(self.known.predict(table))
        own = None if self.own_ is None else self.own_.predict(table)
        return self._join(carried, own)

    def _blend(self, carried: Float64Array, sample: Sample) -> None:
        """Fit a linear centre, and keep it if it has weight."""
        # Of a product of features it knows the logarithm.
        own = CentreStack(
            "linear",
            out_of_bag=self.out_of_bag,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(sample)
        answers = {"carried": carried, "linear": own.oof_}
        held = sample.y[sample.judged], sample.weight[sample.judged]
        weights = blend_weights(answers, *held, least=_LEAST_SHARE)
        self.share_ = weights.get("linear", 0.0)
        self.own_ = own if self.share_ > 0.0 else None

    def _join(self, carried: Float64Array, own: Float64Array | None) -> Float64Array:
        line = self.line_[0] + self.line_[1] * carried
        if own is None:
            return np.asarray(line)
        return np.asarray((1.0 - self.share_) * line + self.share_ * own)

    def _carry(self, centre: Float64Array) -> Float64Array:
        if self.step is None:
            return centre
        return np.asarray(self.step.there(np.clip(centre, self.low, self.high)))


def _fit_line(x: Float64Array, y: Float64Array, w: Float64Array) -> tuple[float, float]:
    """Return intercept and slope of y on x; of a slope that falls the identity."""
    share = w / w.sum()
    x0, y0 = float(share @ x), float(share @ y)
    spread = float(share @ (x - x0) ** 2)
    slope = float(share @ ((x - x0) * (y - y0))) / spread if spread > 0.0 else 1.0
    if slope <= 0.0:
        return 0.0, 1.0
    return y0 - slope * x0, slope
