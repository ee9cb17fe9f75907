"""What an object of each kind lets people read: nothing of it vanishes unseen.

`attributes.txt` has a line per kind, from one small fit each. Names may be added.
`python tests/test_attributes.py` writes the file, and so adds what is new.
"""

import inspect
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import calibration
import localexpert

LIST = Path(__file__).with_name("attributes.txt")


def attributes_of(thing):
    """Return the public names that are no methods; of a dictionary its keys."""
    if isinstance(thing, dict):
        return set(thing)
    own = {name for name in dir(thing) if not name.startswith("_")}
    return {name for name in own if not inspect.isroutine(getattr(thing, name, None))}


def of_probabilities():
    """Make one object of each kind of `calibration`."""
    rng = np.random.default_rng(0)
    scores = np.round(rng.uniform(size=200), 2)
    y = (rng.uniform(size=200) < scores).astype(int)
    classes, table = rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200)
    for name in dir(calibration):
        kind = getattr(calibration, name)
        if inspect.isclass(kind) and not inspect.isabstract(kind):
            if issubclass(kind, calibration.ScoreCalibrator):
                yield name, kind().fit(scores, y)
            elif issubclass(kind, calibration.MulticlassCalibrator):
                yield name, kind().fit(table, classes)
    for kind in (calibration.CalibratedClassifier, calibration.AllPairsClassifier):
        yield kind.__name__, kind(LogisticRegression()).fit(table, classes)
    yield "ScoreSummary", calibration.ScoreSummary.from_scores(scores, y)
    yield "ReliabilityCurve", calibration.reliability_curve(y, scores)
    yield "CorpDecomposition", calibration.corp_decomposition(y, scores)


def of_distributions():
    """Make one object of each kind of `localexpert`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = X[:, 0] + rng.normal(size=150)
    model = localexpert.LocalExpertRegressor(effort="quick", random_state=0).fit(X, y)
    yield "LocalExpertRegressor", model
    dist = model.predict_dist(X)
    yield "PredictiveDistribution", dist
    yield "RecalibratedRegressor", localexpert.recalibrate(model, X, y)
    adapter = localexpert.DistributionAdapter(clone(model), cv=2)
    yield "DistributionAdapter", adapter.fit(X, y)
    pool = localexpert.DistributionEnsemble([("a", model)])
    yield "DistributionEnsemble", pool.fit(X, y)
    figures = localexpert.report_figures(model, X, y, importance_rows=20)
    yield "ReportFigures", figures


def objects():
    """Return the attributes of each kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [*of_probabilities(), *of_distributions()]
        return {name: attributes_of(thing) for name, thing in made}


def test_objects_keep_what_people_read():
    now = objects()
    for line in LIST.read_text(encoding="utf-8").splitlines():
        name, listed = line.split(": ")
        assert not set(listed.split()) - now[name], name


if __name__ == "__main__":
    rows = [f"{name}: {' '.join(sorted(own))}" for name, own in objects().items()]
    LIST.write_text("\n".join(rows) + "\n", encoding="utf-8")
