"""Frozen data that flows through one round; no behavior, no torch at import."""
