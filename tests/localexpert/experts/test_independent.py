"""`IndependentExperts`: any classifier, shared bins, failures with a name."""

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn import config_context, ensemble, neighbors, svm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibration import CalibrationWarning
from localexpert.data.folds import make_folds
from localexpert.experts import IndependentExperts
from localexpert.experts.thresholds import place_thresholds


@pytest.fixture
def problem(rng):
    n = 200
    X = rng.normal(size=(n, 3))
    r = X[:, 0] + 0.5 * rng.normal(size=n)
    return X, r, place_thresholds(r, 4), make_folds(n, 3, random_state=0)


def by_hand(classifier, X, r, thresholds, folds, ask, **options):
    """Answers for all rows by a plain loop: out of fold, and means of the folds'."""
    oof, whole = np.zeros((2, len(r), len(thresholds)))
    for k, threshold in enumerate(thresholds):
        for train, test in folds:
            own = {name: value[train] for name, value in options.items()}
            model = clone(classifier).fit(X[train], r[train] <= threshold, **own)
            answers = ask(model, X[train], X, r[train] <= threshold)
            oof[test, k] = answers[test]
            whole[:, k] += answers / len(folds)
    return oof, whole


def assert_equal(experts, X, want, atol=1e-12):
    assert_allclose(experts.oof_probabilities_, want[0], atol=atol)
    assert_allclose(experts.predict(X), want[1], atol=atol)


