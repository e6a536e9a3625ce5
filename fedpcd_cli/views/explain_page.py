"""A round as one self-contained page: the panel and the table, solved anew in the browser for every tau."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

from fedpcd_cli.errors import UsageError
from fedpcd_cli.explain.run_facts import RunFacts
from fedpcd_cli.rounds.certificate import Certificate
from fedpcd_cli.views.explain_head import status_sentence

_ASSETS = "explain_assets"
_PARTS = ("page.css", "solver.js", "page.js")


def check_page_path(path: Path) -> None:
    """Refuse file names that no page can be written to.

    Raises:
        UsageError: The ending is unknown, or the path is a folder.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--html must end in .html or .htm; found '{path}'.")
    if path.is_dir():
        raise UsageError(f"--html must be a file; '{path}' is a folder.")


def write_page(page: str, path: Path) -> None:
    """Write a page, atomically.

    Raises:
        UsageError: The file can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.stem}-{os.getpid()}.html")
        try:
            temporary.write_text(page, encoding="utf-8")
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"--html {path} can't be written: {error}.") from error


def round_page(certificate: Certificate, facts: RunFacts) -> str:
    """Return the page of one round; nothing in it is loaded from anywhere."""
    text = asset("page.html")
    for name in _PARTS:
        text = text.replace(f"/*{name}*/", asset(name))
    # A script element ends at the first "</", whatever surrounds it.
    data = json.dumps(page_data(certificate, facts), ensure_ascii=False, allow_nan=False).replace("</", "<\\/")
    return text.replace("/*data*/", data)


def page_data(certificate: Certificate, facts: RunFacts) -> dict[str, Any]:
    """Return what the page solves and shows, exact to the last bit."""
    return {
        "recipe": facts.recipe,
        "rule": facts.rule,
        "seed": facts.seed,
        "round": certificate.round_index,
        "n_rounds": facts.n_rounds,
        "sentence": status_sentence(certificate),
        "tau": certificate.tau,
        "primary": certificate.primary,
        "relax": certificate.on_infeasible == "relax",
        "reference_norm": certificate.reference_norm,
        "mean_norm": certificate.mean_norm,
        "client_ids": certificate.client_ids.tolist(),
        "ages": certificate.ages.tolist(),
        "weights": certificate.weights.tolist(),
        "norms": certificate.norms.tolist(),
        "reference_products": certificate.reference_products.tolist(),
        "gram": certificate.gram.tolist(),
    }


def asset(name: str) -> str:
    """Return a part of the page that comes with the package."""
    return (resources.files("fedpcd_cli.views") / _ASSETS / name).read_text(encoding="utf-8")
