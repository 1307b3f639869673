"""Importing Wengert, and a first gradient, import NumPy and no other library."""

import pytest

from tests.scripts import python

#: The last has 50 modules of the standard library.
OTHERS = [
    *("torch", "jax", "jaxlib", "dask", "cupy", "scipy", "hypothesis", "pytest", "tqdm"),
    *("array_api_strict", "array_api_compat", "matplotlib", "safetensors", "sklearn"),
    "importlib.metadata",
]


def test_imports_numpy_and_no_other_library() -> None:
    code = (
        "import sys, wengert, wengert.nn, wengert.optim\n"
        "x = wengert.tensor([1.0, 2.0], requires_grad=True)\n"
        "(x * x).sum().backward()\n"
        f"print('numpy' in sys.modules, [n for n in {OTHERS!r} if n in sys.modules])"
    )
    assert python("-c", code).stdout == "True []\n"


#: Prints what the rules of a fresh process ask ``xp`` for in vain: the names after ``xp.`` in them,
#: and in the functions that they call.
WALK = """
import dis, types
import wengert
from wengert.backends import namespaces
from wengert.backends.backend import composites
from wengert.tape import PRIMITIVES

for name in dir(wengert):
    getattr(wengert, name)  # some are imported late

def asked(function, seen):
    if not isinstance(function, types.FunctionType) or function in seen:
        return
    seen.add(function)
    last = None
    for step in dis.get_instructions(function):
        if last == "xp" and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            yield step.argval
        last = step.argval
    for name in function.__code__.co_names:
        yield from asked(function.__globals__.get(name), seen)
    for cell in function.__closure__ or ():
        yield from asked(cell.cell_contents, seen)

xp, on_tensors = wengert.get_backend().namespace, namespaces[wengert.Tensor]
names = 0
for primitive in list(PRIMITIVES.values()):
    rules = *primitive.rules.values(), *primitive.jvps.values(), primitive.shared
    for rule in (*rules, primitive.composite):
        for name in asked(rule, set()):
            names += 1
            only_a_kernel = name in xp.backend.kernels and name not in {**PRIMITIVES, **composites}
            if not hasattr(xp, name) or (only_a_kernel and name not in vars(on_tensors)):
                print(primitive.name, name)
assert names > 300, names
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "array_api_strict"])  # with kernels, and without
def test_rules_need_nothing_that_is_imported_later(backend: str) -> None:
    assert python("-c", WALK, WENGERT_BACKEND=backend).stdout == ""
