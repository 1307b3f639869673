"""Search a perceptron's width, rate and decay for scikit-learn's digits, on all cores, by joblib.

    python examples/search.py --trials 48 --jobs 4

A trial is a model with a compiled step, pickled to a process. What is best on a third of the
training digits is trained on all of them, and sees the test digits once.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import wengert as wg
from wengert import nn, optim


def build(seed: int, width: int, **settings: float) -> tuple[nn.Module, Any]:
    """Return a model, and the compiled step that trains it."""
    wg.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    optimiser = optim.AdamW(model.parameters(), **settings)

    @wg.compile
    def step(x: wg.Tensor, y: wg.Tensor) -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()

    return model, step


def trial(model: nn.Module, step: Any, seed: int, epochs: int, x: Any, y: Any, *held: Any) -> float:
    """Train, in whatever process, and return the share of right answers on what was held out."""
    random = np.random.default_rng(seed)
    for _ in range(epochs):
        for rows in np.array_split(random.permutation(len(y)), len(y) // 32):
            step(wg.asarray(x[rows]), wg.asarray(y[rows]))
    answers = model(wg.asarray(held[0])).detach().numpy().argmax(axis=1)
    return float(np.mean(answers == held[1]))


def main(arguments: Sequence[str] | None = None) -> tuple[list[float], float]:
    """Search, and return what each trial has reached, and the accuracy on the test digits."""
    parser = argparse.ArgumentParser(description="Search hyper-parameters for digits.")
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for one a core")
    options = parser.parse_args(arguments)
    images, digits = load_digits(return_X_y=True)
    x, test_x, y, test_y = train_test_split(
        (images / 16).astype("float32"), digits, test_size=0.2, random_state=0, stratify=digits
    )
    third, random = len(y) // 3, np.random.default_rng(0)
    drawn = random.uniform([4, -4, -4], [8, -1, 0], (options.trials, 3))
    tried = [{"width": int(2**w), "lr": 10**r, "weight_decay": 10**d} for w, r, d in drawn]
    run = joblib.Parallel(n_jobs=options.jobs, return_as="generator")(
        joblib.delayed(trial)(
            *build(seed, **settings),
            *(seed, options.epochs, x[third:], y[third:], x[:third], y[:third]),
        )
        for seed, settings in enumerate(tried)
    )
    reached = list(tqdm(run, total=options.trials, unit="trial"))
    best = int(np.argmax(reached))
    accuracy = trial(*build(best, **tried[best]), best, options.epochs, x, y, test_x, test_y)
    chosen = ", ".join(f"{name} {value:.3g}" for name, value in tried[best].items())
    print(f"best of {options.trials} trials: {chosen}, with {reached[best]:.2%} of {third} digits")
    print(f"trained with these on {len(y)} digits: test accuracy {accuracy:.2%}")
    return reached, accuracy


if __name__ == "__main__":
    main()
