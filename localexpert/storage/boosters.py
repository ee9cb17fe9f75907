"""Boosters of LightGBM and XGBoost as parts of a saved model, in their own formats."""

from __future__ import annotations

import json
import sys
from typing import Any

import lightgbm as lgb

from calibration.storage import Part, StorageError, check_booster_text

_TEXT, _UBJ = "model.txt", "model.ubj"


class LightGBMParts:
    """Boosters of LightGBM, as the text of `model_to_string`."""

    name = "lightgbm"

    def holds(self, value: object) -> bool:
        """Say whether a value is a booster."""
        return isinstance(value, lgb.Booster)

    def dump(self, value: lgb.Booster) -> Part:
        """Return the text of all rounds, and what it does not tell."""
        text = value.model_to_string(num_iteration=-1)
        state = {
            "best_iteration": value.best_iteration,
            "best_score": {k: dict(v) for k, v in value.best_score.items()},
        }
        return Part({_TEXT: text.encode()}, state)

    def load(self, part: Part) -> lgb.Booster:
        """Return the booster, which has no training data any more."""
        text = part.files[_TEXT].decode()
        check_booster_text(text)
        booster = lgb.Booster(model_str=text)
        booster.best_iteration = part.state["best_iteration"]
        booster.best_score = part.state["best_score"]
        return booster


class XGBoostParts:
    """Boosters of XGBoost, in its binary JSON."""

    name = "xgboost"

    def holds(self, value: object) -> bool:
        """Say whether a value is a booster, without importing the library."""
        xgboost = sys.modules.get("xgboost")
        return xgboost is not None and isinstance(value, xgboost.Booster)

    def dump(self, value: Any) -> Part:
        """Return the model, and the number of threads that it may take."""
        settings = json.loads(value.save_config())["learner"]["generic_param"]
        model = bytes(value.save_raw("ubj"))
        return Part({_UBJ: model}, {"nthread": int(settings["nthread"])})

    def load(self, part: Part) -> Any:
        """Return the booster."""
        try:
            import xgboost  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            msg = "it holds boosters of XGBoost, which is not installed."
            raise StorageError(msg) from error
        booster = xgboost.Booster()
        booster.load_model(bytearray(part.files[_UBJ]))
        booster.set_param({"nthread": int(part.state["nthread"])})
        return booster
