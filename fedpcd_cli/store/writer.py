"""Writes one run directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedpcd_cli.errors import StoreError
from fedpcd_cli.rounds.record import RoundRecord
from fedpcd_cli.store.atomic import storage_errors, write_atomically, write_text
from fedpcd_cli.store.jsonl import JsonlWriter, truncate_after
from fedpcd_cli.store.layout import RunPaths
from fedpcd_cli.store.lock import FolderLock, empty_folder
from fedpcd_cli.store.status import RunState, write_status

if TYPE_CHECKING:
    import torch

    from fedpcd_cli.engine.evaluate import Evaluation, Scores
    from fedpcd_cli.rounds.certificate import Certificate


class RunWriter:
    """Owns the files of a run in progress.

    Args:
        root: The run directory; made if missing.
        n_rounds: T.
        keep_through: Records up to this round are kept, later ones dropped; None starts from nothing.

    Raises:
        StoreError: The directory can't be written.
        UsageError: Another process writes it.
    """

    def __init__(self, root: Path, n_rounds: int, keep_through: int | None = None) -> None:
        self.paths = RunPaths(root)
        self._n_rounds = n_rounds
        with storage_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(root)
            if keep_through is None:
                empty_folder(root)
            self.paths.certificate(0).parent.mkdir(exist_ok=True)
        if keep_through is not None:
            self._keep_records(keep_through)
        self._rounds = JsonlWriter(self.paths.rounds)
        self._timings = JsonlWriter(self.paths.timings)
        self._evaluations = JsonlWriter(self.paths.evaluations)
        self.round_index = keep_through or 0

    def _keep_records(self, last: int) -> None:
        """Drop what was written after the checkpoint.

        Raises:
            StoreError: Records from before it are missing: the run could be finished, but not told.
        """
        truncate_after(self.paths.timings, "round", last)
        rounds = truncate_after(self.paths.rounds, "round", last)
        evaluations = truncate_after(self.paths.evaluations, "round", last)
        for path, found, whole in (
            (self.paths.rounds, rounds, rounds == list(range(1, last + 1))),
            (self.paths.evaluations, evaluations, evaluations[:1] == [0]),
        ):
            if not whole:
                self._lock.release()
                raise StoreError(
                    f"{path}: must hold all records up to the checkpoint's round {last}; "
                    f"found {len(found)}{f', the last of round {found[-1]}' if found else ''}.",
                    hint="Run the recipe again with --force.",
                )

    def write_setup(
        self, recipe_text: str, environment: Mapping[str, Any], partition: Mapping[str, np.ndarray]
    ) -> None:
        """Write what is known before the first round."""
        write_text(self.paths.recipe, recipe_text)
        write_text(self.paths.environment, json.dumps(environment, indent=2, ensure_ascii=False) + "\n")
        write_arrays(self.paths.partition, partition)
        self.write_state(RunState.RUNNING)

    def write_round(
        self, record: RoundRecord, certificate: Certificate | None, timings: Mapping[str, float]
    ) -> None:
        """Append one round."""
        if certificate is not None:
            write_arrays(self.paths.certificate(record.round_index), certificate.to_arrays(), durable=False)
        self._timings.append({"round": record.round_index, **timings})
        self._rounds.append(record.as_dict())
        self.round_index = record.round_index

    def write_evaluation(self, evaluation: Evaluation, test_counts: np.ndarray, params_digest: str) -> None:
        """Append one evaluation with every client's values, those of personal models beside them."""
        record = {
            "round": evaluation.round_index,
            "params_digest": params_digest,
            "n_test": test_counts.tolist(),
            **_scores(evaluation.scores),
        }
        if evaluation.personal is not None:
            record["personal"] = {"n_unseen": evaluation.n_unseen, **_scores(evaluation.personal)}
        self._evaluations.append(record)

    def write_checkpoint(self, state: dict[str, Any]) -> None:
        """Save the state between two rounds; the records up to it reach the disk first."""
        from fedpcd_cli.store.checkpoint import save_checkpoint

        for log in (self._rounds, self._timings, self._evaluations):
            log.sync()
        save_checkpoint(self.paths.checkpoints, state["round_index"], state)
        self.write_state(RunState.RUNNING)

    def write_final_model(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Save the named parameters after the last round."""
        from safetensors.torch import save_file

        named = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        write_atomically(self.paths.final_model, lambda temporary: save_file(named, temporary))

    def write_state(self, state: RunState, message: str = "") -> None:
        """Write how far the run is and whether it still goes on."""
        write_status(self.paths.status, state, self.round_index, self._n_rounds, message)

    def close(self) -> None:
        for log in (self._rounds, self._timings, self._evaluations):
            log.close()
        self._lock.release()


def _scores(scores: Scores) -> dict[str, Any]:
    return {
        "metrics": scores.metrics.as_dict(),
        "n_correct": scores.n_correct.tolist(),
        "loss_sums": scores.loss_sums.tolist(),
    }


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], *, durable: bool = True) -> None:
    """Write named arrays as `.npz` (its CRCs tell a damaged file), atomically.

    Args:
        durable: Also flush the file to disk now. Files that a checkpoint makes good again need not.
    """

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    write_atomically(path, write, durable=durable)
