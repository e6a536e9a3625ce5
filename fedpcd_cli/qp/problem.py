"""The program that is solved here. It flows through a round, so it is defined with the other round data."""

from fedpcd_cli.rounds.program import HalfspaceProgram

__all__ = ["HalfspaceProgram"]
