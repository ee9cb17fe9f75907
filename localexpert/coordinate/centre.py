"""`CentreStack`: regressors of different families, blended out of fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.parallel import delayed

from calibration._jobs import one_thread
from calibration.typing import Float64Array
from localexpert.coordinate.families import (
    BoostedTrees,
    Family,
    Fitted,
    Forest,
    Trial,
    View,
    mass_of,
)
from localexpert.coordinate.kernel_machine import KernelMachine, KernelMachines
from localexpert.coordinate.small_nets import NetsOfLogarithm, SmallNets
from localexpert.coordinate.sums import AdditiveRidge, FewLines, Lines, Products
from localexpert.data.blend import LEAST_WEIGHT, blend_weights, robust_weights
from localexpert.data.folds import Rows, Sample, number_folds, spread_rows
from localexpert.data.learners import seeded
from localexpert.data.table import Table
from localexpert.data.target_values import is_skewed
from localexpert.progress import current_progress, run_jobs

# A family is fitted further if it lowers the error of a blend by this share of it...
_LEAST_GAIN = 0.001
# ...on a fold of this many rows. On tables with 200 to 480 rows in a fold this saved a
# quarter of the time at equal errors. With 100 to 200 rows, errors were .4 % greater.
_ROWS_TO_SCREEN = 200
# The folds' models are compared on this many rows, enough for a mean.
ROWS_OF_A_MEAN = 2000

# If a target is this many times farther from 0 than its range, it is measured from its
# end. If its range is below the second number or above its inverse, it gets its own
# unit.
_MOST_OFFSET, _LEAST_SPAN = 1e4, 1e-25

# Sums over columns, and the shape of the columns.
_SUMS: dict[str, tuple[Any, View]] = {
    "additive": (AdditiveRidge(), "bent"),
    "lines": (Lines(), "bent"),
    "straight lines": (Lines(), "straight"),
    "few lines": (FewLines(), "straight"),
    "powers": (Lines(), "logarithm"),
}
# Decays of the nets. The net that is better on one fold is taken.
_DECAYS = {"net": 0.03, "net, strong decay": 0.5}
_N_RAMPS = 10
# Kernels take the cube of the number of rows.
_MOST_ROWS_OF_KERNELS = 4_000
# 30 columns have 465 products. Of more columns than the second, there are only sums of
# bent columns: each takes its time, and the square of their number the lasso's.
_MOST_COLUMNS_OF_PRODUCTS, _MOST_COLUMNS_OF_SUMS = 30, 600


@dataclass(eq=False, repr=False)
class CentreStack:
    """Cross-fitted regressors with non-negative weights.

    Parameters
    ----------
    regressors : "stack", "boosting", "sums", regressor or list of regressors
        "stack" has these families: boosted trees (for categories also on the target's
        mean in each, `TargetCodes`), extremely random trees, small networks of the
        columns and of their `Ramps` (for a skewed positive target both also for its
        logarithm), a sum over columns, `Products` if there are few columns, and two
        kinds of `KernelMachine` if there are few enough rows. Nets have two decays.
        Sums have curves, lines, few lines, or lines of logarithms. The one that is best
        on one fold is taken. This fold also screens the families. "sums" has the sums,
        each as a family of its own.
    out_of_bag : bool
        Whether the forest predicts rows out of bag. Otherwise it predicts out of fold.
    n_jobs, random_state : int

    Attributes
    ----------
    oof_ : ndarray of shape (m,)
        Out-of-fold centre of every row that is judged.
    origin_, unit_ : float
        The families of "stack" learn (y - origin) / unit.
    blends_ : dict of str to ndarray of shape (n_folds, 1)
        Weight of each family in each fold's blend. Not negative, with sum 1.
    weights_ : dict of str to float
        The means of these over the folds.
    ambiguity_ : float
        Variance of the folds' models around their mean. The squared error of the mean
        is less than that of the out-of-fold centre by this amount. 0 if folds leave
        rows untested: then some models know more than others, and differ for this
        reason too.
    gain_ : float
        The same as a share of that squared error.
    dense_inputs_ : DenseInputs or None
        How families of dense or narrow columns read rows.
    report_ : dict of str to float
        Root mean squared error out of fold (on one fold if screened out).
    """

    regressors: Any = "stack"
    out_of_bag: bool = True
    n_jobs: int | None = None
    random_state: int = 0

    def fit(self, sample: Sample) -> CentreStack:
        """Screen, fit and weight the families."""
        self.origin_, self.unit_ = 0.0, 1.0
        if isinstance(self.regressors, str):
            # The user's own regressors see y as it is. They may expect its true values.
            self.origin_, self.unit_ = single_precision(sample.y)
        given, table, w = sample.y, sample.table, sample.weight
        sample = replace(sample, y=(given - self.origin_) / self.unit_)
        self.report_: dict[str, float] = {}
        groups = self._groups(table, sample.y, w)
        views = {family.view for group in groups for family in group.values()}
        scaled = views - {"given", "codes"}
        self.dense_inputs_ = table.dense_inputs_of(w) if scaled else None
        progress = current_progress()
        self.fitted_: dict[str, Family] = {}
        # Linear algebra gets one thread, because the folds share the cores.
        with one_thread("blas"):
            with progress.stage("trial"):
                kept = self._screen(groups, sample)
            with progress.stage("families"):
                for name, (family, trial) in kept.items():
                    with progress.stage(name):
                        family.fit(self._view(table, family), sample, trial)
                    self._note(name, family.oof_[sample.judged], sample, sample.judged)
                    self.fitted_[name] = family
        self._choose_blend(sample)
        self.fitted_ = {name: self.fitted_[name] for name in self.weights_}
        # The mean of the folds' models beats one of them by exactly their variance
        # (Krogh & Vedelsby 1995). We only have rows that some models have seen, but the
        # variance is nearly the same there.
        self.ambiguity_ = self.gain_ = 0.0
        if sample.is_whole:
            some = spread_rows(np.flatnonzero(w), ROWS_OF_A_MEAN)
            # If there are few rows, use the table itself, because its views exist.
            each = self.predict_each(table if len(some) == len(w) else table.take(some))
            self.ambiguity_ = float(w[some] @ each.var(axis=0) / (w[some].sum() or 1.0))
            error = float(w @ (self.oof_ - given) ** 2 / w.sum())
            self.gain_ = self.ambiguity_ / (error or 1.0)
        for family in self.fitted_.values():
            # They are blended now. Keeping them too would make a large model larger.
            del family.oof_
        return self

    def _choose_blend(self, sample: Sample) -> None:
        """Weight the families, in each fold by the rows of the others.

        With the weights of all rows, errors out of fold would look smaller than those
        of new rows: by a tenth for 100 rows and ten families. All rows only choose
        which families are kept.
        """
        judged = sample.judged
        y, w = sample.y[judged], sample.weight[judged]
        answers = np.array([family.oof_[judged] for family in self.fitted_.values()])
        overall = _blend(answers, y, w)
        names = np.array(list(self.fitted_))[overall > 0.0].tolist()
        answers, overall = answers[overall > 0.0], overall[overall > 0.0]
        blends = np.tile(overall, (len(sample.folds), 1))
        numbers = number_folds(sample.folds, len(sample))[judged]
        self.oof_ = np.empty(len(y))
        for number, weights in enumerate(blends):
            own = numbers == number
            rest = ~own & (w > 0.0)
            if rest.any():
                weights[:] = _blend(answers[:, rest], y[rest], w[rest])
            self.oof_[own] = self.origin_ + self.unit_ * (weights @ answers[:, own])
        columns = zip(names, blends.T[:, :, None], strict=True)
        self.blends_ = {name: column for name, column in columns if column.any()}
        self.weights_ = {name: float(b.mean()) for name, b in self.blends_.items()}

    def predict(self, table: Table) -> Float64Array:
        """Return the centre of new rows, shape (n,)."""
        return np.asarray(self.predict_each(table).mean(axis=0))

    def predict_each(self, table: Table) -> Float64Array:
        """Return the blend of each fold's models, shape (n_folds, n)."""
        with one_thread("blas", len(table)):
            each = {
                name: family.predict_each(self._view(table, family))
                for name, family in self.fitted_.items()
            }
        return self.origin_ + self.unit_ * _join(each, self.blends_)

    def _view(self, table: Table, family: Family) -> Any:
        """Return the rows as a family reads them."""
        if (view := family.view) == "given":
            return table.given
        if view == "codes":
            return table.codes
        assert self.dense_inputs_ is not None
        if view == "narrow":
            return self.dense_inputs_.narrow(table.codes)
        return table.dense(self.dense_inputs_, view)

    def _groups(
        self, table: Table, y: Float64Array, w: Float64Array
    ) -> list[dict[str, Family]]:
        """Return groups of families. The best of each group is a candidate."""
        seed, n_jobs = self.random_state, self.n_jobs

        def each(models: dict[str, Any], view: View = "bent") -> dict[str, Family]:
            return {n: Fitted(m, view=view, n_jobs=n_jobs) for n, m in models.items()}

        if not isinstance(self.regressors, str):
            given = self.regressors
            given = given if isinstance(given, list | tuple) else [given]
            given = [seeded(one, seed) for one in given]
            named = {f"{type(r).__name__}_{j}": r for j, r in enumerate(given)}
            return [each({name: model}, "given") for name, model in named.items()]
        trees = partial(BoostedTrees, random_state=seed, n_jobs=n_jobs)
        n_values = table.reader.n_values
        forest = Forest(random_state=seed, n_jobs=n_jobs)
        held = y[w > 0.0]
        plain = {"extra trees": forest.make(len(held))}
        nets = {n: SmallNets(decay, random_state=seed) for n, decay in _DECAYS.items()}
        ramps: dict[str, Any] = {"n_ramps": _N_RAMPS, "random_state": seed}
        skewed = float(held.min()) > 0.0 and is_skewed(held)
        few = len(held) <= _MOST_ROWS_OF_KERNELS
        width = table.dense_inputs_of(w).width
        narrow = width <= _MOST_COLUMNS_OF_PRODUCTS
        sums = dict[str, Family]()
        for name, (model, view) in _SUMS.items():
            if width <= _MOST_COLUMNS_OF_SUMS or view == "bent":
                sums |= each({name: model}, view)
        smooth = KernelMachines(KernelMachine(smooth=True), view="bent", n_jobs=n_jobs)
        groups: list[dict[str, Family]] = [
            {"boosting": trees()},
            {"boosting of the logarithm": trees(logarithm=True)} if skewed else {},
            {"extra trees": forest} if self.out_of_bag else each(plain, Forest.view),
            each(nets),
            each({"net of ramps": SmallNets(**ramps)}),
            each({"net of the logarithm": NetsOfLogarithm(**ramps)} if skewed else {}),
            sums,
            each({"products": Products()} if narrow else {}, "straight"),
            {"kernel": KernelMachines(view="bent", n_jobs=n_jobs)} if few else {},
            {"smooth kernel": smooth} if few else {},
            {"boosting of means": trees(n_values=n_values)} if n_values else {},
        ]
        if self.regressors == "sums":
            return [{name: family} for name, family in sums.items()]
        if self.regressors != "stack":
            name = self.regressors
            groups = [{name: group[name]} for group in groups if name in group]
        return [group for group in groups if group]

    def _screen(
        self, groups: list[dict[str, Family]], sample: Sample
    ) -> dict[str, tuple[Family, Trial | None]]:
        """Return the families worth fitting, with their fits of the first fold."""
        families = {n: family for group in groups for n, family in group.items()}
        if len(families) == 1:
            return {name: (family, None) for name, family in families.items()}
        y, w, fold = sample.y, sample.weight, sample.folds[0]
        jobs = [
            delayed(family.attempt)(self._view(sample.table, family), sample, fold)
            for family in families.values()
        ]
        results = run_jobs(jobs, n_jobs=self.n_jobs, prefer="threads")
        trials: dict[str, Trial] = dict(zip(families, results, strict=True))
        for name, trial in trials.items():
            self._note(name, trial.answers, sample, fold[1])
        best = [min(group, key=self.report_.__getitem__) for group in groups]
        if np.count_nonzero(w[fold[1]]) >= _ROWS_TO_SCREEN:
            answers = {name: trials[name].answers for name in best}
            best = _useful(answers, y[fold[1]], mass_of(w[fold[1]]))
        return {name: (families[name], trials[name]) for name in best}

    def _note(
        self, name: str, answers: Float64Array, sample: Sample, rows: Rows
    ) -> None:
        """Note the error of a family's answers for some rows."""
        mass = mass_of(sample.weight[rows])
        rmse = np.sqrt(mass @ (answers - sample.y[rows]) ** 2 / mass.sum())
        self.report_[name] = self.unit_ * float(rmse)


