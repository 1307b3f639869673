"""Puts the simulation into the modules of CuPy."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import cupy
import cupy._core as core
from cupy._core import _gufuncs

from tests.simulated_cupy import arrays, devices, kernels, libraries, nccl, routines, ufuncs

#: What is replaced in `cupy._core` and wherever CuPy imports it from there.
_COMPILED = {
    "array": routines.array,
    "ascontiguousarray": routines.ascontiguousarray,
    "broadcast": routines.broadcast,
    "broadcast_to": routines.broadcast_to,
    "concatenate_method": routines.concatenate,
    "dot": routines.dot,
    "from_dlpack": routines.from_dlpack,
    "matmul": routines.matmul,
    "moveaxis": routines.moveaxis,
    "tensordot_core": routines.tensordot_core,
    "_internal_ascontiguousarray": routines.ascontiguousarray,
}


def install() -> None:
    if cupy.ndarray is arrays.ndarray:
        return
    libraries.stub_cublas()
    for name in ("cupyx.scipy.special", "cupyx.scipy.linalg", "cupy.random", "cupy.fft"):
        importlib.import_module(name)
    replaced: dict[int, Any] = {id(cupy.ndarray): arrays.ndarray}
    replaced |= {
        id(getattr(core, name)): new for name, new in _COMPILED.items() if hasattr(core, name)
    }
    for made in (kernels.ElementwiseKernel, kernels.ReductionKernel):
        replaced[id(getattr(cupy, made.__name__))] = made
    manipulation = core._routines_manipulation
    replaced[id(manipulation._expand_dims)] = routines.expand_dims
    replaced[id(manipulation._move_single_axis)] = routines.moveaxis
    replaced[id(core._routines_math.scan_core)] = routines.scan_core
    replaced[id(core.internal._get_strides_for_order_K)] = routines.strides_for_order_k
    replaced |= {id(real): new for real, new in libraries.replacements()}
    kept: list[Any] = []  # so that no other object gets an id that is looked for
    modules = [m for name, m in sys.modules.items() if name.partition(".")[0] in ("cupy", "cupyx")]
    for module in modules:
        if isinstance(module, ModuleType):
            _replace(module, replaced, kept)
    devices.install()
    nccl.install()
    for path in Path(__file__).parent.glob("[!_]*.py"):
        # A compiled function knows what is an array library by the names of its modules.
        if not path.stem.startswith("test_"):
            module = importlib.import_module(f"tests.simulated_cupy.{path.stem}")
            module.__name__ = f"cupy.simulated.{path.stem}"


def _replace(module: ModuleType, replaced: dict[int, Any], kept: list[Any]) -> None:
    for name, old in list(vars(module).items()):
        new = replaced.get(id(old))
        if new is None:
            new = _simulated(old)
            if new is None:
                if isinstance(old, _gufuncs._GUFunc):
                    ops = old._ops_register
                    old._func = replaced.get(id(old._func), old._func)
                    ops._default_func = replaced.get(id(ops._default_func), ops._default_func)
                continue
            replaced[id(old)] = new
            kept.append(old)
        vars(module)[name] = new


def _simulated(old: Any) -> Any:
    kind = type(old)
    if not kind.__module__.startswith("cupy."):
        return None
    if kind.__name__ == "ufunc":
        return ufuncs.ufunc(old)
    if kind.__name__ in ("ElementwiseKernel", "ReductionKernel"):
        return routines.Kernel(old)
    if kind.__name__ == "_SimpleReductionKernel":
        return routines.Reduction(old)
    return None
