"""fedpcd: fair federated learning experiments in a terminal."""

__version__ = "0.1.0"
