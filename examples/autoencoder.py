"""Lay handwritten digits out on a plane by a variational autoencoder, and draw the map.

    WENGERT_BACKEND=torch python examples/autoencoder.py --compile

A pixel of scikit-learn's digits counts the dark ones among 16 dots, so it is a binomial number. The
loss is an upper bound of -log p(image): what the image costs, in nats, at a point that is drawn for
it, and what the point costs. A run that was stopped goes on with --resume from its last epoch, and
ends with the same bits.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import wengert as wg
from wengert import data, nn, optim

DOTS = 16  #: in each pixel


def load() -> list[data.TensorDataset]:
    """Return four fifths of scikit-learn's 1797 digits to learn from, and one fifth to test on."""
    images, digits = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images.astype("float32"), digits, test_size=0.2, random_state=0, stratify=digits
    )
    return [data.TensorDataset(train_x, train_y), data.TensorDataset(test_x, test_y)]


def nats(logits: wg.Tensor, images: wg.Tensor) -> wg.Tensor:
    """Return minus the log-likelihood of images, for the logits that a dot is dark."""
    ways = (
        wg.special.gammaln(wg.asarray(DOTS + 1.0))
        - wg.special.gammaln(images + 1)
        - wg.special.gammaln(DOTS + 1 - images)
    )
    return wg.sum(DOTS * nn.functional.softplus(logits) - images * logits - ways, axis=-1)


class Autoencoder(nn.Module):
    """A normal distribution on the plane for each image, and an image for each point of it."""

    def __init__(self, hidden: int = 256) -> None:
        self.encoder = nn.Sequential(
            *(nn.Linear(64, hidden), nn.ReLU()),
            *(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 4)),
        )
        self.decoder = nn.Sequential(
            *(nn.Linear(2, hidden), nn.ReLU()),
            *(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 64)),
        )

    def encode(self, images: wg.Tensor) -> tuple[wg.Tensor, wg.Tensor]:
        """Return means and standard deviations of points."""
        found = self.encoder(images / DOTS - 0.5)
        return found[:, :2], wg.exp(found[:, 2:])

    def forward(self, images: wg.Tensor) -> wg.Tensor:
        """Return the bound for each image, by a point that is drawn: derivatives go through it."""
        mean, std = self.encode(images)
        point = wg.random.normal(mean, std)
        divergence = wg.sum((mean**2 + std**2 - 1) / 2 - wg.log(std), axis=-1)
        return nats(self.decoder(point), images) + divergence


def alone(train_part: data.TensorDataset, part: data.TensorDataset) -> float:
    """Return the mean nats of images if a pixel depends on no other."""
    dark = wg.sum(wg.asarray(train_part.tensors[0]), axis=0) + 0.5
    light = DOTS * len(train_part) + 1 - dark
    return float(wg.mean(nats(wg.log(dark / light), wg.asarray(part.tensors[0]))))


@wg.no_grad()
def judge(model: nn.Module, part: data.TensorDataset) -> float:
    """Return the mean bound."""
    ((images, _),) = data.DataLoader(part, batch_size=len(part))
    return float(wg.mean(model(images)))


@wg.no_grad()
def draw(
    curves: dict[str, list[float]],
    by_pixels: float,
    model: Autoencoder,
    part: data.TensorDataset,
    path: Path,
) -> None:
    """Draw the learning curves, the points of images, and the images of points."""
    figure = Figure(figsize=(14, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for name, bounds in curves.items():
        left.plot(range(1, len(bounds) + 1), bounds, label=name)
    left.axhline(by_pixels, linestyle=":", color="gray", label="held-out, by each pixel alone")
    left.set(title="Learning", xlabel="epoch", ylabel="bound of $-\\log\\,p$(image) (nats)")
    left.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False)

    ((images, digits),) = data.DataLoader(part, batch_size=len(part))
    points, digits = model.encode(images)[0].numpy(), digits.numpy()
    for digit in range(10):
        x, y = points[digits == digit].T
        middle.plot(x, y, linestyle="", marker=f"${digit}$", markersize=5, color=f"C{digit}")
    middle.set(title="Held-out images as points", xlabel="$z_1$", ylabel="$z_2$", aspect="equal")

    # Between neighbours in a row or column are equal shares of the normal distribution.
    n = 15
    places = wg.special.ndtri((wg.arange(n, dtype=wg.float32) + 0.5) / n)
    x, y = wg.meshgrid(places, wg.flip(places))
    dark = nn.functional.sigmoid(model.decoder(wg.stack([x, y], axis=-1)))
    tiles = nn.functional.pad(wg.reshape(dark, (n, n, 8, 8)), (1, 1, 1, 1))
    right.imshow(
        wg.reshape(wg.permute_dims(tiles, (0, 2, 1, 3)), (10 * n, 10 * n)).numpy(), cmap="gray_r"
    )
    marks = [0, n // 2, n - 1]
    names = [f"{float(places[i]):.1f}" for i in marks]
    right.set_xticks([10 * i + 4.5 for i in marks], names)
    right.set_yticks([10 * i + 4.5 for i in marks], names[::-1])
    right.set(title="Points as images", xlabel="$z_1$", ylabel="$z_2$")
    figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train, draw, and return the nats of a held-out image: the bound, and by its pixels alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true", help="record a step once and replay it")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--output", type=Path, default=Path("build/autoencoder"), help="folder")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    last = options.output / "last.safetensors"

    wg.manual_seed(options.seed)
    train_part, test_part = load()
    loader = data.DataLoader(train_part, batch_size=64, shuffle=True, generator=options.seed)
    model = Autoencoder()
    optimizer = optim.AdamW(model.parameters())
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, options.epochs * len(loader))
    states = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": loader}
    curves: dict[str, list[float]] = {"training images": [], "held-out images": []}
    if options.resume:
        curves = wg.load(last, generator=True, **states)["curves"]

    def step(images: wg.Tensor) -> None:
        optimizer.zero_grad()
        wg.mean(model(images)).backward()
        optimizer.step()

    run = wg.compile(step) if options.compile else step
    bar = data.progress(range(len(curves["held-out images"]), options.epochs), unit="epoch")
    for _ in bar:
        for images, _ in loader:
            run(images)
            scheduler.step()
        for bounds, part in zip(curves.values(), (train_part, test_part), strict=True):
            bounds.append(judge(model, part))
        bar.set_postfix({name: f"{bounds[-1]:.1f}" for name, bounds in curves.items()})
        wg.save(last, generator=True, curves=curves, **states)

    bound, by_pixels = curves["held-out images"][-1], alone(train_part, test_part)
    draw(curves, by_pixels, model, test_part, options.output / "plane.png")
    print(f"nats of a held-out image: at most {bound:.1f}; by each pixel alone {by_pixels:.1f}")
    return bound, by_pixels


if __name__ == "__main__":
    main()
