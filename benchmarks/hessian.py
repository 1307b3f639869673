"""Hessians and Jacobians as batches, against loops over their rows and against peers.

``python -m benchmarks.hessian`` prints this section alone.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report import Verdict, bars_table, describe_machine, installed, table
from benchmarks.timing import Times, Work, interleave, repeated

__all__ = ["PROGRAMS", "Program", "columns_times", "contestants", "report"]

#: How much of a loop's time the Hessian of 200 variables may take.
LIMIT = 0.2
#: Numbers of inputs for which columns are computed.
INPUTS = (1, 2, 4, 8, 16, 32)

Function = Callable[[Any], Any]


class Program(NamedTuple):
    """A function of one vector, written against a namespace, and where it is differentiated."""

    function: Callable[[Any], Function]
    size: int

    @property
    def point(self) -> np.ndarray:
        """The vector."""
        return np.random.default_rng(0).standard_normal(self.size)


def valley(xp: Any) -> Function:
    """Rosenbrock's function of many variables."""

    def f(x: Any) -> Any:
        return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    return f


def network(rows: int) -> Callable[[Any], Function]:
    """The loss of a network of 10, 17 and 1 units on some rows: a function of 205 weights."""
    random = np.random.default_rng(1)
    data, wanted = random.standard_normal((rows, 10)), random.standard_normal((rows, 1))

    def program(xp: Any) -> Function:
        inputs, targets = xp.asarray(data), xp.asarray(wanted)

        def f(p: Any) -> Any:
            hidden = xp.tanh(inputs @ xp.reshape(p[:170], (10, 17)) + p[170:187])
            return xp.mean((hidden @ xp.reshape(p[187:204], (17, 1)) + p[204:] - targets) ** 2)

        return f

    return program


PROGRAMS = {
    "Hessian, Rosenbrock's function of 200": Program(valley, 200),
    "Hessian, 10-17-1 network, 16 rows": Program(network(16), 205),
    "Hessian, 10-17-1 network, 64 rows": Program(network(64), 205),
}


def field(xp: Any) -> Function:
    """A field of 100 variables whose Jacobian is full."""
    matrix = xp.asarray(np.random.default_rng(2).standard_normal((100, 100)) / 10)

    def f(x: Any) -> Any:
        return xp.tanh(matrix @ xp.sin(x)) * x

    return f


FIELD = Program(field, 100)


def wengert_hessian(program: Program) -> Callable[[], Any]:
    """`wengert.func.hessian`."""
    import wengert as wg
    from wengert import func

    compute, point = func.hessian(program.function(wg)), program.point
    return lambda: compute(point)


def loop_over_gradient(program: Program) -> Callable[[], Any]:
    """Wengert, by a reverse pass for each component of the gradient."""
    import wengert as wg

    f, point = program.function(wg), program.point

    def compute() -> Any:
        x = wg.asarray(point).requires_grad_()
        (gradient,) = wg.autograd.grad(f(x), x, create_graph=True)
        rows = [
            wg.autograd.grad(gradient[i], x, retain_graph=True)[0].array for i in range(point.size)
        ]
        return np.stack(rows)

    return compute


def jax_hessian(program: Program) -> Callable[[], Any]:
    """JAX: its own Hessian, compiled."""
    import jax

    jax.config.update("jax_enable_x64", True)
    compute = jax.jit(jax.hessian(program.function(jax.numpy)))
    point = jax.numpy.asarray(program.point)
    return lambda: compute(point).block_until_ready()


def torch_hessian(program: Program) -> Callable[[], Any]:
    """PyTorch: its own Hessian, by vmap."""
    import torch

    torch.set_num_threads(1)
    compute, point = torch.func.hessian(program.function(torch)), torch.asarray(program.point)
    return lambda: compute(point)


def wengert_rows(program: Program) -> Callable[[], Any]:
    """`wengert.func.jacrev`."""
    import wengert as wg
    from wengert import func

    compute, point = func.jacrev(program.function(wg)), program.point
    return lambda: compute(point)


def loop_over_rows(program: Program) -> Callable[[], Any]:
    """Wengert, by a reverse pass for each component."""
    import wengert as wg

    f, point = program.function(wg), program.point
    seeds = [wg.asarray(row) for row in np.eye(program.size)]

    def compute() -> Any:
        x = wg.asarray(point).requires_grad_()
        y = f(x)
        return np.stack([wg.autograd.grad(y, x, e, retain_graph=True)[0].array for e in seeds])

    return compute


