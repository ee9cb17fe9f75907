"""The messy file of claims through the shell: one run of each command is right."""
# For tests/localexpert/cli/test_claims.py: needs the commands on localexpert.reading.

import numpy as np
import pandas as pd

from localexpert import load
from tests.localexpert.cli.conftest import QUICK
from tests.localexpert.reading.claims import write_claims


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
    assert "Exposure in T€" in saved.reader.feature_names_
    ort = next(rule for rule in saved.reader.rules_ if rule.name == "Ort")
    assert "München" in ort.categories
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
