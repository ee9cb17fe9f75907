"""Every check of what a user passes in, and the wording of every refusal and label.

A message names the parameter in backticks, the rule, and the value got.
"""

from calibration._validation.arrays import (
    as_numbers,
    check_in_unit,
    check_same_length,
    check_span,
    check_vector,
    count_rows,
    find_no_number,
    is_gap,
)
from calibration._validation.class_forecasts import (
    check_class_forecasts,
    check_class_names,
    check_columns,
    check_finite,
    check_rows,
    check_table,
)
from calibration._validation.forecasts import (
    check_forecasts,
    check_labels,
    check_probabilities,
)
from calibration._validation.parameters import (
    check_ax,
    check_callable,
    check_choice,
    check_flag,
    check_integer,
    check_level,
    check_list,
    check_mapping,
    check_n_jobs,
    check_number,
    check_optional_seed,
    check_path,
    check_verbose,
    is_auto,
    make_rng,
)
from calibration._validation.texts import (
    plain_label,
    show,
)
from calibration._validation.weights import (
    check_weights,
    told_of_light,
    warn_of_light,
)

__all__ = [
    "as_numbers",
    "check_ax",
    "check_callable",
    "check_choice",
    "check_class_forecasts",
    "check_class_names",
    "check_columns",
    "check_finite",
    "check_flag",
    "check_forecasts",
    "check_in_unit",
    "check_integer",
    "check_labels",
    "check_level",
    "check_list",
    "check_mapping",
    "check_n_jobs",
    "check_number",
    "check_optional_seed",
    "check_path",
    "check_probabilities",
    "check_rows",
    "check_same_length",
    "check_span",
    "check_table",
    "check_vector",
    "check_verbose",
    "check_weights",
    "count_rows",
    "find_no_number",
    "is_auto",
    "is_gap",
    "make_rng",
    "plain_label",
    "show",
    "told_of_light",
    "warn_of_light",
]
