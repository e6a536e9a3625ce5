"""Image datasets for fedpcd."""
