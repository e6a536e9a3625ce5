"""Loading a recipe's data, with progress, as `train` and `data` do alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from fedpcd_cli.data.federation import Federation
    from fedpcd_cli.recipe.schema import Recipe


def load_federation(recipe: Recipe, messages: Console) -> Federation:
    """Load and deal a recipe's data, telling the message console what takes long.

    Raises:
        DataError: Files are missing or wrong, or the partition is impossible.
    """
    from fedpcd_cli.data.cache import cache_dir
    from fedpcd_cli.data.federation import build_federation
    from fedpcd_cli.views.steps import show_steps

    with show_steps(messages, "loading data") as progress:
        return build_federation(recipe.data, recipe.effective_data_seed, cache_dir=cache_dir(), progress=progress)
