"""Five neurons, and everything that the tape knows about them.

    b = w1 * a        c = w2 * a        d = w3 * b + w4 * c        L = (10 - d).sum()

    python examples/computation_graph.py

Prints the graph from the result back to its leaves, the same graph as a Wengert list, the
gradients beside those of the chain rule done by hand, and each step of the chain rule taken by
calling a ``grad_fn``.
"""

from typing import Any

import wengert as wg


def walk(node: Any, depth: int = 0) -> None:
    """Print the operations that led to a node, indented by their distance from it."""
    print("    " * depth + ("(needs no gradient)" if node is None else node.name()))
    if node is not None:
        for parent, _ in node.next_functions:
            walk(parent, depth + 1)


def main() -> None:
    """Build the graph, look at it, and differentiate it."""
    wg.manual_seed(0)
    a = wg.randn(3, 3, requires_grad=True)
    w1, w2, w3, w4 = (wg.randn(3, 3, requires_grad=True) for _ in range(4))

    b = w1 * a
    c = w2 * a
    d = w3 * b + w4 * c
    loss = (10 - d).sum()

    print("The grad_fn of a, which nobody computed:", a.grad_fn)
    print("The grad_fn of d, which is a sum:", d.grad_fn.name())
    print("\nFrom the loss back to its leaves:\n")
    walk(loss.grad_fn)
    print("\nThe same as a Wengert list, in the order of recording:\n")
    print(wg.global_tape.of(loss))

    print("\nOne step of the chain rule, by hand: what flows from d to w3 * b and to w4 * c,")
    print("and from there to w3 and b, if the cotangent of d is -1:\n")
    first, second = d.grad_fn(-wg.ones_like(d))
    (product, _), _ = d.grad_fn.next_functions
    to_w3, _ = product(first)
    print("to both products the same:", bool(wg.all(first == second)))
    print("to w3, -b:", bool(wg.all(to_w3 == -b)))

    loss.backward()
    with wg.no_grad():
        expected = {
            "w4": -c,
            "w3": -b,
            "w2": -w4 * a,
            "w1": -w3 * a,
            "a": -(w3 * w1 + w4 * w2),  # two paths lead to a: their products are added
        }
    print("\nThe largest differences between backward() and the chain rule done by hand:\n")
    for name, leaf in {"w4": w4, "w3": w3, "w2": w2, "w1": w1, "a": a}.items():
        difference = wg.max(wg.abs(leaf.grad - expected[name]))
        print(f"dL/d{name}: {float(difference):.1e}")


if __name__ == "__main__":
    main()
