"""A messy table of claims, as an office has it: everything odd in it is known."""

import numpy as np

# Odd cells of the exposure: text, count.
EXPOSURE = {"k.A.": 8, "#NV": 6, "-": 5, "???": 4, "99999999": 2}
# Gaps in the column of cities.
CITIES = {"k.A.": 2, "???": 2, "#NV": 1}
HEADER = "Schaden-Nr.;Datum;Ort;Exposure in T€;Anteil;Größe;Vorschuss;Aufwand"


def write_claims(path, n=2000, seed=0):
    """Write 2 000 claims and 100 of them again; return the odd cells by their lines."""
    rng = np.random.default_rng(seed)
    exposure = np.round(rng.gamma(2.0, 50.0, n) + 1.0, 2)
    names = ["München", "Köln", "Bad Tölz", "Ulm"]
    cities = rng.choice(names, n, p=[0.4, 0.3, 0.2, 0.1])
    size = rng.integers(1, 5000, n)
    y = np.round(exposure * (1.0 + (cities == "Köln")) * rng.gamma(4.0, 0.25, n), 2)
    days = np.datetime64("2023-01-01") + rng.integers(0, 700, n)
    share = np.round(100.0 * rng.uniform(size=n), 1)
    odd = {}
    texts = {
        "Exposure in T€": [_comma(x) for x in exposure],
        "Ort": list(map(str, cities)),
    }
    for name, found in (("Exposure in T€", EXPOSURE), ("Ort", CITIES)):
        rows = iter(rng.permutation(n - 100)[: sum(found.values())].tolist())
        for text, count in found.items():
            here = [next(rows) for _ in range(count)]
            odd[name, text] = [row + 2 for row in here]
            for row in here:
                texts[name][row] = text
    lines = [
        f"S-{2023 + i % 2}-{i:05d};{days[i].item():%d.%m.%Y};{texts['Ort'][i]};"
        f"{texts['Exposure in T€'][i]};{_comma(share[i])} %;{size[i]};"
        f"{_comma(0.2 * y[i])};{_comma(y[i])}"
        for i in range(n)
    ]
    text = "\n".join([HEADER, *lines, *lines[n - 100 :]]) + "\n"
    path.write_text(text, encoding="cp1252")
    return odd


def _comma(number):
    return f"{number:.2f}".replace(".", ",")
