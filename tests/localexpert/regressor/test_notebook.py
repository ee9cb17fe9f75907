"""What notebooks show of a regressor: scikit-learn's page, and what its fit chose."""

import re
from xml.etree import ElementTree

import pandas as pd

from localexpert import LocalExpertRegressor


def test_regressors_show_what_was_chosen(rng):
    X = pd.DataFrame({"<b>&": rng.uniform(size=60)})
    y = X["<b>&"] + rng.normal(size=60)
    model = LocalExpertRegressor(effort="quick", monotone={"<b>&": 1}, cv=2)
    assert "Chosen by fit" not in model._repr_mimebundle_()["text/html"]
    page = model.fit(X, y)._repr_mimebundle_()["text/html"]
    (chosen,) = re.findall("<table><caption>Chosen by fit</caption>.*$", page)
    cells = list(ElementTree.fromstring(chosen).itertext())
    assert {"target", "continuous", "<b>& +1", *model.report_.choices} <= set(cells)
    for line in str(model.report_).splitlines():
        assert line.split(maxsplit=1)[1] in cells
