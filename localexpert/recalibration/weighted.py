"""`shift_weights`, and `WeightedConformal`: corrections for rows of another kind."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from lightgbm import LGBMClassifier
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit

from calibration import CalibratedClassifier, CalibrationWarning, log_loss
from calibration._validation import check_number, check_weights, refuse
from calibration.typing import Float64Array
from localexpert._validation import check_seed, speaking_of
from localexpert.data.honest_rows import groups_of_copies
from localexpert.data.table import DenseInputs, TableReader
from localexpert.data.training_rows import effective_rows
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.recalibration import conformal
from localexpert.recalibration.pit import Forecast, check_rows, correct

# Fewest rows of equal weight that a map may rest on.
_LEAST_EFFECTIVE = 50.0


class WeightedConformal:
    r"""Conformal recalibration for rows that come from another law of x.

    It is fitted on m rows (X_i, Y_i) with x from a law P; the forecasts have seen none
    of them. New rows have x from a law Q; Y given x is the same in both. Let
    u_(1) <= ... <= u_(m) be the PIT values and w_(j) their weights. Then the map of a
    new row x passes through

    .. math:: \Big(u_{(j)},\ \frac{w_{(1)} + \dots + w_{(j-1)} + (w_{(j)} + w(x)) / 2}
              {w_{(1)} + \dots + w_{(m)} + w(x)}\Big)

    at about sqrt(effective rows) of the j, in equal steps of weight. More points halve
    the outer steps, again and again, down to two effective rows.

    Parameters
    ----------
    random_state : int, optional
        Draws PIT values inside the jumps of CDFs.

    Attributes
    ----------
    effective_rows_ : float
        :math:`(\sum w)^2 / \sum w^2`, at least 50.
    error_ : float
        The part of `bound` for equal PIT values and for curves that are read anew, see
        `ConformalRecalibration.bound_`.

    Notes
    -----
    Let w = dQ/dP up to a factor, and let PIT values have no ties. Take the m + 1 rows,
    calibration rows and the new one, without knowing which is new. Row i is the new one
    with probability p_i = w_i / sum(w) (Tibshirani et al., 2019, lemma 3). Let H(v) be
    the sum of the p_i of PIT values up to v, V the PIT value of the new row, and U
    uniform. Then H(V-) + U (H(V) - H(V-)) is uniform. Between two knots i < j of the
    map this variable and G(V) differ by at most

    .. math:: b = \frac{w_{(i+1)} + \dots + w_{(j-1)} + \tfrac12 (\max(w_{(i)},
              w_{(j)}) + w(x))}{\sum w},

    so :math:`|P(Y \le Q(a)) - a| \le E[b]` for every level a, where b is the greatest
    over the knots and over the choice of the new row. With equal weights this is the
    bound of `ConformalRecalibration`. With weights v in place of w, both of mean 1
    under P, coverage is off by up to :math:`\tfrac12 E_P|v(X) - w(X)|` more (Lei &
    Candes, 2021). The probability is over calibration and new rows: coverage holds on
    average over Q.

    References
    ----------
    Tibshirani, Foygel Barber, Candes & Ramdas (2019), Conformal prediction under
    covariate shift. Lei & Candes (2021), Conformal inference of counterfactuals and
    individual treatment effects. Jonkers, Van Wallendael, Duchateau & Van Hoecke
    (2024), Conformal predictive systems under covariate shift.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.recalibration.weighted import WeightedConformal
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> y = rng.normal(scale=np.exp(0.5 * x))
    >>> dist = PredictiveDistribution.from_scipy(stats.norm(0.0, np.ones(500)))
    >>> conformal = WeightedConformal(random_state=0).fit(dist, y, np.exp(x))
    >>> wider = conformal.apply(dist[:1], np.array([np.e]))
    >>> bool(wider.std()[0] > 1.4)
    True
    """

    def __init__(self, *, random_state: int | None = None):
        self.random_state = random_state

    def fit(
        self, law: Law | PredictiveDistribution, y: ArrayLike, weight: ArrayLike
    ) -> Self:
        """Place the knots.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Of n rows that the forecaster has not seen.
        y : array-like of shape (n,)
        weight : array-like of shape (n,)
            Not negative.

        Returns
        -------
        self
        """
        rows, target, _ = check_rows(law, y, None)
        weights = check_weights(weight, len(target), "weight")
        n = self.effective_rows_ = check_effective(weights)
        held = conformal.HeldOut.of(rows, target, weights, self.random_state)
        own, upto = held.weight, np.cumsum(held.weight)
        self.total_ = float(upto[-1])
        # The expected weight of a new row.
        usual = float(own @ own) / self.total_
        middles = (upto - 0.5 * own + 0.5 * usual) / (self.total_ + usual)
        n_pieces = int(np.ceil(np.sqrt(n + 1.0)))
        steps = np.arange(1, n_pieces) / n_pieces
        outer = steps[0] * conformal.outer_shares(n / n_pieces)
        steps = np.concatenate([outer, steps, 1.0 - outer[::-1]])
        place = np.searchsorted(middles, steps - 1e-9).clip(1, len(own) - 1)
        place -= steps - middles[place - 1] < middles[place] - steps
        place = np.unique(place)
        first = conformal.run_starts(held.scores[place])
        self.knots_ = held.scores[place[first]]
        self.before_ = (upto - own)[place[first]]
        self.ends_ = upto[place[np.append(first[1:], len(place)) - 1]]
        # Rows that share a PIT value lie in one step.
        tied = held.ties * float(own.max()) / self.total_
        self.error_ = tied + held.reading_error(self._curve(usual))
        return self

    def apply(self, law: Forecast, weight: Float64Array) -> Forecast:
        """Return the forecasts with CDF G(F); each row has its own map.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Forecasts of n rows.
        weight : ndarray of shape (n,)
            Weights of these rows.

        Returns
        -------
        Law or PredictiveDistribution
            Of the type given.
        """
        return correct(law, self.map_of(weight))

    def map_of(self, weight: Float64Array) -> LevelMap:
        """Return the maps of rows with such weights.

        Parameters
        ----------
        weight : ndarray of shape (n,)

        Returns
        -------
        LevelMap
            A curve for each row.
        """
        different, number = np.unique(weight, return_inverse=True)
        return LevelMap.by_row([self._curve(new) for new in different], number)

    def _curve(self, new: float) -> LevelMap:
        """Return the map of a row of such a weight."""
        levels = 0.5 * (self.before_ + self.ends_ + new) / (self.total_ + new)
        return conformal.curve_through(self.knots_, levels)

    def bound(self, weight: Float64Array) -> Float64Array:
        """Return how far coverage may be off because of steps between knots, b.

        Parameters
        ----------
        weight : ndarray of shape (n,)
            Weights of new rows.

        Returns
        -------
        ndarray of shape (n,)
        """
        new = weight[:, None]
        step_weights = np.pad(self.ends_ - self.before_, 1)
        between = np.append(self.before_, self.total_) - np.append(0.0, self.ends_)
        edge = np.maximum(step_weights[:-1], step_weights[1:])
        edge = np.tile(edge, (len(weight), 1))
        # At either end the neighbour is the new row itself.
        edge[:, [0, -1]] = np.maximum(edge[:, [0, -1]], new)
        mass = (between + 0.5 * (edge + new)).max(axis=1)
        return np.asarray(np.minimum(mass / (self.total_ + weight) + self.error_, 1.0))


def check_effective(
    weights: Float64Array, overlap: float = 1.0, where: str = ""
) -> float:
    """Return the effective number of rows; refuse too few.

    Parameters
    ----------
    weights : ndarray of shape (n,)
    overlap : float
        Share of the new rows that weights can represent.
    where : str
        Which rows these are, for the error message.

    Returns
    -------
    float
    """
    found = overlap * effective_rows(weights)
    if found < _LEAST_EFFECTIVE:
        rule = f"have at least {_LEAST_EFFECTIVE:g} effective rows{where}"
        why = "a few rows have most of the weight" if found else "all weigh 0"
        why += ", because new rows are unlike the others"
        refuse("X_cal", rule, f"{found:.1f} of {len(weights)}: {why}")
    return found


# A classifier needs so many rows of either table to tell them apart out of fold.
_LEAST_ROWS = 50
_FOLDS = 5
_TREES: dict[str, Any] = {"n_estimators": 60, "num_leaves": 7}
# Probabilities are at least this, because 0 has no logarithm.
_FLOOR = 2.0**-52


@dataclass(frozen=True, eq=False, repr=False)
class ShiftWeights:
    """Weights of old rows and of any other rows; build it with `shift_weights`.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Weights of the old rows, each by classifiers that have not seen the row. Their
        mean is 1.
    reader : TableReader
        Reads tables.
    inputs : DenseInputs
        Turns tables into inputs of the classifier.
    classifier : CalibratedClassifier
        Tells new rows (1) from old ones (0).
    odds : float
        Factor of the odds of a row being new.
    most : float
        Greatest weight.
    overlap : float
        Share of the new rows that lie where old rows are: the mean ratio of densities
        over the old rows, at most 1.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import shift_weights
    >>> rng = np.random.default_rng(0)
    >>> X_old, X_new = rng.normal(size=(400, 1)), rng.normal(1.0, 1.0, size=(400, 1))
    >>> weights = shift_weights(X_old, X_new, random_state=0)
    >>> weights.of(np.array([[-1.0], [0.5], [2.0]])).round(1)
    array([0.2, 1. , 4.9])
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
        """Number of rows of equal weight with as much information, times `overlap`.

        See Kish (1965).
        """
        return self.overlap * effective_rows(self.weight)

    def of(self, X: Any) -> Float64Array:
        """Return the weights of rows.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            A table with the columns of the old rows.

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
    r"""Return the weights that make old rows like new ones.

    Parameters
    ----------
    X_old, X_new : array or data frame of shape (n, p), (m, p)
        Two tables with the same columns: numbers and categories, gaps allowed.
    classifier : classifier, optional
        Tells new rows from old ones. It gets numbers without gaps on one scale, and
        categories as indicators. None: logistic regression or small boosted trees;
        the one with less log loss out of fold is taken.
    most : float, optional
        Where weights of mean 1 are cut off, above 1; then they are divided by their new
        mean. None: sqrt(n).
    random_state : int, optional
        Seed of the trees.

    Returns
    -------
    ShiftWeights

    Notes
    -----
    Let p(x) be the probability that a row is one of the m new ones. The weight is the
    ratio of densities

    .. math:: w(x) = \frac{dQ}{dP}(x) = \frac{n}{m} \frac{p(x)}{1 - p(x)},

    cut off at `most` (Ionides, 2008) and divided by its mean over the old rows. The
    classifier is calibrated out of fold, so that its odds are true odds. The
    probabilities of the old rows are out of fold, too. Equal rows of both tables share
    a fold, unless chance makes them equal. The effective number of rows is
    :math:`(\sum w)^2 / \sum w^2`. If the mean of the ratio before it is cut off is
    below 1, its true value, the number is multiplied by it: the rest of the new rows
    lies where no old row is. If the number is small, no weights will help.

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
    ShiftWeights(n=400, effective_rows=138.1)
    """
    seed = check_seed(random_state)
    if most is not None:
        most = check_number(most, "most", 1.0, np.inf, open_low=True)
    if classifier is None:
        trees = LGBMClassifier(**_TREES, random_state=seed, num_threads=1, verbosity=-1)
        candidates = [LogisticRegression(max_iter=1000), trees]
    elif not hasattr(classifier, "fit") or isinstance(classifier, type):
        refuse("classifier", "be a classifier", f"{classifier!r:.60}", TypeError)
    else:
        candidates = [classifier]
    reader, old = _read(X_old, "X_old")
    _, new = _read(X_new, "X_new", reader)
    n, m = len(old), len(new)
    both = np.vstack([old, new])
    inputs = DenseInputs.learn(both, reader.categories)
    is_new = np.repeat([0, 1], [n, m])
    folds = _deal_folds(both, is_new)
    fitted, p = _fit_best(candidates, inputs.transform(both), is_new, folds)
    p = p[:n]
    limit = float(np.sqrt(n)) if most is None else most
    mean = max(float(_ratio(p, n / m, np.inf).mean()), _FLOOR)
    odds, overlap = n / m / mean, min(mean, 1.0)
    weight = _ratio(p, odds, limit)
    scale = 1.0 / float(weight.mean())
    weight, odds, limit = scale * weight, scale * odds, scale * limit
    return ShiftWeights(weight, reader, inputs, fitted, odds, limit, overlap)


def _read(
    X: Any, name: str, reader: TableReader | None = None
) -> tuple[TableReader, Float64Array]:
    """Return the reader of a table, a new one if none is given, and its codes."""
    with speaking_of(X=name):
        table = X if hasattr(X, "shape") else np.asarray(X)
        reader = TableReader.learn(table) if reader is None else reader
        codes = reader.read(table).codes
    if len(codes) < _LEAST_ROWS:
        refuse(name, f"have at least {_LEAST_ROWS} rows", len(codes))
    return reader, codes


def _deal_folds(codes: Float64Array, is_new: NDArray[np.int64]) -> PredefinedSplit:
    """Return folds of old and new rows together.

    A row and its copy in the other table share a fold. In different folds one row would
    tell the classifier that the other belongs to the other table. Rows that are equal
    by chance are spread: each fold gets as many of a table.
    """
    rng = np.random.default_rng(0)
    group = groups_of_copies(codes, rng)
    if group is None or min(len(set(group[is_new == c])) for c in (0, 1)) < _FOLDS:
        group = np.arange(len(codes))
    share = np.bincount(group, is_new) / np.bincount(group)
    # Groups that are alike are dealt to folds in turn, in a random order. In the order
    # of X folds would resemble each other more than new rows do.
    known = np.where(np.isnan(codes), np.inf, codes)
    _, cell = np.unique(known, axis=0, return_inverse=True)
    cell = rng.permutation(cell.max() + 1)[cell.ravel()]
    order = np.lexsort((cell, share[group]))
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = np.cumsum(np.diff(group[order], prepend=-1) != 0) % _FOLDS
    return PredefinedSplit(fold)


def _fit_best(
    candidates: list[Any], X: Float64Array, is_new: Any, folds: PredefinedSplit
) -> tuple[Any, Float64Array]:
    """Return the candidate of least held-out log loss, and its held-out answers."""
    models = [CalibratedClassifier(one, "quadratic", cv=folds) for one in candidates]
    with warnings.catch_warnings():
        # If both tables are alike, all scores may be equal. This needs no warning.
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted = [one.fit(X, is_new) for one in models]
    # A calibrator learns only three numbers from all held-out scores.
    held = [one.calibrator_.predict(one.oof_scores_) for one in fitted]
    best = int(np.argmin([log_loss(is_new, p, clip=_FLOOR) for p in held]))
    return models[best], held[best]


def _ratio(p: Float64Array, odds: float, most: float) -> Float64Array:
    """Return odds times p / (1 - p), at most `most`."""
    ratio = odds * p / np.maximum(1.0 - p, _FLOOR)
    return np.asarray(np.minimum(ratio, most))
