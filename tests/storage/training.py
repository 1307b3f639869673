"""A program that trains, is stopped by itself, and goes on: `test_resuming` runs it.

``training backend path prefetch where number`` is killed in the middle of the step of that number,
if ``where`` is ``step``, or while it writes the checkpoint after it, if it is ``write``. It prints
a digest of all that it ends with.
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

import numpy as np

import wengert as wg
from wengert import data, nn, optim


class Average:
    """An average of a model's parameters over time, as users write one."""

    def __init__(self, model):
        self.held = model.state_dict()

    def update(self, model):
        new = model.state_dict()
        self.held = {name: 0.9 * x + 0.1 * new[name] for name, x in self.held.items()}

    def state_dict(self):
        return dict(self.held)

    def load_state_dict(self, state):
        self.held = dict(state)


def killed(*args):
    os.kill(os.getpid(), signal.SIGKILL)


def main(path, prefetch, where, number):
    wg.manual_seed(0 if not path.exists() else 1)
    rows = np.random.default_rng(0).normal(size=(22, 4)).astype("float32")
    dataset = data.TensorDataset(rows, np.sin(rows.sum(axis=1, keepdims=True)))
    loader = data.DataLoader(dataset, batch_size=5, shuffle=True, prefetch=prefetch)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=15)
    average = Average(model)
    states = {
        "model": model,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "average": average,
        "loader": loader,
        "generator": True,
    }
    done, losses = 0, []
    if path.exists():
        found = wg.load(path, **states)
        done, losses = found["done"], found["losses"]
    while loader.epoch < 3:
        for x, y in loader:
            done += 1
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            if where == "step" and done == number:
                killed()
            optimizer.step()
            scheduler.step()
            average.update(model)
            losses.append(loss.item())
            if where == "write" and done == number:
                os.fsync = killed  # the file beside has been written, and has not its name yet
            wg.save(path, **states, done=done, losses=losses)
    digest = hashlib.sha256(repr((done, losses, optimizer.param_groups[0]["lr"])).encode())
    for state in (model.state_dict(), average.state_dict()):
        for name, tensor in state.items():
            digest.update(name.encode() + tensor.numpy().tobytes())
    digest.update(wg.rand_like(wg.ones(3)).numpy().tobytes() + wg.randn(3).numpy().tobytes())
    print(done, digest.hexdigest())


if __name__ == "__main__":
    backend, path, prefetch, where, number = sys.argv[1:]
    with wg.use_backend(backend):
        main(Path(path), int(prefetch), where, int(number))
