"""`__all__` is the truth about what is public, and what is public is documented."""

import importlib
import inspect
import pkgutil
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

PACKAGES = ("calibration", "localexpert")
# Where users find public names: packages, and rooms that are namespaces.
NAMESPACES = (*PACKAGES, "localexpert.risk")

# Functions and classes without an underscore that files of a package share among
# themselves and do not offer to users. All others must be in the package's `__all__`.
SHARED: dict[str, set[str]] = {
    "calibration.auto_trials": {
        "HeldOut",
        "deal_folds",
        "hold_trials",
        "read_log_odds",
    },
    "calibration.class_densities": {"DensityCalibrator", "robust_spread"},
    "calibration.kernel_density": {
        "KernelDensity",
        "KernelShape",
        "silverman_bandwidth",
        "tabulate_kernel",
    },
    "calibration.kernel_selection": {"LeaveOneOut"},
    "calibration.side_information": {"SideInformationCalibrator"},
    "calibration.venn_abers": {"merge_intervals"},
    "calibration.all_binnings": {"AllBinnings", "BinCells", "law_of_binnings"},
    "calibration.bbq": {"select_by_elbow"},
    "calibration.beta_bins": {"AveragedBinsCalibrator", "edge_rates", "settle_moments"},
    "calibration.base": {"MapCalibrator"},
    "calibration.classifier": {"CalibratedPair"},
    "calibration.folds": {
        "TrainingData",
        "choose_splitter",
        "cross_fit",
        "split_rows",
        "take_rows",
    },
    "calibration.log_odds": {
        "LogOddsCalibrator",
        "LogOddsScale",
        "fit_coefficients",
        "solve_logistic",
    },
    "calibration.maps": {"constant_map", "edges_between"},
    "calibration.measures.bins": {"bin_starts", "summarise_forecasts"},
    "calibration.measures.rank_tests": {
        "friedman",
        "holm",
        "pairwise_wilcoxon",
        "rank_error",
    },
    "calibration.responses": {
        "adapt_calibrator",
        "check_known_classes",
        "check_two_classes",
        "choose_response",
        "read_scores",
    },
    "localexpert.conformal": {
        "make_recalibration",
        "set_aside",
        "split_calibration_rows",
    },
    "localexpert.laws.beside_atoms": {"MapBesideAtoms"},
    "localexpert.laws.recalibrated": {"recalibrate_law"},
    "localexpert.laws.score_map": {"ScoreMap", "scores_of"},
    "localexpert.pit_curves": {"PitCells", "fit_curve"},
    "localexpert.recalibration": {"Recalibration", "check_rows", "pit_scores"},
    "localexpert.coordinate.additive": {"AdditiveRidge"},
    "localexpert.coordinate.boosting": {"BoostedFold", "FoldBoosters"},
    "localexpert.coordinate.centre": {"CentreStack"},
    "localexpert.coordinate.families": {"BoostedTrees", "Family", "Fitted", "Trial"},
    "localexpert.coordinate.forest": {"Forest"},
    "localexpert.coordinate.frame": {"Frame"},
    "localexpert.experts.inputs": {"DenseInputs"},
    "localexpert.coordinate.network": {
        "SmallNets",
        "draw_start",
        "plan_training",
        "run_network",
        "step_lengths",
    },
    "localexpert.coordinate.scale": {"ScaleModel"},
    "localexpert.coordinate.views": {"Views"},
    "localexpert.expert_calibration": {"CalibrationReport"},
    "localexpert.experts.binned": {"BoosterSettings", "fit_binned", "read_booster"},
    "localexpert.experts.bins": {
        "Bins",
        "BoosterModel",
        "LightGBMBins",
        "XGBoostBins",
        "XGBoostModel",
    },
    "localexpert.experts.boosting": {
        "Boosted",
        "BrierSum",
        "HeldOutBooster",
        "find_rounds",
        "freeze_booster",
        "predict_booster",
        "thread_pool",
    },
    "localexpert.experts.classifiers": {
        "ConstantModel",
        "DecisionModel",
        "Model",
        "ProbabilityModel",
        "asks_out_of_bag",
        "check_classifier",
        "fit_classifiers",
        "fit_out_of_bag",
    },
    "localexpert.experts.experts": {"Experts"},
    "localexpert.experts.networks": {"JointMLP"},
    "localexpert.experts.vector_leaf": {"JointXGBoost"},
    "localexpert.experts.tables": {"Columns", "TableEncoder", "take_rows"},
    "localexpert.experts.draws": {
        "all_places",
        "count_draws",
        "draw_places",
        "grid_knots",
        "repeat_rows",
        "start_scores",
    },
    "localexpert.experts.feature_codes": {"FeatureCodes"},
    "localexpert.experts.leaf_tree": {"LeafTree"},
    "localexpert.experts.tasks": {"Tasks"},
    "localexpert.experts.trees": {"ThresholdTrees"},
    "localexpert.forecasters.constant": {"ConstantForecaster"},
    "localexpert.forecasters.continuous": {"ContinuousForecaster", "fold_numbers"},
    "localexpert.forecasters.discrete": {"DiscreteForecaster"},
    "localexpert.forecasters.mixed": {"MixedForecaster"},
    "localexpert.forecasters.plan": {"FitReport", "Forecaster", "Plan"},
    "localexpert.forecasters.pool": {"PooledExperts", "pool_weights", "spacing"},
    "localexpert.forecasters.tasks": {"TaskRecord"},
    "localexpert.laws.discrete": {"densest_values"},
    "localexpert.laws.law": {"Law", "log_or_minus_inf", "over_rows", "pick_counts"},
    "localexpert.marginal": {
        "distinct_values",
        "fit_tail",
        "smooth_quantiles",
        "steepest_slopes",
    },
    "localexpert.metrics": {"DistributionPredictor"},
    "localexpert.risk_measures": {"RiskMeasures"},
    "localexpert.spline": {
        "CurveBuilder",
        "Curves",
        "clip_bound",
        "curvature_matrix",
        "extend_tails",
        "increase_probabilities",
        "probit_precision",
        "smooth_rows",
        "smoother_matrix",
    },
}


