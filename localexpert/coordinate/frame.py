"""`Frame`: where thresholds are placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibration._kernels.types import Float64Array
from localexpert.coordinate.centre import CentreStack
from localexpert.coordinate.scale import ScaleModel
from localexpert.folds import Fold

# The mean of models is never credited with more than this share of the squared error.
_MOST_GAIN = 0.5


class Frame:
    """The coordinate r = (y - m(x)) / s(x), or parts of it.

    Parameters
    ----------
    kind : {"auto", "standardize", "center"} or None
        "auto" is "standardize".
    center : "stack", regressor or list of regressors
    out_of_bag : bool
        Whether a forest may predict rows out of bag instead of out of fold.

    Attributes
    ----------
    oof_center_, oof_scale_, oof_coordinate_ : ndarrays of shape (n,)
        Of the training rows, by models that have not seen them.
    shrinkage_ : float
        Factor of the scale of new rows, whose centre is the mean of all folds' models
        and so misses by less than the out-of-fold centre of one of them.
    """

    def __init__(
        self,
        kind: str | None,
        center: Any = "stack",
        *,
        out_of_bag: bool = True,
        n_jobs: int | None = None,
        random_state: int = 0,
    ):
        self.kind = kind
        self.center = center
        self.out_of_bag = out_of_bag
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Float64Array, folds: Sequence[Fold], w: Float64Array
    ) -> Frame:
        """Fit centre and scale out of fold."""
        seed, jobs = self.random_state, self.n_jobs
        self.oof_center_, self.oof_scale_ = np.zeros(len(y)), np.ones(len(y))
        self.shrinkage_ = 1.0
        if self.kind is not None:
            self.centre_ = CentreStack(
                self.center, out_of_bag=self.out_of_bag, n_jobs=jobs, random_state=seed
            )
            self.centre_.fit(X, y, folds, w)
            self.oof_center_ = self.centre_.oof_
        if self.kind in ("auto", "standardize"):
            r = y - self.oof_center_
            self.scale_ = ScaleModel(n_jobs=jobs, random_state=seed)
            self.scale_.fit(X, r, folds, w)
            self.oof_scale_ = self.scale_.oof_
            error = float(w @ r**2 / w.sum()) or 1.0
            gain = min(self.centre_.ambiguity_ / error, _MOST_GAIN)
            self.shrinkage_ = float(np.sqrt(1.0 - gain))
        self.oof_coordinate_ = (y - self.oof_center_) / self.oof_scale_
        return self

    def locate(self, X: Any) -> tuple[Float64Array, Float64Array]:
        """Return centre and scale of new rows, shapes (n,)."""
        n = len(X)
        center = np.zeros(n) if self.kind is None else self.centre_.predict(X)
        if self.kind in ("auto", "standardize"):
            return center, self.shrinkage_ * self.scale_.predict(X)
        return center, np.ones(n)

    def add_oof_features(self, X: Any) -> Any:
        """Return training rows with their out-of-fold centre and log scale."""
        return self.add_features(X, self.oof_center_, self.oof_scale_)

    def add_features(self, X: Any, center: Float64Array, scale: Float64Array) -> Any:
        """Return rows with centre and log scale as two more columns."""
        if self.kind is None:
            return X
        if hasattr(X, "columns"):
            return X.assign(**{"center(x)": center, "log scale(x)": np.log(scale)})
        return np.column_stack([X, center, np.log(scale)])

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, ready for JSON."""
        if self.kind is None:
            return {"kind": None}
        return {
            "kind": self.kind,
            "weights": self.centre_.weights_,
            "shrinkage": self.shrinkage_,
            "families": self.centre_.report_,
        }
