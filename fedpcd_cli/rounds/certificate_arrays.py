"""A certificate as plain arrays and back; every damaged entry is named."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fedpcd_cli.errors import StoreError
from fedpcd_cli.rounds.outcome import Residuals, SolveStatus

if TYPE_CHECKING:
    from fedpcd_cli.rounds.certificate import Certificate

FORMAT_VERSION = 1
_INTEGERS = ("client_ids", "source_rounds")
_REALS = (
    "weights",
    "norms",
    "scales",
    "reference_products",
    "thresholds",
    "multipliers",
    "slacks",
)
_NUMBERS = (
    "reference_norm",
    "mean_norm",
    "direction_norm",
    "tau",
    "tau_used",
    "epsilon",
    "gram_correction",
    "seconds",
)
_TEXTS = ("normalization", "on_infeasible", "solver")
_FLAGS = ("primary", "feasible")


def pack(certificate: Certificate) -> dict[str, np.ndarray]:
    """Return the arrays of a certificate: vectors by name, the Gram matrix's lower triangle, one JSON text."""
    arrays = {name: np.asarray(getattr(certificate, name), dtype=np.int64) for name in _INTEGERS}
    arrays |= {name: np.asarray(getattr(certificate, name), dtype=np.float64) for name in _REALS}
    arrays["active"] = np.asarray(certificate.active, dtype=np.bool_)
    arrays["gram_lower"] = certificate.gram[np.tril_indices(certificate.size)]
    if certificate.farkas is not None:
        arrays["farkas"] = np.asarray(certificate.farkas, dtype=np.float64)
    facts: dict[str, Any] = {"format_version": FORMAT_VERSION, "round_index": int(certificate.round_index)}
    facts |= {name: float(getattr(certificate, name)) for name in _NUMBERS}
    facts |= {name: getattr(certificate, name) for name in _TEXTS}
    facts |= {name: bool(getattr(certificate, name)) for name in _FLAGS}
    facts["status"] = certificate.status.word
    facts["residuals"] = dataclasses.asdict(certificate.residuals)
    facts["dropped_zero_ids"] = [int(client) for client in certificate.dropped_zero_ids]
    arrays["facts"] = np.array(json.dumps(facts, allow_nan=False))
    return arrays


def unpack(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the fields of the certificate that these arrays hold.

    Raises:
        StoreError: An entry is missing, has the wrong shape or type, or was written by a newer version.
    """
    facts = _facts(arrays)
    size = int(_entry(arrays, "client_ids").size)
    fields: dict[str, Any] = {name: _vector(arrays, name, size, "iu", np.int64) for name in _INTEGERS}
    fields |= {name: _vector(arrays, name, size, "f", np.float64) for name in _REALS}
    fields["active"] = _vector(arrays, "active", size, "b", np.bool_)
    fields["farkas"] = _vector(arrays, "farkas", size, "f", np.float64) if "farkas" in arrays else None
    lower = _vector(arrays, "gram_lower", size * (size + 1) // 2, "f", np.float64)
    gram = np.zeros((size, size))
    gram[np.tril_indices(size)] = lower
    fields["gram"] = np.tril(gram, -1).T + gram
    fields |= {name: _fact(facts, name, (int, float)) for name in _NUMBERS}
    fields |= {name: _fact(facts, name, (str,)) for name in _TEXTS}
    fields |= {name: _fact(facts, name, (bool,)) for name in _FLAGS}
    fields["round_index"] = _fact(facts, "round_index", (int,))
    fields["dropped_zero_ids"] = tuple(_fact(facts, "dropped_zero_ids", (list,)))
    try:
        fields["status"] = SolveStatus[str(_fact(facts, "status", (str,))).upper()]
        fields["residuals"] = Residuals(**_fact(facts, "residuals", (dict,)))
    except (KeyError, TypeError) as error:
        raise _damaged(f"its status or residuals are not known ({error})") from None
    return fields


def _facts(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    text = _entry(arrays, "facts")
    if text.dtype.kind != "U" or text.shape != ():
        raise _damaged(f"entry 'facts' must be one text; found {text.dtype} {text.shape}")
    try:
        facts = json.loads(str(text))
    except json.JSONDecodeError as error:
        raise _damaged(f"entry 'facts' is not JSON ({error})") from None
    if not isinstance(facts, dict):
        raise _damaged("entry 'facts' must be a JSON object")
    version = _fact(facts, "format_version", (int,))
    if version > FORMAT_VERSION:
        raise StoreError(
            f"The certificate has format {version}; this fedpcd reads up to {FORMAT_VERSION}.",
            hint="Use the fedpcd that wrote it, or a newer one.",
        )
    return facts


def _fact(facts: Mapping[str, Any], name: str, kinds: tuple[type, ...]) -> Any:
    if name not in facts:
        raise _damaged(f"'{name}' is missing from its facts")
    value = facts[name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _damaged(f"'{name}' must be {' or '.join(kind.__name__ for kind in kinds)}; found {value!r}")
    return value


def _entry(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    try:
        return np.asarray(arrays[name])
    except KeyError:
        raise _damaged(f"entry '{name}' is missing") from None


def _vector(
    arrays: Mapping[str, np.ndarray], name: str, size: int, kinds: str, dtype: type[np.generic]
) -> np.ndarray:
    values = _entry(arrays, name)
    if values.shape != (size,) or values.dtype.kind not in kinds:
        raise _damaged(
            f"entry '{name}' must be {dtype.__name__} [{size}]; found {values.dtype} {list(values.shape)}"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise _damaged(f"entry '{name}' must be finite; found NaN or Inf")
    return values.astype(dtype)


def _damaged(what: str) -> StoreError:
    return StoreError(
        f"The certificate is damaged: {what}.",
        hint="Restore the file from a copy, or train the run again.",
    )
