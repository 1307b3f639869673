"""No function gives back its argument: a change in place of the one is none of the other."""

import inspect
import warnings
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.walking import walk
from wengert import nn
from wengert.backends import backend_of
from wengert.nn import functional as F
from wengert.tape.primitive import PRIMITIVES

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::wengert.tape.aliases.ViewWarning"),
]

#: Functions of a 3 x 3 matrix x and a vector v of three that do nothing, or nearly so.
CASES = {
    "astype": lambda x, v: wg.astype(x, x.dtype),
    "asarray of copy=True": lambda x, v: wg.asarray(x, copy=True),
    "at.add": lambda x, v: wg.at(x)[[]].add(1.0),
    "at.get": lambda x, v: wg.at(x)[...].get(),
    "at.max": lambda x, v: wg.at(x)[[]].max(1.0),
    "at.multiply": lambda x, v: wg.at(x)[0:0].multiply(1.0),
    "at.power": lambda x, v: wg.at(x)[0:0].power(1.0),
    "at.set": lambda x, v: wg.at(x)[0:0].set(1.0),
    "checkpoint": lambda x, v: wg.checkpoint(lambda h: h, x),
    "checkpoint of a pair": lambda x, v: wg.checkpoint(lambda h, k: [k, {"h": h}], v, x)[0],
    "checkpoint of a dict": lambda x, v: wg.checkpoint(lambda h: h["x"], {"x": x}),
    "checkpoint_sequential": lambda x, v: wg.checkpoint_sequential([lambda h: h], 1, x),
    "concat of axis=None": lambda x, v: wg.concat([v], axis=None),
    "cumulative_prod": lambda x, v: wg.cumulative_prod(x[:1], axis=0),
    "cumulative_sum": lambda x, v: wg.cumulative_sum(x[:1], axis=0),
    "detach": lambda x, v: x.detach(),
    "diagonal": lambda x, v: wg.linalg.diagonal(x[:1]),
    "diff": lambda x, v: wg.diff(x, n=0),
    "dropout of p=0": lambda x, v: F.dropout(x, p=0.0),
    "dropout in evaluation": lambda x, v: F.dropout(x, training=False),
    "Dropout": lambda x, v: nn.Dropout(0.0)(x),
    "Dropout in evaluation": lambda x, v: nn.Dropout().eval()(x),
    "einsum": lambda x, v: wg.einsum("ij->ij", x),
    "einsum of a vector": lambda x, v: wg.einsum("i->i", v),
    "einsum of dots": lambda x, v: wg.einsum("...", x),
    "einsum that transposes": lambda x, v: wg.einsum("ij->ji", x),
    "expand_dims": lambda x, v: wg.expand_dims(x, axis=()),
    "fftshift": lambda x, v: wg.fft.fftshift(x, axes=()),
    "flip": lambda x, v: wg.flip(x, axis=()),
    "Identity": lambda x, v: nn.Identity()(x),
    "ifftshift": lambda x, v: wg.fft.ifftshift(x, axes=()),
    "jvp": lambda x, v: wg.jvp(lambda h: h, (x,), (x,))[0],
    "jvp's tangent": lambda x, v: wg.jvp(lambda h: h, (v,), (x[0],))[1],
    "logsumexp": lambda x, v: wg.logsumexp(x, axis=()),
    "max": lambda x, v: wg.max(x, axis=()),
    "mean": lambda x, v: wg.mean(x, axis=()),
    "median": lambda x, v: wg.median(x, axis=()),
    "meshgrid": lambda x, v: wg.meshgrid(v)[0],
    "min": lambda x, v: wg.min(x, axis=()),
    "moveaxis": lambda x, v: wg.moveaxis(x, 0, 0),
    **{
        f"pad by {mode}": lambda x, v, mode=mode: wg.pad(x, (0, 0), mode=mode)
        for mode in ("edge", "wrap", "reflect", "symmetric")
    },
    "Parameter": lambda x, v: nn.Parameter(x.detach(), requires_grad=False) + 0 * x,
    "permute_dims": lambda x, v: wg.permute_dims(x, (0, 1)),
    "power": lambda x, v: x**1,
    "prod": lambda x, v: wg.prod(x, axis=()),
    "quantile": lambda x, v: wg.quantile(x[None], 0.5, axis=0),
    "repeat": lambda x, v: wg.repeat(x, 1, axis=0),
    "roll along no axes": lambda x, v: wg.roll(x, (), axis=()),
    "round": lambda x, v: wg.round(wg.astype(x, wg.int64)),
    "sort": lambda x, v: wg.sort(v),
    "squeeze": lambda x, v: wg.squeeze(x, axis=()),
    "sum": lambda x, v: wg.sum(x, axis=()),
    "take": lambda x, v: wg.take(x, wg.asarray([0, 1, 2]), axis=0),
    "tile": lambda x, v: wg.tile(x, ()),
    "tril": lambda x, v: wg.tril(x, k=9),
    "unstack": lambda x, v: wg.unstack(v[None])[0],
    "value_and_grad": lambda x, v: wg.value_and_grad(lambda h: h)(v[0])[0],
    "vector_norm": lambda x, v: wg.linalg.vector_norm(x, axis=()),
    "vjp": lambda x, v: wg.vjp(lambda h: h, x)[0],
    "vjp's pull": lambda x, v: wg.vjp(lambda h: h, x[0])[1](v)[0],
    "where": lambda x, v: wg.where(x > -1, x, x),
    "x[...]": lambda x, v: x[...],
    "x[()]": lambda x, v: x[()],
    "x[:]": lambda x, v: x[:],
    "x.flatten": lambda x, v: v.flatten(),
    "x.expand": lambda x, v: x.expand(3, 3),
    "x.permute": lambda x, v: x.permute(0, 1),
    "x.t": lambda x, v: v.t(),
    "x.swapaxes": lambda x, v: x.swapaxes(0, 0),
}