def _join(answers: dict[str, Float64Array], weights: Mapping[str, Any]) -> Float64Array:
    # Not np.sum of a list: a forest has one row, the others one per fold.
    joined = np.zeros(1)
    for name, weight in weights.items():
        joined = joined + weight * answers[name]
    return joined


def _blend(answers: Float64Array, y: Float64Array, w: Float64Array) -> Float64Array:
    """Return weights (M,) of answers (M, n), the mean of those of two rules.

    One rule is least squares, and one is robust. Either may be the better one. Taking
    the better one made forecasts of small tables up to 3 % worse, because a choice
    follows the noise more than a mean.
    """
    named = {str(k): answer for k, answer in enumerate(answers)}
    found = [rule(named, y, w) for rule in (blend_weights, robust_weights)]
    means = np.array([sum(each.get(n, 0.0) for each in found) / 2.0 for n in named])
    held = np.where(means >= LEAST_WEIGHT, means, 0.0)
    return np.asarray(held / held.sum())


def marginal_crps(r: Float64Array, scale: Float64Array, w: Float64Array) -> float:
    """Return the CRPS, in units of y, of every row's forecast m + s R.

    R has the weighted distribution of `r`, for which
    CRPS_i = s_i (E|r_i - R| - E|R - R'| / 2), by sums over the sorted values.

    Parameters
    ----------
    r, scale, w : ndarrays of shape (n,)

    Returns
    -------
    float
    """
    order = np.argsort(r, kind="stable")
    x, v = r[order], w[order] / w.sum()
    below, sums = np.cumsum(v), np.cumsum(v * x)
    distance = x * (2.0 * below - 1.0) + sums[-1] - 2.0 * sums
    return float((v * scale[order]) @ (distance - 0.5 * v @ distance))


