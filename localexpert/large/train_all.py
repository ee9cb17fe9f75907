"""`train_all`: centre, scale and experts that go on learning from all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from localexpert._validation import check_seed
from localexpert.experts import SharedBoosting
from localexpert.large.all_rows import AllRows, JudgeRows
from localexpert.large.expert_boosting import boost_experts
from localexpert.large.frame_boosting import refine_frame
from localexpert.large.learn_pass import LearnPass
from localexpert.large.learning_curve import mean_crps
from localexpert.large.passes import Runner
from localexpert.large.row_sample import RowSample
from localexpert.large.stages import leaves_of
from localexpert.large.unseen_rows import Block, UnseenRows
from localexpert.progress import current_progress

# Fewer rows in a half teach nothing that the sample has not.
_LEAST_ROWS = 1000


def check_boosted(model: Any) -> None:
    """Refuse a model whose experts cannot go on learning from all rows.

    Parameters
    ----------
    model : LocalExpertRegressor
    """
    roads = [] if isinstance(model.roads, str) else model.roads
    given = list(roads) if isinstance(roads, list | tuple) else [roads]
    for one in [model, *given]:
        expert = getattr(one, "expert", None)
        plain = isinstance(one.strategy, str) and one.strategy in ("auto", "shared")
        if expert is None and (plain or isinstance(one.strategy, SharedBoosting)):
            continue
        got = repr(one.strategy) if expert is None else type(expert).__name__
        of = getattr(one, "name", type(one).__name__)
        msg = (
            '`train` must be "sample" where experts are no boosting of all thresholds, '
            f"which goes on part by part, got {got} of {of}."
        )
        raise ValueError(msg)


def train_all(
    unseen: UnseenRows, runner: Runner, judges: RowSample, n_parts: int
) -> Any:
    """Let a model's boosters go on with the rows beyond its sample.

    Centres and scales learn what is left of the target, out of fold, in two halves of
    the rows; then boosted experts learn anew in the refined coordinate. What lowers
    the CRPS of the judges is kept.

    Parameters
    ----------
    unseen : UnseenRows
        With the model, which is changed in place.
    runner : Runner
    judges : RowSample
        Rows that neither the sample nor the halves have.
    n_parts : int

    Returns
    -------
    LocalExpertRegressor
        The model; its report has the stage "all rows".
    """
    model = unseen.model
    table = model.reader_.read(judges.frame)
    job = LearnPass(unseen)
    placed = job.place(Block(table, judges.y, judges.weight, judges.hashes))
    held = JudgeRows(table, judges.y, judges.weight, placed)
    with TemporaryDirectory(prefix="localexpert-") as folder:
        rows = AllRows.gather(
            runner.stream(job, n_parts),
            held,
            model.reader_.categories,
            Path(folder),
        )
        least = min(half.scratch.n_rows for half in rows.halves)
        told: dict[str, Any] = {
            "chosen": f"sample, for {least} more rows in a half are too few"
        }
        if least >= _LEAST_ROWS:
            with current_progress().stage("boosting"):
                told = _Training(model, rows, judges).run()
    model.report_ = model.report_.add("all rows", told)
    return model


class _Training:
    """The training of one model, stage after stage, each judged by its forecasts."""

    def __init__(self, model: Any, rows: AllRows, judges: RowSample):
        self.model, self.rows, self.judges = model, rows, judges
        self.leaves = leaves_of(model.forecaster_)
        self.seed = check_seed(model.random_state)

    def run(self) -> dict[str, Any]:
        """Train, keep what forecasts the judges best, and say what it is.

        Each stage builds on those before it.
        """
        stages: dict[str, Callable[[], None]] = {
            "sample": lambda: None,
            "frames": self._refine_frames,
            "experts": self._teach_experts,
            "boosted experts alone": self._leave_boosting,
        }
        losses: dict[str, float] = {}
        best, state = "", _State.of(self.leaves)
        for name, go_on in stages.items():
            before = _State.of(self.leaves)
            go_on()
            after = _State.of(self.leaves)
            if losses and after.is_same(before):
                continue
            losses[name] = mean_crps(self.model, self.judges)
            if not best or losses[name] < losses[best]:
                best, state = name, after
        state.restore(self.leaves)
        return {
            "chosen": f"{best}, of {self.rows.n_rows} more rows",
            "losses": losses,
            "roads": [self._describe(leaf) for leaf in self.leaves],
        }

    def _refine_frames(self) -> None:
        """Let centres and scales go on."""
        for number, leaf in enumerate(self.leaves):
            if leaf.frame.kind_ is not None:
                leaf.frame.refinement_ = refine_frame(
                    leaf.frame, number, self.rows, self.model.n_jobs, self.seed
                )
        self.rows.forget_bins()

    def _teach_experts(self) -> None:
        """Boost the experts of all thresholds anew."""
        for number, leaf in enumerate(self.leaves):
            pool = leaf.experts
            for name, one in pool.fitted_.items():
                if isinstance(one, SharedBoosting):
                    new = boost_experts(
                        one, leaf, number, self.rows, self.model.n_jobs, self.seed
                    )
                    pool.fitted_ = {**pool.fitted_, name: new}

    def _leave_boosting(self) -> None:
        """Leave out experts that know no more than the sample."""
        for leaf in self.leaves:
            pool = leaf.experts
            boosted = {
                name: one
                for name, one in pool.fitted_.items()
                if isinstance(one, SharedBoosting)
            }
            if boosted and len(boosted) < len(pool.fitted_):
                total = sum(pool.weights_[name] for name in boosted)
                pool.fitted_ = boosted
                pool.weights_ = {n: pool.weights_[n] / total for n in boosted}

    @staticmethod
    def _describe(leaf: Any) -> dict[str, Any]:
        """Return the rounds of a road's boosters, ready for JSON."""
        told = leaf.frame.refinement_
        rounds: dict[str, Any] = {} if told is None else told.choices()
        for name, one in leaf.experts.fitted_.items():
            if isinstance(one, SharedBoosting):
                rounds[name] = one.n_rounds_
        return rounds


@dataclass(frozen=True)
class _State:
    """What training changes of roads."""

    held: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, leaves: list[Any]) -> _State:
        return cls(
            tuple(
                (
                    leaf.frame.refinement_,
                    leaf.experts.fitted_,
                    leaf.experts.weights_,
                )
                for leaf in leaves
            )
        )

    def restore(self, leaves: list[Any]) -> None:
        """Put it back."""
        for leaf, (refinement, fitted, weights) in zip(leaves, self.held, strict=True):
            leaf.frame.refinement_ = refinement
            leaf.experts.fitted_ = fitted
            leaf.experts.weights_ = weights

    def is_same(self, other: _State) -> bool:
        """Say whether nothing was replaced."""
        pairs = zip(self.held, other.held, strict=True)
        return all(a is b for own, its in pairs for a, b in zip(own, its, strict=True))