def ask_probability(model, _train, test, _labels):
    return model.predict_proba(test)[:, 1]


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        neighbors.KNeighborsClassifier(),
        ensemble.RandomForestClassifier(5, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_equals_a_plain_loop(problem, classifier):
    experts = IndependentExperts(classifier).fit(*problem)
    assert_equal(experts, problem[0], by_hand(classifier, *problem, ask_probability))


def test_equal_weights_reach_a_classifier(problem):
    weight, classifier = np.full(len(problem[1]), 0.01), LogisticRegression()
    experts = IndependentExperts(classifier).fit(*problem, sample_weight=weight)
    want = by_hand(classifier, *problem, ask_probability, sample_weight=weight)
    assert_equal(experts, problem[0], want)


@pytest.mark.parametrize("classifier", [svm.SVC(), RidgeClassifier()])
def test_decisions_become_probabilities(problem, classifier):
    def ask(model, train, test, labels):
        decision = model.decision_function(train)
        rate = (labels.sum() + 1.0) / (len(labels) + 2.0)
        standard = (model.decision_function(test) - decision.mean()) / decision.std()
        return expit(logit(rate) + standard)

    experts = IndependentExperts(classifier).fit(*problem)
    assert_equal(experts, problem[0], by_hand(classifier, *problem, ask))


def test_weights_of_decisions_are_repetitions(problem, rng):
    X, r, thresholds, folds = problem
    times = rng.integers(1, 6, len(r))
    rows = np.repeat(np.arange(len(r)), times)
    twice = [tuple(np.flatnonzero(np.isin(rows, p)) for p in fold) for fold in folds]
    experts = IndependentExperts(RidgeClassifier(solver="cholesky"))
    want = experts.fit(X[rows], r[rows], thresholds, twice).oof_probabilities_
    got = experts.fit(X, r, thresholds, folds, times).oof_probabilities_
    assert_allclose(got[rows], want, atol=1e-9)


@pytest.mark.parametrize(
    ("library", "name"), [("lightgbm", "LGBMClassifier"), ("xgboost", "XGBClassifier")]
)
def test_boosters_of_the_users_are_any_classifier(problem, library, name, rng):
    classifier = getattr(pytest.importorskip(library), name)(
        n_estimators=12, max_depth=3, random_state=3, n_jobs=1, verbosity=0
    )
    weight = rng.uniform(0.5, 2.0, len(problem[1]))
    experts = IndependentExperts(classifier, n_jobs=2)
    experts.fit(*problem, sample_weight=weight)
    want = by_hand(classifier, *problem, ask_probability, sample_weight=weight)
    assert_equal(experts, problem[0], want, atol=1e-5)


def test_one_class_in_a_training_part_is_a_smoothed_constant():
    r = np.arange(12.0)
    X = r[:, None]
    # The first fold trains on rows 6..11 only, all above the threshold.
    folds = [(np.arange(6, 12), np.arange(6)), (np.arange(6), np.arange(6, 12))]
    for classifier in (None, LogisticRegression(), svm.SVC()):
        experts = IndependentExperts(classifier).fit(X, r, [4.5], folds)
        assert_allclose(experts.oof_probabilities_[:6], 1.0 / 8.0)
        assert (experts.oof_probabilities_[6:] < 0.9).all()


class Moody(LogisticRegression):
    """A classifier that fails where the share of class 1 is over a half."""

    def fit(self, X, y, sample_weight=None):
        if np.mean(y) > 0.5:
            msg = "too many ones"
            raise ArithmeticError(msg)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failure_names_threshold_and_fold(n_jobs):
    r = np.arange(12.0)
    folds = make_folds(12, 2, random_state=0)
    experts = IndependentExperts(Moody(), n_jobs=n_jobs)
    message = r"threshold 8.5 \(number 1\) in fold 0 failed: too many ones"
    with (
        joblib.parallel_config("threading"),
        pytest.raises(RuntimeError, match=message) as caught,
    ):
        experts.fit(r[:, None], r, [2.5, 8.5], folds)
    assert isinstance(caught.value.__cause__, ArithmeticError)


class Astray(ClassifierMixin, BaseEstimator):
    """Answers that are no probabilities of two classes, or no decisions."""

    def __init__(self, answer=None, decides=None):
        self.answer = answer
        self.decides = decides

    def fit(self, _X, y):
        self.classes_ = np.unique(y)
        return self

    def __getattr__(self, name):
        given = {"predict_proba": "answer", "decision_function": "decides"}
        value = self.__dict__.get(given.get(name, ""))
        if value is None:
            raise AttributeError(name)
        return lambda X: np.tile(value, (len(X), 1)[: 1 + np.ndim(value)])


def test_a_refit_that_fails_keeps_the_fit_before(problem):
    X, experts = problem[0], IndependentExperts(LogisticRegression()).fit(*problem)
    want = experts.predict(X)
    with pytest.raises(RuntimeError, match="NaN"):
        experts.set_params(classifier=Astray(answer=[np.nan, np.nan])).fit(*problem)
    assert_array_equal(experts.predict(X), want)


@pytest.mark.parametrize(
    ("classifier", "wrong"),
    [
        (Astray(answer=[-0.5, 1.5]), r"in \[0, 1\] .* got values from 1.5 to 1.5"),
        (Astray(answer=[1.2, -0.2]), "got values from -0.2 to -0.2"),
        (Astray(answer=[0.2, 0.3, 0.5]), r"got shape \(67, 3\) for 67 rows"),
        (Astray(decides=[0.5, 0.5]), r"by a number, got shape \(133, 2\)"),
        (Astray(decides=np.inf), "by a number, got NaN or infinity"),
    ],
)
def test_answers_that_are_no_probabilities_are_refused(problem, classifier, wrong):
    with pytest.raises(RuntimeError, match=f"in fold 0 failed: Astray must .*{wrong}"):
        IndependentExperts(classifier).fit(*problem)


def test_weights_reach_pipelines_and_are_missed_where_not_taken(problem, rng):
    X, r, thresholds, folds = problem
    weight = rng.integers(1, 4, len(r)).astype(float)
    plain = IndependentExperts(LogisticRegression())
    piped = IndependentExperts(make_pipeline("passthrough", LogisticRegression()))
    one, other = (
        experts.fit(X, r, thresholds, folds, weight).oof_probabilities_
        for experts in (plain, piped)
    )
    assert_array_equal(one, other)
    unasked = "Pipeline.fit is not asked to take `sample_weight`"
    with (
        config_context(enable_metadata_routing=True),
        pytest.warns(CalibrationWarning, match=unasked),
    ):
        piped.fit(X, r, thresholds, folds, weight)
    deaf = IndependentExperts(neighbors.KNeighborsClassifier())
    message = "KNeighborsClassifier.fit takes no `sample_weight`"
    with pytest.warns(CalibrationWarning, match=message):
        deaf.fit(X, r, thresholds, folds, weight)
    # Equal weights weigh no row more, and zeros are obeyed by leaving the rows out:
    # no warning, which would be an error here.
    deaf.fit(X, r, thresholds, folds, np.where(np.arange(len(r)) % 7, 2.0, 0.0))


def test_nested_threads_are_kept_in_check(problem):
    near = neighbors.KNeighborsClassifier(n_jobs=4)
    experts = IndependentExperts(make_pipeline(StandardScaler(), near))
    for n_jobs, seen in ((1, 4), (2, 1)):
        with joblib.parallel_config("threading"):
            experts.set_params(n_jobs=n_jobs).fit(*problem)
        assert experts.models_[0][0].estimator[-1].n_jobs == seen


def test_default_is_boosted_with_common_rounds(problem):
    experts = IndependentExperts(random_state=0).fit(*problem)
    assert 1 <= experts.n_rounds_ <= 300
    models = [model for models in experts.models_ for model in models]
    rounds = {model.estimator.n_estimators_ for model in models}
    assert rounds == {experts.n_rounds_}
