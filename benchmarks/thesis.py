"""The experiments of Naeini's thesis, repeated with our calibrators.

    python benchmarks/thesis.py simulation            # tables 3, 7, 14, 15
    python benchmarks/thesis.py logistic --data DIR   # tables 4, 5
    python benchmarks/thesis.py sizes                 # figures 16 to 19
    python benchmarks/thesis.py histogram             # table 26
    python benchmarks/thesis.py sets --data DIR       # 8-13, 17-20, 22-25, figures 6-15
    python benchmarks/thesis.py --data DIR --images docs/images     # all, with pictures

Simulated: a disc in a ring ("circular") and four blobs ("XOR"), support vector machines
with linear, quadratic and RBF kernels, decision values through a sigmoid. Real: DIR
holds NAME.csv.gz files whose last column is the 0/1 target; at most 2000 rows of each,
5 folds; logistic regression, linear support vector machine and naive Bayes; calibrators
are fitted on scores of the training rows, as in the thesis, and on held-out ones. The
part `logistic` knows more than scores: intervals and features. RMSE is the root of the
Brier score; ECE and MCE have 10 bins of equal frequency, which never part equal
forecasts ("ECE"), part them and give both sides the event rate of all ("ECE ranks"), or
put those of class 0 first ("ECE thesis", its published code). Tables are printed as
reStructuredText. Rerun to resume; one JSON line per draw, or per set and classifier.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from records import Records
from thesis_logistic import print_logistic, run_logistic
from thesis_pictures import draw_ranks, draw_sizes
from thesis_sets import run_sets
from thesis_simulation import print_bars, run_histograms, run_simulation, run_sizes
from thesis_tables import (
    print_angles,
    print_changes,
    print_histograms,
    print_pairs,
    print_ranks,
    print_scores_compared,
    print_seconds,
    print_simulation,
    print_sizes,
    print_values,
)

PARTS = ("simulation", "logistic", "sizes", "histogram", "sets")


def run_part(part: str, records: Records, options: argparse.Namespace) -> None:
    """Run or resume one part, print its tables and draw its pictures."""
    images = options.images
    if part == "simulation":
        rows = run_simulation(records, options.draws)
        print_simulation(rows)
        print_angles(rows)
        print_bars(rows)
    elif part == "logistic":
        print_logistic(run_logistic(records, options.data, options.draws))
    elif part == "sizes":
        rows = run_sizes(records, options.draws)
        print_sizes(rows)
        if images:
            draw_sizes(rows, images)
    elif part == "histogram":
        print_histograms(run_histograms(records, options.draws))
    else:
        rows = run_sets(records, options.data, options.sets)
        print_pairs(rows)
        print_ranks(rows)
        print_changes(rows)
        print_scores_compared(rows)
        print_values(rows)
        print_seconds(rows)
        if images:
            draw_ranks(rows, images)


def main() -> None:
    """Run or resume the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--data", type=Path, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--draws", type=int, default=10, help="of a simulation")
    parser.add_argument("--images", type=Path, help="folder to draw pictures into")
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    parts = options.parts or list(PARTS)
    if set(parts) - set(PARTS):
        parser.error(f"parts are {', '.join(PARTS)}, got {' '.join(parts)}")
    if "sets" in parts and options.data is None:
        parser.error("--data is needed for the part `sets`")
    for part in parts:
        records = Records("thesis", f"{options.run}-{part}", fresh=options.fresh)
        run_part(part, records, options)


if __name__ == "__main__":
    main()
