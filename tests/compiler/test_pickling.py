"""A compiled function is pickled as its function: by name, or with its object or closure."""

import pickle
import sys
from pathlib import Path

import cloudpickle
import pytest

import wengert as wg

MODULE = """
import wengert as wg

@wg.compile
def decorated(x):
    return 2 * x

def half(x):
    return x / 2

class Trainer:
    def __init__(self):
        self.model = wg.nn.Linear(2, 1)

    @wg.compile
    def step(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "pickled_steps.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("pickled_steps")
    del sys.modules["pickled_steps"]


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_functions_of_a_module_go_by_name_and_methods_with_their_object(module, pickler):
    assert pickle.loads(pickler.dumps(module.decorated)) is module.decorated
    assert pickle.loads(pickler.dumps(module.Trainer.step)) is module.Trainer.step
    assert pickle.loads(pickler.dumps(wg.compile(module.half)))(wg.asarray(4.0)).item() == 2.0
    trainer = module.Trainer()
    trainer.step(wg.ones((1, 2)))
    other, step = pickle.loads(pickler.dumps((trainer, trainer.step)))
    step(wg.ones((1, 2)))  # of the object beside it
    assert other.model.weight.grad.tolist() == [[1.0, 1.0]]


def test_closures_take_their_model_along_by_cloudpickle():
    model = wg.nn.Linear(2, 1)
    run = wg.compile(lambda x: model(x).sum().detach())
    other, again = pickle.loads(cloudpickle.dumps((model, run)))
    with wg.no_grad():
        other.weight.zero_()
        other.bias.zero_()
    assert again(wg.ones((1, 2))).item() == 0.0
