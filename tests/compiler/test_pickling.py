"""What a pickle of a compiled function takes along: state, or an error that says what to pass."""

import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

import wengert as wg

MODULE = """
import wengert as wg

model = wg.nn.Linear(2, 1)
optimizer = wg.optim.SGD(model.parameters(), lr=0.5)

def step(x):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss

plain = step
compiled = wg.compile(step)
by_default = wg.compile(lambda x, m=model: m(x).sum())

@wg.compile
def decorated(x):
    return model(x).sum()

def helper(x):
    return model(x).sum()

def close_over(scale):
    return wg.compile(lambda x: scale * helper(x))

@wg.compile
def pure(x):
    return 2 * x

def half(x):
    return x / 2

class Trainer:
    def __init__(self):
        self.model = wg.nn.Linear(2, 1)
        self.optimizer = wg.optim.SGD(self.model.parameters(), lr=0.5)

    @wg.compile
    def step(self, x):
        self.optimizer.zero_grad()
        loss = self.model(x).sum()
        loss.backward()
        self.optimizer.step()
        return loss

def make(model):
    @wg.compile
    def call(x):
        return model(x).sum()
    return call

class Shared:
    model = wg.nn.Linear(2, 1)

    @classmethod
    def of_class(cls, x):
        return cls.model(x).sum()

    @staticmethod
    def static(x):
        return Shared.model(x).sum()

    def __call__(self, x):
        return self.model(x).sum()

class Net(wg.nn.Module):
    body = wg.nn.Linear(2, 1)

    def forward(self, x):
        return self.body(x)

def importing(x):
    import pickled_steps
    return pickled_steps.model(x).sum()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "pickled_steps.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("pickled_steps")
    del sys.modules["pickled_steps"]


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_state_of_a_module_is_an_error(module, pickler):
    steps = [module.compiled, module.decorated, module.close_over(2.0), wg.compile(module.helper)]
    shared = module.Shared()
    of_classes = [
        module.Shared.of_class,
        shared.of_class,
        module.Shared.static,
        shared,
        module.Net(),
    ]
    for one in [*steps, *map(wg.compile, [*of_classes, shared.__call__, module.importing])]:
        with pytest.raises(pickle.PicklingError, match="state of the module pickled_steps"):
            pickler.dumps((module.model, one))


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_functions_without_state_go_by_their_name(module, pickler):
    assert pickle.loads(pickler.dumps(module.pure)) is module.pure
    assert pickle.loads(pickler.dumps(module.Trainer.step)) is module.Trainer.step
    again = pickle.loads(pickler.dumps(wg.compile(module.half)))
    assert again(wg.asarray(4.0)).item() == 2.0


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_a_method_is_pickled_with_its_object(module, pickler):
    trainer = module.Trainer()
    trainer.step(wg.ones((1, 2)))
    other, step = pickle.loads(pickler.dumps((trainer, trainer.step)))
    before = other.model.weight.detach().clone()
    step(wg.ones((1, 2)))
    change = before - other.model.weight.detach()
    assert wg.all(wg.abs(change - 0.5) < 1e-6)  # of the object beside it, and of no other


def test_closures_take_their_model_along_by_cloudpickle(module):
    model = wg.nn.Linear(2, 1)
    call = module.make(model)
    other, again = pickle.loads(cloudpickle.dumps((model, call)))
    with wg.no_grad():
        other.weight.zero_()
        other.bias.zero_()
    assert again(wg.ones((1, 2))).item() == 0.0
    with pytest.raises(pickle.PicklingError, match="cloudpickle"):
        pickle.dumps(call)


PROGRAM = """
import pickle
import sys
import cloudpickle
import wengert as wg

model = wg.nn.Linear(2, 1)
optimizer = wg.optim.SGD(model.parameters(), lr=0.5)

@wg.compile
def step(x):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss

@wg.compile
def pure(x):
    return 2 * x

if __name__ == "__main__":
    if len(sys.argv) > 1:
        with open(sys.argv[1], "wb") as file:
            cloudpickle.dump((model, step, pure), file)
        try:
            pickle.dumps(step)
        except pickle.PicklingError as error:
            print(error)
"""


def test_steps_of_a_script_are_pickled_by_value(tmp_path: Path) -> None:
    script, path = tmp_path / "script.py", tmp_path / "given.pickle"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert "cloudpickle" in done.stdout
    model, step, pure = pickle.loads(path.read_bytes())  # where there is no such script
    before = model.weight.detach().clone()
    step(wg.ones((1, 2)))
    assert wg.all(wg.abs(before - model.weight.detach() - 0.5) < 1e-6)
    assert pure(wg.asarray(1.5)).item() == 3.0
