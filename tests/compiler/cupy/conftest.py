"""CuPy whose programs have kernels."""

from typing import Any

import pytest

from tests.simulated_cupy import version


@pytest.fixture
def kernels(backend: Any) -> None:
    """The simulation of a CuPy whose programs have kernels."""
    if version() < 14:
        pytest.skip("programs of earlier versions keep their calls")
