"""Saving a model to one file, and loading it."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

from calibration._validation import check_list, check_number, check_path
from calibration.storage.archive import pack_members, read_archive, write_archive
from calibration.storage.budget import Budget
from calibration.storage.errors import StorageError, errors_of, refuse, refusing
from calibration.storage.native import check_native
from calibration.storage.nodes import SCHEMA, share_nodes
from calibration.storage.registry import Registry, name_of
from calibration.storage.schema import Schema, find_loaded
from calibration.storage.trees import check_tables, walk_objects
from calibration.storage.twins import Twins
from calibration.storage.upgrades import complete_state

_PARTS = ("loader", "module", "class")


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    packages: Sequence[str] = ("calibration",),
) -> None:
    """Write a model to a file, all of it or nothing.

    Parameters
    ----------
    model : object
        Of a class of the packages.
    path : path-like
        Replaced if it is there.
    packages : sequence of str
        Whose classes are written attribute by attribute.

    Raises
    ------
    StorageError
        If the model holds functions that have no name, or anything else that cannot
        be saved.
    """
    target = check_path(path)
    registry = Registry(packages)
    twins = Twins(registry)
    try:
        twin = twins.make(model, "model")
        members, cost = _write(twin, registry)
    except RecursionError as error:
        msg = "`model` is nested too deeply, or holds itself."
        raise StorageError(msg) from error
    except Exception as error:
        for place, leaf in twins.leaves:
            _blame(leaf, place, registry)
        msg = f"`model` cannot be saved ({error})."
        raise StorageError(msg) from error
    write_archive(target, members, cost)


def load_model(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str | type] = (),
    max_memory: float | None = None,
    packages: Sequence[str] = ("calibration",),
) -> Any:
    """Return the model in a file.

    Nothing in the file is run. Classes are ours, or those of scikit-learn, LightGBM
    and XGBoost, or `trusted`.

    Parameters
    ----------
    path : path-like
    trusted : sequence of str or type
        Further types that the file may hold, such as those of a library of your own.
    max_memory : float, optional
        Most bytes that reading may take, about. Default 256 MB and 100 times the size
        of the file.
    packages : sequence of str
        Whose classes the file may name.

    Returns
    -------
    object

    Raises
    ------
    StorageError
        If the file is no saved model, damaged, or of a newer format, or holds types
        that are not trusted, or takes more memory than it may.
    """
    target = check_path(path)
    listed = check_list(trusted, "trusted", "names or types")
    known = [one if isinstance(one, str) else name_of(one) for one in listed]
    if max_memory is not None:
        check_number(max_memory, "max_memory", 0.0, open_low=True)
    with errors_of(target):
        members, budget = read_archive(target, max_memory)
        # A description that is not ours may go wrong in any way.
        with refusing("its description makes no sense ({kind}: {error}).", Exception):
            return _read(members, known, Registry(packages), budget)


def _write(twin: Any, registry: Registry) -> tuple[dict[str, bytes], int]:
    """Return the members of a file, if all that it names can be found again.

    And the bytes of memory that reading them takes.
    """
    from skops import io as skops

    with zipfile.ZipFile(io.BytesIO(skops.dumps(twin))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = share_nodes(members)
    budget = Budget(math.inf)
    budget.spend_unpacking(sum(map(len, members.values())))
    schema = Schema(members, registry, budget)
    for name in sorted(schema.refused()):
        if find_loaded(*name.rsplit(".", 1)) is None:
            refuse(f"it holds {name}, which cannot be found by its name")
    schema.check()
    return members, budget.spent


def _blame(leaf: Any, place: str, registry: Registry) -> None:
    """Say so, with its place, if a part is what cannot be saved."""
    try:
        _write(leaf, registry)
    except Exception as error:
        msg = f"`{place}` cannot be saved ({error}), got {leaf!r:.120}."
        raise StorageError(msg) from error


def _read(
    members: dict[str, bytes], trusted: list[str], registry: Registry, budget: Budget
) -> Any:
    from skops import io as skops

    schema = Schema(members, registry, budget)
    names = schema.refused()
    loader, *root = (schema.root[f"__{part}__"] for part in _PARTS)
    if registry.find(*root) is None or loader == "TypeNode":
        refuse(
            f"it holds {'.'.join(root)!r}, and here only models of "
            f"{' and '.join(registry.packages)} are loaded."
        )
    data = pack_members({**members, SCHEMA: schema.text()})
    refused = names.difference(trusted)
    if not refused and names:
        # What is trusted may have parts that only skops knows of, such as methods.
        refused = set(skops.get_untrusted_types(data=data)) - schema.names
        refused = refused.difference(trusted)
    if refused:
        listed = sorted(refused)
        refuse(
            f"it holds {', '.join(listed)}, which are not trusted. If you know who "
            f"wrote the file, load it with `trusted={listed!r}`."
        )
    schema.check()
    model = skops.loads(data, trusted=[*schema.names, *trusted])
    for value in walk_objects(model):
        check_tables(value)
        check_native(value)
        if type(value) in registry:
            state = complete_state(type(value), vars(value))
            object.__setattr__(value, "__dict__", state)
            # What checks its fields when it is made checks them here.
            parameters = getattr(type(value), "__dataclass_params__", None)
            if parameters is not None and parameters.frozen:
                getattr(value, "__post_init__", lambda: None)()
    return model
