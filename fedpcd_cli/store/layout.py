"""Where everything of a run lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FORMAT_VERSION = 1
"""Raised when a reader of today could not understand a run of tomorrow."""


@dataclass(frozen=True)
class RunPaths:
    """The files of one run directory."""

    root: Path

    @property
    def recipe(self) -> Path:
        """The resolved recipe, every default written out."""
        return self.root / "recipe.yaml"

    @property
    def environment(self) -> Path:
        """Versions, device, threads, plug-ins, data notes."""
        return self.root / "environment.json"

    @property
    def status(self) -> Path:
        return self.root / "status.json"

    @property
    def partition(self) -> Path:
        return self.root / "partition.npz"

    @property
    def rounds(self) -> Path:
        """One line per round; equal runs have equal bytes."""
        return self.root / "rounds.jsonl"

    @property
    def timings(self) -> Path:
        """One line per round: seconds and memory, which no two runs share."""
        return self.root / "timings.jsonl"

    @property
    def evaluations(self) -> Path:
        """One line per evaluation, with every client's values."""
        return self.root / "evaluations.jsonl"

    def certificate(self, round_index: int) -> Path:
        return self.root / "certificates" / f"round-{round_index:06d}.npz"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoint"

    @property
    def final_model(self) -> Path:
        """The parameters after the last round, by name, in safetensors format."""
        return self.root / "model.safetensors"


def run_directory(output_root: Path, recipe_name: str, aggregator: str, seed: int, digest: str) -> Path:
    """Return `<root>/<recipe>/<aggregator>-s<seed>-<digest>`: equal content, equal directory."""
    return output_root / recipe_name / f"{aggregator}-s{seed}-{digest[:8]}"
