"""Synthetic(α, β): generated clients whose models and inputs differ by known amounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedpcd_cli.components import Param
from fedpcd_cli.data.assemble import assemble_dataset
from fedpcd_cli.data.dataset import Dataset, DatasetSource, LoadContext
from fedpcd_cli.seeds import numpy_generator

N_FEATURES = 60
N_CLASSES = 10
_MIN_SAMPLES = 50


@dataclass(frozen=True, kw_only=True)
class Synthetic(DatasetSource):
    """Synthetic(α, β) of Li et al., "Federated Optimization in Heterogeneous Networks" (MLSys 2020), section 5.1.

    Client k has its own linear model: y = argmax softmax(W_k x + b_k), W_k and b_k ~ N(u_k, 1),
    u_k ~ N(0, α); its inputs are x ~ N(v_k, Σ), Σ = diag(j^-1.2), v_k ~ N(B_k, 1), B_k ~ N(0, β). Client sizes
    are 50 + lognormal(4, 2). α and β are standard deviations, as in the authors' generator; the paper writes
    N(0, α) without saying which. Client k depends on nothing but the data seed and k.
    """

    name: ClassVar[str] = "synthetic"
    summary: ClassVar[str] = "Synthetic(α, β) of Li et al. 2020: 60 features, 10 classes, natural owners"

    synthetic_alpha: Annotated[float, Param("How much local models differ.", symbol="α", ge=0, le=100)] = 1.0
    synthetic_beta: Annotated[float, Param("How much local inputs differ.", symbol="β", ge=0, le=100)] = 1.0
    identical: Annotated[
        bool, Param("One model and one input distribution for all clients (Synthetic-IID); α and β are unused.")
    ] = False
    generated_clients: Annotated[int, Param("How many owners are generated.", ge=1, le=100_000)] = 100
    max_client_samples: Annotated[
        int, Param("Cap on the heavy-tailed client sizes.", ge=_MIN_SAMPLES, le=10_000_000)
    ] = 10_000
    official_test_fraction: Annotated[
        float, Param("Share of each owner's samples in the official test set.", gt=0, lt=1)
    ] = 0.1

    def load(self, context: LoadContext) -> Dataset:
        """Generate float32 `[n, 60]`; owners are 0 to `generated_clients` - 1."""
        context.progress(f"generating {self.generated_clients} synthetic clients")
        shared = numpy_generator(context.data_seed, "synthetic", "shared")
        shared_model = (shared.normal(size=(N_CLASSES, N_FEATURES)), shared.normal(size=N_CLASSES))
        parts: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {"train": [], "test": []}
        for owner in range(self.generated_clients):
            rng = numpy_generator(context.data_seed, "synthetic", owner)
            inputs, targets = self._client(rng, shared_model)
            owners = np.full(len(targets), owner, dtype=np.int64)
            cut = len(targets) - max(1, round(self.official_test_fraction * len(targets)))
            cut = max(cut, 1)
            parts["train"].append((inputs[:cut], targets[:cut], owners[:cut]))
            parts["test"].append((inputs[cut:], targets[cut:], owners[cut:]))
        inputs, targets, owners = (
            np.concatenate(column) for column in zip(*parts["train"], *parts["test"], strict=True)
        )
        return assemble_dataset(
            name=self.name,
            inputs=inputs,
            targets=targets,
            n_train=sum(len(part[1]) for part in parts["train"]),
            class_names=[str(k) for k in range(N_CLASSES)],
            owners=owners,
        )

    def _client(
        self, rng: np.random.Generator, shared_model: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        n = min(int(rng.lognormal(4.0, 2.0)) + _MIN_SAMPLES, self.max_client_samples)
        if self.identical:
            weights, bias = shared_model
            center = np.zeros(N_FEATURES)
        else:
            model_mean = rng.normal(0.0, self.synthetic_alpha)  # u_k
            input_mean = rng.normal(0.0, self.synthetic_beta)  # B_k
            weights = rng.normal(model_mean, 1.0, size=(N_CLASSES, N_FEATURES))
            bias = rng.normal(model_mean, 1.0, size=N_CLASSES)
            center = rng.normal(input_mean, 1.0, size=N_FEATURES)
        scale = np.arange(1, N_FEATURES + 1) ** -0.6  # square root of the variances j^-1.2
        inputs = center + scale * rng.normal(size=(n, N_FEATURES))
        targets = np.argmax(inputs @ weights.T + bias, axis=1)  # softmax keeps the order
        return inputs.astype(np.float32), targets.astype(np.int64)
