"""Downloads, only ever on request, through torchvision (which checks what it gets)."""

from __future__ import annotations

from pathlib import Path

from fedpcd_cli.api import DataError


def download(torchvision_class: str, root: Path) -> None:
    """Fetch a dataset's official files into torchvision's layout below `root`.

    Args:
        torchvision_class: Name of the class in `torchvision.datasets`.
        root: Created if missing.

    Raises:
        DataError: The network or the disk failed, or the files are not the official ones.
    """
    from torchvision import datasets

    try:
        getattr(datasets, torchvision_class)(root=root, download=True)
    except (OSError, RuntimeError) as error:  # URLError is an OSError; a wrong checksum is a RuntimeError
        raise DataError(
            f"data.download: fetching {torchvision_class} to {root} failed: {error}.",
            hint="Check the network, or copy the files from another machine and set data.root.",
        ) from error
