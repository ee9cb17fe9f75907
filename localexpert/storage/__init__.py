"""Saved models of `localexpert`: those of `calibration`, and boosters beside them."""

from localexpert.storage.load import load, save
from localexpert.storage.saved import SavedModel

__all__ = ["SavedModel", "load", "save"]
