"""`shift_weights`: how much more often new rows are like a row than old ones were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression

from calibration import CalibratedClassifier, log_loss
from calibration.typing import Float64Array
from localexpert._validation import check_number, check_seed, count_rows, speaking_of
from localexpert.data.dense_inputs import DenseInputs
from localexpert.data.table import TableReader

# Fewest rows of either table that a classifier can tell apart out of fold.
_LEAST_ROWS = 50
_FOLDS = 5
_TREES: dict[str, Any] = {"n_estimators": 60, "num_leaves": 7}
# A logarithm must not be of 0; calibrators seldom say it.
_FLOOR = 2.0**-52


@dataclass(frozen=True, eq=False, repr=False)
class ShiftWeights:
    """Weights of old rows, and of any others; build it with `shift_weights`.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Of the old rows, each by classifiers that have not seen it; their mean is 1.
    reader : TableReader
        How tables are read.
    inputs : DenseInputs
        How the classifier sees them.
    classifier : CalibratedClassifier
        Tells new rows (1) from old ones (0).
    odds : float
        What the odds of a row being new are multiplied by.
    most : float
        Greatest weight.
    overlap : float
        Share of the new rows that lie where old rows are: the mean ratio of densities
        over the old rows, or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import shift_weights
    >>> rng = np.random.default_rng(0)
    >>> X_old, X_new = rng.normal(size=(400, 1)), rng.normal(1.0, 1.0, size=(400, 1))
    >>> weights = shift_weights(X_old, X_new, random_state=0)
    >>> weights.of(np.array([[-1.0], [0.5], [2.0]])).round(1)
    array([0.2, 1. , 4.8])
    """

    weight: Float64Array
    reader: TableReader
    inputs: DenseInputs
    classifier: Any
    odds: float
    most: float
    overlap: float

    def __repr__(self) -> str:
        n, rows = len(self.weight), self.effective_rows
        return f"ShiftWeights(n={n}, effective_rows={rows:.1f})"

    @property
    def effective_rows(self) -> float:
        """Number of rows of equal weight that say as much (Kish), times `overlap`."""
        return self.overlap * effective_rows(self.weight)

    def of(self, X: Any) -> Float64Array:
        """Return the weights of rows.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            In the columns of the old rows.

        Returns
        -------
        ndarray of shape (n,)
        """
        seen = self.inputs.transform(self.reader.read(X).codes)
        p = self.classifier.predict_proba(seen)[:, 1]
        return _ratio(p, self.odds, self.most)


def shift_weights(
    X_old: Any,
    X_new: Any,
    *,
    classifier: Any = None,
    most: float | None = None,
    random_state: int | None = None,
) -> ShiftWeights:
    r"""Return by how much old rows must be weighted to be like new ones.

    Parameters
    ----------
    X_old, X_new : array or data frame of shape (n, p), (m, p)
        The same columns, of numbers and categories, with gaps where there are any.
    classifier : classifier, optional
        Tells new rows from old ones. It gets numbers without gaps on one scale,
        categories as indicators. None: logistic regression or small boosted trees,
        whichever has the less log loss out of fold.
    most : float, optional
        Greatest weight, above 1, where the mean is 1. None: sqrt(n).
    random_state : int, optional
        Seed of the folds and of the trees.

    Returns
    -------
    ShiftWeights

    Notes
    -----
    With p(x) the probability that a row is of the m new ones, the weight is the ratio
    of densities

    .. math:: w(x) = \frac{dQ}{dP}(x) = \frac{n}{m} \frac{p(x)}{1 - p(x)},

    cut off at `most` (Ionides, 2008) and divided by its mean over the old rows. The
    classifier is calibrated out of fold, for what is taken for odds must be odds, and
    the old rows' own probabilities are out of fold, too. The effective number of rows
    is :math:`(\sum w)^2 / \sum w^2`, times the mean of the ratio before it is cut off
    where that is below 1, its mean in truth: the rest of the new rows lies where no old
    row is. Where it is small no weights will help.

    References
    ----------
    Shimodaira (2000), Improving predictive inference under covariate shift; Bickel,
    Brueckner & Scheffer (2009), Discriminative learning under covariate shift; Ionides
    (2008), Truncated importance sampling; Kish (1965), Survey sampling.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import shift_weights
    >>> rng = np.random.default_rng(0)
    >>> X_old, X_new = rng.normal(size=(400, 1)), rng.normal(1.0, 1.0, size=(400, 1))
    >>> shift_weights(X_old, X_new, random_state=0)
    ShiftWeights(n=400, effective_rows=144.6)
    """
    seed = check_seed(random_state)
    if most is not None:
        most = check_number(most, "most", 1.0, np.inf, open_low=True)
    candidates = _candidates(classifier, seed)
    reader, old = _read(X_old, "X_old")
    _, new = _read(X_new, "X_new", reader)
    n, m = len(old), len(new)
    both = np.vstack([old, new])
    inputs = DenseInputs.learn(both, reader.categories)
    order = np.random.default_rng(seed).permutation(n + m)
    seen, is_new = inputs.transform(both)[order], np.repeat([0, 1], [n, m])[order]
    fitted, p = _fit_best(candidates, seen, is_new)
    p = p[np.argsort(order)][:n]
    limit = float(np.sqrt(n)) if most is None else most
    mean = max(float(_ratio(p, n / m, np.inf).mean()), _FLOOR)
    odds, overlap = n / m / mean, min(mean, 1.0)
    weight = _ratio(p, odds, limit)
    scale = 1.0 / float(weight.mean())
    return ShiftWeights(
        scale * weight, reader, inputs, fitted, scale * odds, scale * limit, overlap
    )


def effective_rows(weight: Float64Array) -> float:
    """Return the number of rows of equal weight that say as much.

    Parameters
    ----------
    weight : ndarray of shape (n,)

    Returns
    -------
    float
    """
    scaled = weight / weight.max()
    return float(scaled.sum() ** 2 / (scaled @ scaled))


def _read(
    X: Any, name: str, reader: TableReader | None = None
) -> tuple[TableReader, Float64Array]:
    """Return how a table is read, if not as another one, and its codes."""
    with speaking_of(X=name):
        if count_rows(X) < 0:
            msg = (
                f"`X` must be a data frame or an array of shape (n, p), got {X!r:.60}."
            )
            raise TypeError(msg)
        table = X if hasattr(X, "shape") else np.asarray(X)
        reader = TableReader.learn(table) if reader is None else reader
        codes = reader.read(table).codes
    if len(codes) < _LEAST_ROWS:
        msg = f"`{name}` must have at least {_LEAST_ROWS} rows, got {len(codes)}."
        raise ValueError(msg)
    return reader, codes


def _candidates(classifier: Any, seed: int) -> list[Any]:
    """Return the classifiers to choose from."""
    if classifier is None:
        trees = LGBMClassifier(**_TREES, random_state=seed, num_threads=1, verbosity=-1)
        return [LogisticRegression(max_iter=1000), trees]
    if not hasattr(classifier, "fit") or isinstance(classifier, type):
        msg = f"`classifier` must be a classifier, got {classifier!r:.60}."
        raise TypeError(msg)
    return [classifier]


def _fit_best(
    candidates: list[Any], X: Float64Array, is_new: Any
) -> tuple[Any, Float64Array]:
    """Return the candidate of least held-out log loss, and what it says held out."""
    models = [CalibratedClassifier(one, "quadratic", cv=_FOLDS) for one in candidates]
    # Three numbers are learned from all held-out scores: little is seen twice.
    held = [one.fit(X, is_new).calibrator_.predict(one.oof_scores_) for one in models]
    best = int(np.argmin([log_loss(is_new, p, clip=_FLOOR) for p in held]))
    return models[best], held[best]


def _ratio(p: Float64Array, odds: float, most: float) -> Float64Array:
    """Return odds times p / (1 - p), at most `most`."""
    ratio = odds * p / np.maximum(1.0 - p, _FLOOR)
    return np.asarray(np.minimum(ratio, most))