def public_objects(package: str) -> list[tuple[str, object]]:
    """Return the functions and classes that a package offers, with their names."""
    root = importlib.import_module(package)
    return [(f"{package}.{name}", getattr(root, name)) for name in root.__all__]


def defined_names(module: ModuleType) -> set[str]:
    """Return the functions and classes that a module defines without underscore."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isroutine(value))
        and getattr(value, "__module__", None) == module.__name__
    }


def exported_names(package: str) -> set[str]:
    """Return the names in `__all__` of a package and of its namespaces."""
    homes = [name for name in NAMESPACES if name.split(".")[0] == package]
    return set().union(*(importlib.import_module(home).__all__ for home in homes))


def public_modules(package: str) -> list[ModuleType]:
    """Return the modules of a package that lie in no private room."""
    root = importlib.import_module(package)
    names = [
        info.name
        for info in pkgutil.walk_packages(root.__path__, f"{package}.")
        if not any(part.startswith("_") for part in info.name.split("."))
    ]
    return [importlib.import_module(name) for name in names]


@pytest.mark.parametrize("package", NAMESPACES)
def test_all_is_sorted_unique_and_importable(package: str) -> None:
    root = importlib.import_module(package)
    assert list(root.__all__) == sorted(set(root.__all__))
    missing = [name for name in root.__all__ if not hasattr(root, name)]
    assert not missing


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_defined_in_public_is_exported(package: str) -> None:
    exported = exported_names(package)
    for module in public_modules(package):
        stray = defined_names(module) - exported - SHARED.get(module.__name__, set())
        assert not stray, (
            f"{module.__name__} defines {sorted(stray)}: add them to "
            f"{package}.__all__, or to SHARED in tests/test_public_api.py if only "
            "other files of the package use them, or give them an underscore"
        )


def test_what_is_listed_as_shared_exists_and_is_not_exported() -> None:
    for name, shared in SHARED.items():
        module = importlib.import_module(name)
        assert shared <= defined_names(module), name
        assert not shared & exported_names(name.split(".")[0]), name


@pytest.mark.parametrize("package", NAMESPACES)
def test_public_names_are_documented_with_examples(package: str) -> None:
    for name, value in public_objects(package):
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if inspect.isabstract(value):  # nobody makes one
            continue
        doc = inspect.cleandoc(value.__doc__ or "")
        assert doc, f"{name} has no docstring"
        assert "\nExamples\n--------\n" in doc, f"{name} has no Examples section"
        assert ">>> " in doc, f"the example of {name} is not code"


@pytest.mark.parametrize("package", NAMESPACES)
def test_public_methods_are_documented(package: str) -> None:
    for name, value in public_objects(package):
        if not inspect.isclass(value):
            continue
        for attribute, member in inspect.getmembers(value):
            module = getattr(member, "__module__", None) or ""
            ours = module.split(".")[0] in PACKAGES
            if ours and not attribute.startswith("_") and callable(member):
                assert inspect.getdoc(member), f"{name}.{attribute} has no docstring"


@pytest.mark.parametrize("package", PACKAGES)
def test_version_and_type_marker(package: str) -> None:
    root = importlib.import_module(package)
    assert root.__version__ == version("localexpert")
    assert root.__file__ is not None
    assert Path(root.__file__).with_name("py.typed").is_file()