#: What gives back its argument by contract, as in NumPy and PyTorch.
THEMSELVES = {
    "asarray": lambda x: wg.asarray(x),
    "as_tensor": lambda x: wg.as_tensor(x),
    "astype of copy=False": lambda x: wg.astype(x, x.dtype, copy=False),
    "to": lambda x: x.to(x.dtype),
    "double": lambda x: x.double(),
    "cpu": lambda x: x.cpu(),
    "to_device": lambda x: x.to_device(x.device),
    "to_backend": lambda x: x.to_backend(x.backend.name),
    "requires_grad_": lambda x: x.requires_grad_(x.requires_grad),
    "in place": lambda x: x.copy_(x * 1),
    "Sequential of no layers": lambda x: nn.Sequential()(x),
}


def test_a_call_that_does_nothing_gives_another_tensor(backend):
    """With an array of its own: changes in place make new arrays, as `test_aliases` shows."""

    def check(_, call):
        for tracked in (False, True):
            root = wg.asarray(np.arange(1.0, 10.0).reshape(3, 3) / 4, requires_grad=tracked)
            x, v = root * 1, root[1] * 1
            y = call(x, v)
            assert y is not x and y is not v
            before, old = x.detach().numpy(), v.detach().numpy()
            y += 1
            np.testing.assert_array_equal(x.detach().numpy(), before)
            np.testing.assert_array_equal(v.detach().numpy(), old)

    walk(CASES.items(), check, backend=backend.name)


@pytest.mark.parametrize("name", THEMSELVES)
def test_what_gives_back_its_argument_by_contract(name):
    x = wg.asarray(np.ones((2, 2)))
    if name == "cpu" and x.backend.name == "cupy":
        pytest.skip("a GPU's arrays are moved")
    assert THEMSELVES[name](x) is x


def public():
    """Every public function and method, by a name that says where it is."""
    homes = {"wg": wg, "linalg": wg.linalg, "fft": wg.fft, "special": wg.special, "F": F}
    for home, module in homes.items():
        for name in dir(module):
            function = getattr(module, name)
            if callable(function) and not inspect.isclass(function) and name[0] != "_":
                yield f"{home}.{name}", function
    for name in dir(wg.Tensor):
        method = getattr(wg.Tensor, name, None)
        if name[0] != "_" and callable(method):
            yield f"x.{name}", method


