"""The fixture ``simulation`` of pytest, which runs a scenario of :mod:`fabius.testing` with one seed after the other.

```python
def test_sale(simulation):
    simulation(Sale, crashes=2)
```

``--fabius-runs=100`` sets how many seeds are run, and ``--fabius-seed=7`` the first of them; alone, it is the only one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import testing

__all__ = ["pytest_addoption", "simulation"]

#: Seeds of a scenario, unless others are asked for.
_RUNS = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    """Tells pytest of the options."""
    group = parser.getgroup("fabius", "simulations of fabius.testing")
    group.addoption("--fabius-runs", type=int, default=None, help=f"seeds that each simulation runs ({_RUNS})")
    group.addoption("--fabius-seed", type=int, default=None, help="the first seed; without --fabius-runs, the only one")


@pytest.fixture
def simulation(request: pytest.FixtureRequest) -> Callable[..., testing.Report]:
    """Runs a scenario, as :func:`fabius.testing.run` does, with the seeds that are asked for.

    Raises ``SimulationFailed`` if something does not hold.
    """
    seed = request.config.getoption("--fabius-seed")
    runs = request.config.getoption("--fabius-runs")

    def simulate(scenario: type[testing.Scenario], **settings: Any) -> testing.Report:
        wanted = {"seed": seed or 0, "runs": runs or (_RUNS if seed is None else 1)}
        try:
            return testing.run(scenario, **{**wanted, **settings})
        except testing.SimulationFailed as failed:
            again = f"or: pytest {request.node.nodeid!r} --fabius-seed={failed.seed}"
            failed.args = (f"{failed.args[0]}\n{again}",)
            raise

    return simulate
