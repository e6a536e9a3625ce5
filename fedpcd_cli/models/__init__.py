"""Models that recipes can name."""
