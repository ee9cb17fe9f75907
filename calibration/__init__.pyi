"""The public names, and where each is: what type checkers read.

The package reads the same lines when a name is asked for (`calibration/_lazy.py`).
"""

from calibration.base.calibrators import ScoreCalibrator as ScoreCalibrator
from calibration.binning.all_binnings import ABBCalibrator as ABBCalibrator
from calibration.binning.all_binnings import SBBCalibrator as SBBCalibrator
from calibration.binning.bbq import BBQCalibrator as BBQCalibrator
from calibration.binning.histogram import HistogramCalibrator as HistogramCalibrator
from calibration.binning.histogram import auc_loss_bound as auc_loss_bound
from calibration.binning.histogram import ece_bound as ece_bound
from calibration.binning.histogram import mce_bound as mce_bound
from calibration.classifier.classifier import AllPairsClassifier as AllPairsClassifier
from calibration.classifier.classifier import (
    CalibratedClassifier as CalibratedClassifier,
)
from calibration.densities.dpm import DPMCalibrator as DPMCalibrator
from calibration.densities.formulas import (
    AsymmetricLaplaceCalibrator as AsymmetricLaplaceCalibrator,
)
from calibration.densities.formulas import GaussianCalibrator as GaussianCalibrator
from calibration.densities.kde import KDECalibrator as KDECalibrator
from calibration.densities.nadaraya_watson import (
    NadarayaWatsonCalibrator as NadarayaWatsonCalibrator,
)
from calibration.drift.base import Advice as Advice
from calibration.drift.monitor import CalibrationMonitor as CalibrationMonitor
from calibration.drift.priors import PriorEstimate as PriorEstimate
from calibration.drift.priors import PriorShiftTest as PriorShiftTest
from calibration.drift.priors import estimate_prior as estimate_prior
from calibration.drift.priors import prior_shift_test as prior_shift_test
from calibration.drift.priors import shift_prior as shift_prior
from calibration.exceptions import CalibrationWarning as CalibrationWarning
from calibration.logistic.piecewise import (
    PiecewiseLogisticCalibrator as PiecewiseLogisticCalibrator,
)
from calibration.logistic.polynomial import BetaCalibrator as BetaCalibrator
from calibration.logistic.polynomial import LogisticCalibrator as LogisticCalibrator
from calibration.logistic.polynomial import PlattCalibrator as PlattCalibrator
from calibration.logistic.polynomial import QuadraticCalibrator as QuadraticCalibrator
from calibration.logistic.polynomial import (
    TemperatureCalibrator as TemperatureCalibrator,
)
from calibration.maps import CalibrationMap as CalibrationMap
from calibration.measures.calibration_errors import CalibrationTest as CalibrationTest
from calibration.measures.calibration_errors import (
    cumulative_calibration_test as cumulative_calibration_test,
)
from calibration.measures.calibration_errors import (
    expected_calibration_error as expected_calibration_error,
)
from calibration.measures.calibration_errors import (
    maximum_calibration_error as maximum_calibration_error,
)
from calibration.measures.comparison import MethodComparison as MethodComparison
from calibration.measures.comparison import PairedComparison as PairedComparison
from calibration.measures.comparison import compare_methods as compare_methods
from calibration.measures.comparison import compare_pair as compare_pair
from calibration.measures.reliability import BrierDecomposition as BrierDecomposition
from calibration.measures.reliability import CorpDecomposition as CorpDecomposition
from calibration.measures.reliability import ReliabilityCurve as ReliabilityCurve
from calibration.measures.reliability import (
    brier_decomposition as brier_decomposition,
)
from calibration.measures.reliability import corp_decomposition as corp_decomposition
from calibration.measures.reliability import reliability_curve as reliability_curve
from calibration.measures.scores import auc_score as auc_score
from calibration.measures.scores import brier_score as brier_score
from calibration.measures.scores import log_loss as log_loss
from calibration.measures.scores import proper_score as proper_score
from calibration.measures.scores import spherical_score as spherical_score
from calibration.monotone.elite import ELiTECalibrator as ELiTECalibrator
from calibration.monotone.enir import ENIRCalibrator as ENIRCalibrator
from calibration.monotone.enir import NearIsotonicPath as NearIsotonicPath
from calibration.monotone.isotonic import (
    BaggedIsotonicCalibrator as BaggedIsotonicCalibrator,
)
from calibration.monotone.isotonic import (
    CenteredIsotonicCalibrator as CenteredIsotonicCalibrator,
)
from calibration.monotone.isotonic import IsotonicCalibrator as IsotonicCalibrator
from calibration.monotone.isotonic import VennAbersCalibrator as VennAbersCalibrator
from calibration.multiclass.base import IdentityCalibrator as IdentityCalibrator
from calibration.multiclass.base import MulticlassCalibrator as MulticlassCalibrator
from calibration.multiclass.binary import AllPairsCalibrator as AllPairsCalibrator
from calibration.multiclass.binary import (
    OneVsRestCalibrator as OneVsRestCalibrator,
)
from calibration.multiclass.shallow_net import (
    ShallowNetCalibrator as ShallowNetCalibrator,
)
from calibration.multiclass.softmax import SoftmaxCalibrator as SoftmaxCalibrator
from calibration.neighbours.logistic_intervals import (
    logistic_intervals as logistic_intervals,
)
from calibration.neighbours.side_information import ACPCalibrator as ACPCalibrator
from calibration.neighbours.side_information import SBACalibrator as SBACalibrator
from calibration.plots import plot_calibration_map as plot_calibration_map
from calibration.plots import plot_class_reliability as plot_class_reliability
from calibration.plots import plot_monitor as plot_monitor
from calibration.plots import plot_ranks as plot_ranks
from calibration.plots import plot_reliability as plot_reliability
from calibration.plots import plot_roc as plot_roc
from calibration.plots import plot_simplex as plot_simplex
from calibration.plots import plot_simplex_field as plot_simplex_field
from calibration.selection.auto import AutoCalibrator as AutoCalibrator
from calibration.selection.auto import AutoReport as AutoReport
from calibration.selection.auto import CandidateScore as CandidateScore
from calibration.selection.auto import calibrator_names as calibrator_names
from calibration.selection.auto import make_calibrator as make_calibrator
from calibration.selection.compare import (
    CalibratorComparison as CalibratorComparison,
)
from calibration.selection.compare import compare_calibrators as compare_calibrators
from calibration.selection.label_sample import LabelSample as LabelSample
from calibration.selection.label_sample import draw_rows_to_label as draw_rows_to_label
from calibration.sources import summarize as summarize
from calibration.storage import StorageError as StorageError
from calibration.storage import load as load
from calibration.summary import ScoreSummary as ScoreSummary

__version__: str
