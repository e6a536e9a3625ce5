"""One run from recipe to run directory."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from fedpcd_cli.engine.environment import describe_environment, peak_memory_mib
from fedpcd_cli.engine.evaluate import Evaluation
from fedpcd_cli.engine.interrupt import StopRequestedError, stop_on_signals
from fedpcd_cli.engine.simulate import RoundResult, Simulation
from fedpcd_cli.errors import DivergedError, FedPCDError, InterruptedRunError, StoreError
from fedpcd_cli.store.checkpoint import load_checkpoint
from fedpcd_cli.store.status import RunState
from fedpcd_cli.store.writer import RunWriter

if TYPE_CHECKING:
    from fedpcd_cli.data.federation import Federation
    from fedpcd_cli.recipe.load import ResolvedRecipe


class RunObserver(Protocol):
    """Whoever shows a run while it goes on."""

    def started(self, environment: Mapping[str, Any], first_round: int) -> None:
        """Everything is loaded; `first_round` is the round about to run."""

    def round_finished(self, result: RoundResult) -> None:
        """A round ended and is on disk."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """All clients were evaluated."""

    def warn(self, text: str) -> None:
        """Something the user should know."""


def params_digest(params: torch.Tensor) -> str:
    """Return a hash of the parameters' bytes: equal models, equal digests."""
    return hashlib.blake2b(params.detach().cpu().contiguous().numpy().tobytes(), digest_size=16).hexdigest()


def execute(
    resolved: ResolvedRecipe,
    recipe_text: str,
    federation: Federation,
    root: Path,
    observer: RunObserver,
    *,
    resume: bool = False,
) -> None:
    """Run a recipe into the directory `root`.

    Args:
        resolved: The recipe.
        recipe_text: The resolved recipe as YAML, written into the directory.
        federation: Its data, dealt.
        root: The run directory; emptied first unless `resume`.
        observer: Told about every step.
        resume: Continue after the newest whole checkpoint.

    Raises:
        DivergedError: Training left the finite numbers.
        InterruptedRunError: A signal arrived; the rounds before it are kept.
        StoreError: A file can't be written, or there is nothing to resume.
    """
    from fedpcd_cli.data.records import partition_to_arrays

    with stop_on_signals() as stop:
        simulation = Simulation(resolved.recipe, federation, stop.check)
        if resume:
            _restore(simulation, root, observer)
        writer = RunWriter(root, resolved.recipe.rounds, simulation.round_index if resume else None)
        environment = describe_environment(simulation, federation)
        writer.write_setup(recipe_text, environment, partition_to_arrays(federation.partition))
        try:
            observer.started(environment, simulation.round_index + 1)
            _loop(simulation, writer, observer)
            writer.write_final_model(simulation.model.state_tensors(simulation.params))
            writer.write_state(RunState.FINISHED)
        except (StopRequestedError, KeyboardInterrupt) as error:
            if isinstance(error, StopRequestedError):
                writer.write_checkpoint(simulation.state())
            writer.write_state(RunState.INTERRUPTED)
            raise InterruptedRunError(
                f"interrupted after round {simulation.round_index} of {resolved.recipe.rounds}; "
                f"everything up to it is in {root}.",
                hint="Go on with --resume, or start again with --force.",
            ) from None
        except DivergedError as error:
            if simulation.is_consistent:
                writer.write_checkpoint(simulation.state())
            writer.write_state(RunState.DIVERGED, error.message)
            raise
        except Exception as error:
            message = error.message if isinstance(error, FedPCDError) else f"{type(error).__name__}: {error}"
            writer.write_state(RunState.FAILED, message)
            raise
        finally:
            writer.close()


def _loop(simulation: Simulation, writer: RunWriter, observer: RunObserver) -> None:
    recipe = simulation.recipe
    if simulation.round_index == 0:
        _evaluate(simulation, writer, observer)
        writer.write_checkpoint(simulation.state())
    last_checkpoint = time.monotonic()
    while simulation.round_index < recipe.rounds:
        result = simulation.run_round()
        timings = {**result.seconds, "peak_memory_mib": peak_memory_mib()}
        writer.write_round(result.record, result.certificate, timings)
        observer.round_finished(result)
        for warning in result.record.warnings:
            observer.warn(warning)
        is_last = simulation.round_index == recipe.rounds
        if is_last or simulation.round_index % recipe.evaluation.every == 0:
            _evaluate(simulation, writer, observer)
        if is_last or time.monotonic() - last_checkpoint >= recipe.output.checkpoint_seconds:
            writer.write_checkpoint(simulation.state())
            last_checkpoint = time.monotonic()


def _evaluate(simulation: Simulation, writer: RunWriter, observer: RunObserver) -> None:
    evaluation = simulation.evaluate()
    scores = [evaluation.scores, *([evaluation.personal] if evaluation.personal is not None else [])]
    if not all(math.isfinite(score.metrics.loss) for score in scores):
        raise DivergedError(
            f"round {simulation.round_index}: the test loss is not finite.", hint="Use a smaller local.lr."
        )
    writer.write_evaluation(evaluation, simulation.data.test_counts, params_digest(simulation.params))
    observer.evaluated(evaluation)


def _restore(simulation: Simulation, root: Path, observer: RunObserver) -> None:
    state, complaints = load_checkpoint(root / "checkpoint", simulation.device)
    for complaint in complaints:
        observer.warn(f"{complaint}; using the checkpoint before it")
    if state is None:
        raise StoreError(f"{root}: there is no whole checkpoint to resume from.", hint="Start with --force.")
    simulation.restore(state)
