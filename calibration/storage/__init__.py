"""Saved models: one zip file, written and read by skops, and checked before it is read.

Knows no calibrator: classes are found by walking the packages, and written attribute
by attribute.
"""

from calibration.storage.archive import FORMAT_VERSION
from calibration.storage.errors import StorageError
from calibration.storage.lightgbm_text import TextTable, check_booster_text, read_trees
from calibration.storage.load import load
from calibration.storage.model import load_model, save_model
from calibration.storage.saved import Saved
from calibration.storage.trees import check_nodes
from calibration.storage.whole_file import replacing_file, writable_file

__all__ = [
    "FORMAT_VERSION",
    "Saved",
    "StorageError",
    "TextTable",
    "check_booster_text",
    "check_nodes",
    "load",
    "load_model",
    "read_trees",
    "replacing_file",
    "save_model",
    "writable_file",
]