def jax_rows(program: Program) -> Callable[[], Any]:
    """JAX's jacrev, compiled."""
    import jax

    jax.config.update("jax_enable_x64", True)
    compute = jax.jit(jax.jacrev(program.function(jax.numpy)))
    point = jax.numpy.asarray(program.point)
    return lambda: compute(point).block_until_ready()


def torch_rows(program: Program) -> Callable[[], Any]:
    """PyTorch's jacrev, by vmap."""
    import torch

    torch.set_num_threads(1)
    compute, point = torch.func.jacrev(program.function(torch)), torch.asarray(program.point)
    return lambda: compute(point)


OURS, LOOP = "Wengert", "Wengert, a loop"
HESSIANS = {
    OURS: (wengert_hessian, "wengert"),
    LOOP: (loop_over_gradient, "wengert"),
    "PyTorch eager": (torch_hessian, "torch"),
    "JAX jit": (jax_hessian, "jax"),
}
ROWS = {
    OURS: (wengert_rows, "wengert"),
    LOOP: (loop_over_rows, "wengert"),
    "PyTorch eager": (torch_rows, "torch"),
    "JAX jit": (jax_rows, "jax"),
}


def contestants(program: Program, makers: dict[str, Any]) -> dict[str, Work]:
    """Who can run, after checking that all compute the same."""
    made = {
        name: make(program)
        for name, (make, library) in makers.items()
        if library == "wengert" or installed(library)
    }
    expected = np.asarray(made[LOOP]())
    for name, compute in made.items():
        if not np.allclose(np.asarray(compute()), expected, rtol=1e-9, atol=1e-9):
            raise AssertionError(f"{name} computes other derivatives than the loop")
    return {name: repeated(compute) for name, compute in made.items()}


def columns_times(rounds: int) -> Times:
    """Seconds of a Jacobian by columns, of 2000 results, by the number of inputs."""
    import wengert as wg
    from wengert import func

    random = np.random.default_rng(3)
    works = {}
    for n in INPUTS:
        matrix, point = wg.asarray(random.standard_normal((2000, n))), random.standard_normal(n)

        def f(x: Any, matrix: Any = matrix) -> Any:
            return wg.exp(-(wg.sin(matrix @ x) ** 2))

        compute = func.jacfwd(f)
        works[str(n)] = repeated(lambda compute=compute, point=point: compute(point))
    return interleave(works, rounds=rounds, block=0.004)


def report(rounds: int, *, markdown: bool) -> list[Verdict]:
    """Measure everything, print the tables, and return the bars."""
    verdicts = []
    names = list(HESSIANS)
    lines = [["milliseconds", *names, "loop / Wengert"]]
    rows = [(label, program, HESSIANS) for label, program in PROGRAMS.items()]
    rows.append(("Jacobian, field of 100 variables", FIELD, ROWS))
    for label, program, makers in rows:
        times = interleave(contestants(program, makers), rounds=rounds, block=0.02)
        faster = times.ratio(LOOP, OURS)
        lines.append(
            [
                label,
                *[
                    f"{times.median(name) * 1e3:.2f}" if name in times.rounds else "-"
                    for name in names
                ],
                f"{faster.median:.1f} ({faster.low:.1f} – {faster.high:.1f})",
            ]
        )
        if makers is HESSIANS and program.function is valley:
            what = f"{label}, against a loop over rows"
            verdicts.append(Verdict(what, times.ratio(OURS, LOOP), LIMIT))
    print(table(lines, markdown=markdown), end="\n\n")
    columns = columns_times(rounds)
    heading = ["milliseconds, by the number of inputs", *map(str, INPUTS)]
    cells = [f"{columns.median(str(n)) * 1e3:.2f}" for n in INPUTS]
    print(
        table([heading, ["columns of a Jacobian of 2000 results", *cells]], markdown=markdown),
        end="\n\n",
    )
    return verdicts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hessian", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, for a first look")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    options = parser.parse_args()
    print(describe_machine(), end="\n\n")
    found = report(15 if options.quick else 60, markdown=options.markdown)
    print(table(bars_table(found), markdown=options.markdown))
