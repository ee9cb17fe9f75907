"""The messy file of claims: one run, the exposure kept, every odd cell listed."""

import re

import numpy as np
import pandas as pd
import pytest

from calibration import CalibrationWarning
from localexpert.reading import ColumnReader
from localexpert.reading.files import read_table
from tests.localexpert.reading.claims import CITIES, EXPOSURE, write_claims


def test_claims_are_read_at_once(tmp_path):
    odd = write_claims(tmp_path / "claims.csv")
    with pytest.warns(CalibrationWarning, match="read as cp1252"):
        frame = read_table(str(tmp_path / "claims.csv"))
    with pytest.warns(CalibrationWarning) as caught:
        reader = ColumnReader("Aufwand").fit(frame)
    said = " ".join(str(one.message) for one in caught)
    kinds = {rule.name: rule.kind for rule in reader.rules_}
    assert kinds == {
        "Schaden-Nr.": "dropped",
        "Datum": "date",
        "Ort": "category",
        "Exposure in T€": "number",
        "Anteil": "number",
        "Größe": "number",
        "Vorschuss": "number",
    }
    listed = {(cell.column, cell.text): cell for cell in reader.odd_cells_}
    assert set(listed) == set(odd)
    for key, lines in odd.items():
        cell = listed[key]
        assert (cell.count, cell.where.split()[1]) == (len(lines), str(min(lines)))
        assert re.search(rf"{re.escape(repr(cell.text))} \({cell.count} rows?,", said)
    assert "--missing" not in said
    features = reader.transform(frame)
    assert features["Exposure in T€"].isna().sum() == sum(EXPOSURE.values())
    assert features["Ort"].isna().sum() == sum(CITIES.values())
    assert set(features["Ort"].cat.categories) == {"Bad Tölz", "Köln", "München", "Ulm"}
    assert features["Exposure in T€"].max() < 10_000
    assert features["Anteil"].between(0, 100).all()
    np.testing.assert_allclose(
        features["Vorschuss"], 0.2 * reader.read_target(frame), atol=0.006
    )
    assert features["Datum"].dt.year.isin([2023, 2024]).all()
    # A new file with decimal points is read alike.
    plain = frame.replace(",", ".", regex=True)
    plain.attrs = {"decimal": "."}
    pd.testing.assert_frame_equal(reader.transform(plain), features)
