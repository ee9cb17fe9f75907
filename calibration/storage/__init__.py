"""Saved models: one zip file of JSON, arrays and other libraries' own formats.

Knows no calibrator: classes are found by walking the packages, and written attribute
by attribute.
"""

from calibration.storage.archive import FORMAT_VERSION
from calibration.storage.errors import StorageError
from calibration.storage.lightgbm_text import check_booster_text
from calibration.storage.load import load
from calibration.storage.model import load_model, save_model
from calibration.storage.parts import Part, PartKind
from calibration.storage.saved import Saved
from calibration.storage.whole_file import replacing_file, writable_file

__all__ = [
    "FORMAT_VERSION",
    "Part",
    "PartKind",
    "Saved",
    "StorageError",
    "check_booster_text",
    "load",
    "load_model",
    "replacing_file",
    "save_model",
    "writable_file",
]