#: Public functions that give back their argument by contract.
BY_CONTRACT = {
    *("wg.as_tensor", "wg.asarray", "wg.to_device", "wg.to_backend", "x.to_backend"),
    *("x.as_tensor", "x.asarray", "x.to_device", "x.to", "x.cpu", "x.cuda", "x.double"),
    *("x.float", "x.half", "x.int", "x.long", "x.bool", "x.type_as", "x.add_", "x.sub_", "x.mul_"),
    *("x.div_", "x.copy_", "x.fill_", "x.zero_", "x.requires_grad_", "wg.from_numpy"),
}


def test_no_public_function_gives_back_its_argument():
    asked = 0
    # JAX compiles each call for each dtype.
    dtypes = [wg.float64, wg.int64, wg.bool, wg.complex128]
    for name, function in public():
        if name in BY_CONTRACT:
            continue
        for dtype in dtypes[:1] if wg.get_backend().name == "jax" else dtypes:
            x = wg.astype(wg.asarray([[2.0, 0.5], [0.5, 1.0]], dtype=wg.float64), dtype)
            for given in ((x,), (x, x), (x, 0), (x, 1), (x, x.shape), ([x],), (x, x, x)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        result = function(*given)
                    except Exception:
                        continue
                asked += 1
                found = result if isinstance(result, tuple | list) else (result,)
                assert not any(one is x for one in found), (name, dtype, len(given))
    assert asked > 150


# -- the rows --------------------------------------------------------------------------------------

#: Parameters under which a function has little to do, and might give its operand back.
IDLE: list[Callable[[Any, Any], dict[str, Any]]] = [
    lambda backend, x: {},
    *[lambda backend, x, p=p: {"axis": p} for p in ((), 0)],
    *[lambda backend, x, p=p: {"key": p} for p in ((), (slice(None),))],
    lambda backend, x: {"dtype": x.dtype},
    lambda backend, x: {"dtype": x.dtype, "copy": False},
    lambda backend, x: {"shape": tuple(x.shape)},
    lambda backend, x: {"axes": tuple(range(x.ndim))},
    lambda backend, x: {"shift": 0, "axis": 0},
    lambda backend, x: {"axis": (), "correction": 0},
    *[lambda backend, x, p=p: {"repetitions": p} for p in ((1,), (1, 1))],
    lambda backend, x: {"repeats": 1, "axis": 0},
    lambda backend, x: {"n": 0, "axis": 0},
    lambda backend, x: {"k": -5},
    lambda backend, x: {"min": None, "max": None},
    lambda backend, x: {"axis": 0, "descending": False, "stable": True},
    lambda backend, x: {"device": backend.device(x)},
    lambda backend, x: {"name": backend.name},
]


def test_rows_say_what_shares_memory(backend: Any) -> None:
    """A function whose row says so has results of its own, whatever it is given."""
    x = np.arange(9.0).reshape(3, 3)
    library = backend_of(wg.asarray(x)._array)
    if library.immutable or library.name == "dask":
        pytest.skip("nothing is changed in place")
    for host in (x, np.array(2.0), np.ones((1, 4)), x.astype(int), x + 1j, x > 3):
        for turned in (False, True):
            array = library.from_numpy(host.copy())
            array = array.T if turned and array.ndim == 2 else array
            for primitive in PRIMITIVES.values():
                if primitive.view is False:
                    _check_row(primitive, library, array)


def _check_row(primitive: Any, library: Any, array: Any) -> None:
    try:
        kernel = attrgetter(primitive.name)(library.namespace)
    except AttributeError:
        assert (library.name, primitive.name) == ("cupy", "linalg.eig")  # which CuPy 14 has
        return
    number = len(primitive.fixed) + (primitive.variadic is not None)
    for idle in IDLE:
        try:
            with np.errstate(all="ignore"):
                found = kernel(*[array] * number, **idle(library, array))
        except Exception:
            continue
        for part in found if isinstance(found, tuple | list) else (found,):
            shared = hasattr(part, "shape") and np.may_share_memory(_host(part), _host(array))
            assert not shared, (primitive, idle(library, array))


def _host(x: Any) -> Any:
    """The same memory as an array of NumPy's; that of a simulated device is the host's."""
    x = getattr(x, "_array", x)
    return np.asarray(getattr(x, "_host", x))
