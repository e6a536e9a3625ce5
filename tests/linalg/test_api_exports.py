"""Plug-in authors get the same functions through the public API."""

from __future__ import annotations

import pytest

from fedpcd_cli import api
from fedpcd_cli.linalg import combine, gram, simplex
from fedpcd_cli.qp import simplex as hull


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("combine", combine),
        ("gram_matrix", gram),
        ("inner_products", gram),
        ("project_simplex", simplex),
        ("minimum_norm", hull),
        ("SimplexSolution", hull),
    ],
)
def test_names_are_exported(name, module):
    assert getattr(api, name) is getattr(module, name)
    assert name in api.__all__
