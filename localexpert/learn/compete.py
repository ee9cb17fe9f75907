"""Choose which roads compete for a target: the user's, or those that suit it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral

import numpy as np

from calibration._validation import refuse
from calibration.typing import Float64Array
from localexpert.data.folds import Sample
from localexpert.data.target_values import (
    count_values,
    is_skewed,
    range_without_outliers,
)
from localexpert.experts.thresholds import (
    FEW_VALUES,
    find_atoms,
    is_discrete,
    lattice_step,
)
from localexpert.law.steps import cell_edges
from localexpert.law.transform import ExpLess, LogOf
from localexpert.learn.learner import BesideAtoms, FittedRoad, Learner
from localexpert.learn.pool import Pool
from localexpert.learn.roads import (
    CellRoad,
    DiscreteRoad,
    FrameRoad,
    GridRoad,
    Road,
    Transformed,
    marginal_road,
)
from localexpert.learn.settings import Settings
from localexpert.learn.stages import Stages
from localexpert.learn.steps import NearAtoms, OtherFolds, Step
from localexpert.learn.values import MANY_VALUES, Cells, Tails

# The grid gives hundreds of answers per row. With more rows than this, they cost more
# time and more space in a saved model than they are worth.
_MOST_ROWS_FOR_GRID = 50_000
# A smooth rest beside atoms has at least this many different values.
_LEAST_REST = 10
# A value at an end is inflated if it is this many times as frequent as the next three,
# and if it occurs in more than this many rows.
_INFLATED, _LEAST_INFLATED = 2.0, 20.0
# Counts are heaped on values that are this many times as frequent as their neighbours,
# if the excess holds at least this share of the weight.
_MORE, _LEAST_HEAPED = 1.5, 0.05
# If there are fewer values than this, each is a case of its own. With 17 values this
# makes the CRPS 1.2 % smaller.
_FEW_CASES = 20
_RESIDUALS = marginal_road("residuals", "auto", "quantile")
# Folds of the additional learners of a target.
_FOLDS = {"other folds": "auto", "ten folds": 10, "other ten folds": 10}
# With five folds a quick fit takes a tenth longer, and its CRPS is 1.7 % smaller.
_FOLDS_OF_QUICK = 4
# The default takes this many times as long as a quick fit.
_COST_OF_DEFAULT = 5.0
# Floats hold a coordinate to this share of its size, or better.
_LEAST_SPAN = 1e-10


def choose_learner(settings: Settings, sample: Sample) -> tuple[str, Learner]:
    """Look at a target. Return its kind and the unfitted learner of it.

    The learner depends on the effort. It learns the target once, or it is a pool of
    several such learners with other folds and seeds, or it starts with a quick learner
    and goes on with the others while there is time.

    Parameters
    ----------
    settings : Settings
    sample : Sample

    Returns
    -------
    target : {"continuous", "discrete", "mixed"}
    learner : Learner
    """
    own_centre = not isinstance(settings.center, str)
    framed = [road.frame for road in settings.roads or (settings.described,)]
    if own_centre and any(framed) and not sample.is_linked:
        rule = 'be "stack" where no fold of `cv` trains on rows that another one tests'
        refuse("center", rule, repr(settings.center))
    level = settings.effort.level
    if level == "quick":
        return _learn_quickly(settings, sample)
    if level in ("default", "residuals"):
        return _learn_target(settings, sample)
    made: dict[str, Road | Learner] = {}
    if level == "timed" and settings.chooses_roads:
        made["quick"] = _learn_quickly(settings, sample)[1]
    cost = _COST_OF_DEFAULT if made else 1.0
    for name, own, steps in _members(settings):
        target, learner = _learn_on_other_folds(own, sample, steps)
        made[name], learner.cost = learner, cost
    return target, _compete(made, settings, Stages())


def _learn_quickly(settings: Settings, sample: Sample) -> tuple[str, Learner]:
    """Return the kind of a target and a learner that needs a fraction of the time."""
    dealt = isinstance(settings.cv, str)
    steps = (OtherFolds(_FOLDS_OF_QUICK, settings.seed),) if dealt else ()
    return _learn_on_other_folds(settings.quick(), sample, steps)


def _members(settings: Settings) -> Iterator[tuple[str, Settings, tuple[Step, ...]]]:
    """Yield learners with different errors: name, settings, and steps that deal folds.

    If the user gives folds, all learners use them.
    """
    seeds = np.random.default_rng(settings.seed).integers(2**31, size=len(_FOLDS))
    yield "default", settings, ()
    for (name, folds), seed in zip(_FOLDS.items(), seeds.tolist(), strict=True):
        cv = folds if isinstance(settings.cv, str) else settings.cv
        dealt = isinstance(cv, str | Integral)
        steps = (OtherFolds(cv, seed),) if dealt else ()
        yield name, replace(settings, seed=seed), steps


def _learn_on_other_folds(
    settings: Settings, sample: Sample, steps: tuple[Step, ...]
) -> tuple[str, Learner]:
    """Return the kind of a target and a learner of it, within steps that deal folds."""
    for step in steps:
        sample = step.inner(sample)
    target, learner = _learn_target(settings, sample)
    learner.steps = (*steps, *learner.steps)
    return target, learner


def _learn_target(settings: Settings, sample: Sample) -> tuple[str, Learner]:
    """Return the kind of a target and the unfitted learner that learns it once.

    A target with few distinct values, most of them repeated (`is_discrete`), gets
    probabilities per value. Otherwise a value that holds 2 % of the weight is an atom.
    Atoms may stand beside a smooth rest, or a smooth target may be rounded to them. The
    better forecast of the two wins, or their pool. If no fold both trains on rows of
    the rest and tests some, only the second is possible. If fewer than 10 values are
    left for the rest, all is discrete. With given `thresholds`, and for a smooth
    target, there are only smooth roads. The same is true if an order of rows must be
    kept: two parts in order, beside ordered probabilities of atoms, may cross.
    """
    if settings.is_quick and settings.chooses_roads and not sample.is_linked:
        # No residuals of a centre are known. Experts need none.
        settings = replace(settings, roads=(FrameRoad(None, strategy="shared"),))
    held, weight = _held(sample)
    if np.ptp(held) == 0.0:
        rule = "differ in the rows that no recalibration sets aside"
        refuse("y", rule, f"{held[0]:g} only")
    placed = isinstance(settings.described.thresholds, str)
    atoms = find_atoms(held, sample_weight=weight) if placed else np.empty(0)
    free = held[~np.isin(held, atoms)]
    # An atom at an end is a bound.
    ends = zip(settings.limits.suspected, settings.limits.bounds, strict=True)
    low, high = (end if end in atoms else given for end, given in ends)
    settings = settings.within((low, high))
    few = len(atoms) > 0 and len(np.unique(free)) < _LEAST_REST
    if few or (placed and is_discrete(held, sample_weight=weight)):
        return "discrete", _learn_values(settings, sample)
    _check_distinct(held, weight)
    stages = Stages()
    if len(atoms) == 0 or settings.monotone is not None:
        return "continuous", _compete(_smooth_roads(settings, held), settings, stages)
    apart = _has_rest(sample, atoms)
    made: dict[str, Road | Learner] = {}
    if settings.chooses_roads or not apart:
        # Perhaps a smooth target was rounded to the atoms. Then all rows tell about it.
        near = (NearAtoms(atoms),)
        roads = _smooth_roads(settings, held)
        made["smooth"] = _compete(roads, settings, stages, near)
    if apart:
        roads = _smooth_roads(settings, free)
        if settings.chooses_roads:
            # The grid of all rows says nearly the same, and one grid is enough.
            roads.pop("grid", None)
        smooth = _compete(roads, settings, stages)
        made["mixed"] = _beside(atoms, smooth, settings, stages)
    return "mixed", _compete(made, settings, stages)


def _held(sample: Sample) -> tuple[Float64Array, Float64Array]:
    """Return the targets and weights of the rows that have a weight."""
    present = sample.weight > 0.0
    return sample.y[present], sample.weight[present]


def _has_rest(sample: Sample, atoms: Float64Array) -> bool:
    """Return whether a fold trains on rows that have no atom, and tests such rows."""
    rest = (sample.weight > 0.0) & ~np.isin(sample.y, atoms)
    return any(rest[train].any() and rest[test].any() for train, test in sample.folds)


def _smooth_roads(settings: Settings, y: Float64Array) -> dict[str, Road]:
    """Return the roads to a smooth target or to the smooth part of a target, by name.

    Parameters
    ----------
    settings : Settings
    y : ndarray of shape (m,)
        Targets without the values that have their own probability.

    Returns
    -------
    dict of str to Road
    """
    if not settings.chooses_roads:
        roads = _named(settings.roads or (settings.described,))
        for name, road in roads.items():
            if road.to_values:
                got = f"a road to few values ({name!r}) for a continuous one"
                refuse("roads", "fit the target", got)
            road.check_target(y)
        return roads
    found = _centred_road(settings)
    # The forest of the grid cannot keep an order.
    few = len(y) <= _MOST_ROWS_FOR_GRID
    if few and settings.monotone is None and not settings.is_quick:
        found["grid"] = GridRoad()
    found |= _log_road(settings, y)
    if settings.monotone is None:
        found["residuals"] = _RESIDUALS
        found["climatology"] = marginal_road("climatology", None, "quantile")
    return found


def _learn_values(settings: Settings, sample: Sample) -> Learner:
    """Return the roads that compete for a discrete target.

    A smooth road of the user answers with the mass of cells around the values.
    """
    y, weight = _held(sample)
    n_values = len(np.unique(y))
    made: dict[str, Road | Learner] = {}
    for name, road in _named(settings.roads).items():
        road.check_target(y)
        made[name] = road if road.to_values else CellRoad(road)
    # For a smooth target, a question for each value takes as long and tells no more.
    rounds = settings.chooses_roads and n_values > 2
    heaped = rounds and _is_heaped(*count_values(y, weight))
    if not (made or rounds) or (heaped and not settings.is_quick):
        made["discrete"] = DiscreteRoad(settings.described.strategy)
    if rounds:
        made["cells"] = _learn_rounded(settings, sample)
    if rounds and settings.monotone is None:
        made["climatology"] = marginal_road("climatology", None, "values")
    # Tails of few values are read with rounding, which ordered rows may not have.
    many = MANY_VALUES if settings.monotone is None else FEW_VALUES + 1
    steps = (Tails(settings.limits.bounds),) if n_values >= many else ()
    return _compete(made, settings, Stages(), steps)


def _learn_rounded(settings: Settings, sample: Sample) -> Learner:
    """Return smooth roads to a discrete target, beside inflated values at its ends.

    Rows that are not at an inflated value lie beyond the edge of its cell.
    """
    y, weight = _held(sample)
    values, sums = count_values(y, weight)
    edges = cell_edges(values)
    # Two ordered parts beside ordered probabilities of atoms may cross.
    ends = _inflated(values, sums) if settings.monotone is None else (False, False)
    atoms = values[[0, -1]][list(ends)]
    if not _has_rest(sample, atoms):
        ends, atoms = (False, False), atoms[:0]
    low = float(edges[1]) if ends[0] else -np.inf
    high = float(edges[-2]) if ends[1] else np.inf
    cells, limits = Cells(atoms).bind(settings.limits, settings.seed)
    smooth = replace(settings, limits=replace(limits, bounds=(low, high)))
    rest = y[~np.isin(y, atoms)]
    roads = _centred_road(smooth)
    if len(np.unique(rest)) >= MANY_VALUES:
        # Targets are drawn in their cells, as far as the next possible value below.
        cells.fit(sample)
        below = cells.support_.values[cells.support_.values < rest.min()]
        cell = max(values[1] - values[0], *(rest.min() - below[-1:]), 0.0)
        roads |= _log_road(smooth, rest, max(float(cell - rest.min()), 0.0))
    stages = Stages()
    if len(atoms) == 0:
        return _compete(roads, smooth, stages, (cells,))
    learner = _compete(roads, smooth, stages)
    mixed = _beside(atoms, learner, smooth, stages)
    mixed.steps = (cells,)
    return mixed


def _beside(
    atoms: Float64Array, rest: Learner, settings: Settings, stages: Stages
) -> BesideAtoms:
    """Return a learner of atoms beside the learner of the rest."""
    # This target is the number of the atom. It has no other values.
    numbered = settings.within((0.0, float(len(atoms))))
    strategy = settings.described.strategy if settings.single else "auto"
    if settings.is_quick and settings.expert is None:
        strategy = "shared"
    road = DiscreteRoad(strategy)
    return BesideAtoms(atoms, FittedRoad(road, numbered, stages), rest)


def _is_heaped(values: Float64Array, weight: Float64Array) -> bool:
    """Return whether some values are more frequent than a smooth law allows.

    With few values, or without a lattice, each value is a case of its own. Otherwise
    the excess of a value is what lies above 1.5 times the mean of its neighbours plus
    two standard errors. All excesses together must hold a twentieth of the weight.
    """
    step = lattice_step(values)
    if len(values) < _FEW_CASES or step is None:
        return True
    places = np.round((values - values[0]) / step).astype(np.intp)
    met = np.bincount(places, weight)
    usual = 0.5 * (met[:-2] + met[2:])
    more = met[1:-1] - _MORE * usual - 2.0 * np.sqrt(usual + 1.0)
    return bool(np.maximum(more, 0.0).sum() > _LEAST_HEAPED * weight.sum())


def _inflated(values: Float64Array, weight: Float64Array) -> tuple[bool, bool]:
    """Return whether the least and the greatest value are too frequent to be smooth.

    Such a value is twice as frequent as any of the next three.
    """
    if len(values) < MANY_VALUES:
        return False, False
    first, last = (
        bool(own[0] > max(_INFLATED * own[1:4].max(), _LEAST_INFLATED))
        for own in (weight, weight[::-1])
    )
    return first, last


def _compete(
    roads: Mapping[str, Road | Learner],
    settings: Settings,
    stages: Stages,
    steps: tuple[Step, ...] = (),
) -> Learner:
    """Return the learner of the only road, or a pool of several, within steps."""
    made = {
        name: FittedRoad(road, settings, stages) if isinstance(road, Road) else road
        for name, road in roads.items()
    }
    if len(made) > 1:
        exact = settings.monotone is not None
        return Pool(made, settings.seed, settings.effort, exact=exact, steps=steps)
    (only,) = made.values()
    only.steps = (*steps, *only.steps)
    return only


def _centred_road(settings: Settings) -> dict[str, Road]:
    """Return the road around a centre, by name."""
    if settings.is_quick:
        return {"residuals": _RESIDUALS}
    return {"frame": FrameRoad()}


def _log_road(
    settings: Settings, y: Float64Array, shift: float | None = None
) -> dict[str, Road]:
    """Return the road to log(y + shift), by name, if it may suit the target.

    By default `shift` is 0. If some y are 0, it is half of the least y above 0.
    """
    if y.min() < 0.0 or np.ptp(y) == 0.0 or not is_skewed(y):
        return {}
    if shift is None:
        shift = 0.0 if y.min() > 0.0 else 0.5 * float(y[y > 0.0].min())
    most = min(float(y.max()), range_without_outliers(y, np.ones(len(y)))[1])
    log, exp = LogOf(shift, most), ExpLess(shift, most)
    (road,) = _centred_road(settings).values()
    return {"log": Transformed(road, log, exp)}


def _named(roads: Iterable[Road]) -> dict[str, Road]:
    """Return roads by name. If a name comes again, the later road gets a number."""
    found: dict[str, Road] = {}
    for road in roads:
        same = sum(key.split(" ")[0] == road.name for key in found)
        found[f"{road.name} {same + 1}" if same else road.name] = road
    return found


def _check_distinct(y: Float64Array, weight: Float64Array) -> None:
    """Refuse a smooth target whose values differ too little for floats."""
    near = np.clip(y, *range_without_outliers(y, weight))
    size = float(np.abs(near).max())
    if np.ptp(near) < _LEAST_SPAN * size:
        rule = f"differ by more than {_LEAST_SPAN:g} of its size"
        got = f"values from {near.min():.17g} to {near.max():.17g}"
        refuse("y", rule, f"{got}: subtract one of them")
