"""Saved models: one zip file of a description and arrays, checked as it is read.

Knows no calibrator: classes are found by where they are defined, and written attribute
by attribute.
"""

from calibration.storage.archive import FORMAT_VERSION, StorageError
from calibration.storage.lightgbm_text import TextTable, check_booster_text, read_trees
from calibration.storage.model import Saved, load, save
from calibration.storage.whole_file import replacing_file, writable_file

__all__ = [
    "FORMAT_VERSION",
    "Saved",
    "StorageError",
    "TextTable",
    "check_booster_text",
    "load",
    "read_trees",
    "replacing_file",
    "save",
    "writable_file",
]
