"""The contract that every aggregation rule fulfills."""
