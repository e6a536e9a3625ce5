"""`python -m fedpcd_cli`."""

from __future__ import annotations

from fedpcd_cli.app import main

if __name__ == "__main__":
    main()
