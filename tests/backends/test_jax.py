"""Arrays that JAX spreads over several devices: `sharded` has the checks, and runs them."""

import json
import os
import subprocess
import sys

import pytest

from tests.backends.sharded import CHECKS

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.fixture(scope="module")
def wrong():
    """What is wrong with each check, as a process with four devices tells."""
    pytest.importorskip("jax")
    flags = "--xla_force_host_platform_device_count=4"
    # XLA's threads: on a machine of four or less a collective can wait for its fourth for ever.
    threads = "16"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.backends.sharded"],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "NPROC": threads},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CHECKS)
def test_sharded(wrong, name):
    assert not wrong[name], wrong[name]
