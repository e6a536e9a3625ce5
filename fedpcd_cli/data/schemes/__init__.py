"""The built-in partition schemes, one per file."""
