"""The messy file of claims through the shell: one run of each command is right."""
# For tests/localexpert/cli/test_claims.py: needs the commands on localexpert.reading.

import numpy as np
import pandas as pd

from localexpert import load
from localexpert.reading.files import FileFormat, read_table
from tests.localexpert.cli.conftest import QUICK
from tests.localexpert.reading.claims import CITIES, EXPOSURE, write_claims


def test_claims_go_through_the_shell_at_once(run, tmp_path):
    odd = write_claims(tmp_path / "claims.csv")
    write_claims(tmp_path / "new.csv", n=300, seed=1)
    model = tmp_path / "m.zip"
    words = ["--target", "Aufwand", *QUICK, "--out", model]
    code, _, lines = run("fit", tmp_path / "claims.csv", *words)
    assert code == 0
    said = "\n".join(lines)
    for (_, text), places in odd.items():
        assert f"{text!r} ({len(places)} row" in said
        assert f"first in line {min(places)} of" in said
    assert "--missing" not in said
    saved = load(model)
    rules = {rule.name: rule for rule in saved.reader.rules_}
    assert " ".join(rule.kind for rule in rules.values()) == (
        "dropped date category number number number number"
    )
    assert rules["Ort"].categories == ("Bad Tölz", "Köln", "München", "Ulm")
    listed = {(cell.column, cell.text): cell.count for cell in saved.reader.odd_cells_}
    assert listed == {key: len(lines) for key, lines in odd.items()}
    frame = read_table(str(tmp_path / "claims.csv"), FileFormat(encoding="cp1252"))
    features = saved.reader.transform(frame, odd=[])
    assert features["Exposure in T€"].isna().sum() == sum(EXPOSURE.values())
    assert features["Ort"].isna().sum() == sum(CITIES.values())
    y = saved.reader.read_target(frame)
    np.testing.assert_allclose(features["Vorschuss"], 0.2 * y, atol=0.006)
    # A new file with decimal points is read alike.
    plain = frame.replace(",", ".", regex=True)
    plain.attrs = {"decimal": "."}
    pd.testing.assert_frame_equal(saved.reader.transform(plain, odd=[]), features)
    # The raw table in Python gives the forecasts of the shell.
    out = tmp_path / "out.csv"
    words = ["--quantiles", ".5", "--out", out]
    code, _, lines = run("predict", model, tmp_path / "new.csv", *words)
    assert code == 0, lines
    raw = pd.read_csv(tmp_path / "new.csv", sep=";", dtype=str, encoding="cp1252")
    got = pd.read_csv(out, sep=";", decimal=",")["q0.5"]
    want = saved.predict_dist(raw).quantiles([0.5])[:, 0]
    np.testing.assert_allclose(got, want, rtol=1e-9)
    page = tmp_path / "r.html"
    code, *_ = run("report", model, tmp_path / "new.csv", "--out", page)
    assert code == 0
    text = page.read_text(encoding="utf-8")
    for cell in saved.reader.odd_cells_:
        assert cell.text in text