def single_precision(y: Float64Array) -> tuple[float, float]:
    """Return an origin and a unit in which y fits float32, which most families use.

    They are 0 and 1, unless the target is far from 0 for its range, or its range is
    extreme.
    """
    low, high = float(y.min()), float(y.max())
    span = (high - low) or 1.0
    origin = low if max(-low, high) > _MOST_OFFSET * span else 0.0
    # The unit is a power of 2, so that division does not round.
    unit = 1.0 if _LEAST_SPAN < span < 1.0 / _LEAST_SPAN else 2.0 ** np.frexp(span)[1]
    return origin, float(unit)


def _useful(
    answers: dict[str, Float64Array], y: Float64Array, w: Float64Array
) -> list[str]:
    """Return the families that add enough to a blend, by either of its two rules."""
    kept: set[str] = set()
    for rule, power in ((blend_weights, 2), (robust_weights, 1)):
        errors = {n: float(w @ abs(a - y) ** power) for n, a in answers.items()}
        best, *others = sorted(answers, key=errors.__getitem__)
        some, least = {best: answers[best]}, errors[best]
        for name in others:
            more = {**some, name: answers[name]}
            weights = rule(more, y, w)
            error = float(w @ abs(_join(more, weights) - y) ** power)
            if error < (1.0 - _LEAST_GAIN) * least:
                some, least = more, error
        kept.update(some)
    return [name for name in answers if name in kept]
