"""Five neurons, drawn: what the tape knows about them, as a picture.

    b = w1 * a        c = w2 * a        d = w3 * b + w4 * c        L = 10 - d

    python examples/drawn_graph.py --output pictures

Draws the network twice: with the gradient of L that flows back along each edge, and with the local
derivative of each operation, whose products along the paths from a leaf to L add up to the
leaf's gradient. A third picture is a small network of modules. They are SVG files where Graphviz's
program ``dot`` is installed, and otherwise text that it makes them from. Needs wengert[draw].
"""

import argparse
from pathlib import Path
from shutil import which

import wengert as wg
from wengert.inspection import draw


def neurons(
    a: wg.Tensor, w1: wg.Tensor, w2: wg.Tensor, w3: wg.Tensor, w4: wg.Tensor
) -> dict[str, wg.Tensor]:
    """Compute the five neurons, each by its name."""
    b = w1 * a
    c = w2 * a
    d = w3 * b + w4 * c
    return {"b": b, "c": c, "d": d, "L": 10 - d}


def main(arguments: list[str] | None = None) -> list[Path]:
    """Draw the graphs and return the files."""
    parser = argparse.ArgumentParser(description="Five neurons, drawn.")
    parser.add_argument("--output", type=Path, default=Path("pictures"), help="a directory")
    output: Path = parser.parse_args(arguments).output
    output.mkdir(parents=True, exist_ok=True)

    leaves = [wg.tensor(x, requires_grad=True) for x in (2.0, 0.5, -1.0, 3.0, 0.25)]
    wg.manual_seed(0)
    network = wg.nn.Sequential(wg.nn.Linear(4, 3), wg.nn.Tanh(), wg.nn.Linear(3, 1))
    pictures = {
        "gradients": draw(neurons, *leaves, values=True, gradients=True),
        "local": draw(neurons, *leaves, values=True, gradients="local", direction="LR"),
        "modules": draw(network, wg.randn(2, 4), gradients=True),
    }

    neurons(*leaves)["L"].backward()
    for name, leaf in zip(("a", "w1", "w2", "w3", "w4"), leaves, strict=True):
        print(f"dL/d{name} = {leaf.grad.item():g}")

    files = []
    for name, picture in pictures.items():
        if which("dot"):
            file = Path(picture.render(name, output, format="svg", cleanup=True))
        else:
            file = output / f"{name}.dot"
            file.write_text(picture.source)
        print(f"wrote {file}")
        files.append(file)
    return files


if __name__ == "__main__":
    main()
