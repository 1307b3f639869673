"""The public names, for type checkers: what `wengert.__getattr__` imports late is here as well."""

from wengert import amp as amp
from wengert import autograd as autograd
from wengert import compiler as compiler
from wengert import dask as dask
from wengert import data as data
from wengert import distributed as distributed
from wengert import export as export
from wengert import fft as fft
from wengert import func as func
from wengert import inspection as inspection
from wengert import linalg as linalg
from wengert import nn as nn
from wengert import optim as optim
from wengert import optimize as optimize
from wengert import special as special
from wengert import tape as tape
from wengert import testing as testing
from wengert.autograd import checkpoint as checkpoint
from wengert.autograd import checkpoint_sequential as checkpoint_sequential
from wengert.autograd import detect_anomaly as detect_anomaly
from wengert.autograd import enable_grad as enable_grad
from wengert.autograd import inference_mode as inference_mode
from wengert.autograd import is_grad_enabled as is_grad_enabled
from wengert.autograd import is_inference_mode_enabled as is_inference_mode_enabled
from wengert.autograd import no_grad as no_grad
from wengert.autograd import set_grad_enabled as set_grad_enabled
from wengert.backends import BackendError as BackendError
from wengert.backends import DType as DType
from wengert.backends import get_backend as get_backend
from wengert.backends import set_backend as set_backend
from wengert.backends import use_backend as use_backend
from wengert.backends.memory import keep_freed_memory as keep_freed_memory
from wengert.compiler.making import compile as compile  # noqa: A004 -- PyTorch's name
from wengert.func import custom_vjp as custom_vjp
from wengert.func import grad as grad
from wengert.func import hessian as hessian
from wengert.func import hvp as hvp
from wengert.func import jacobian as jacobian
from wengert.func import jvp as jvp
from wengert.func import scan as scan
from wengert.func import value_and_grad as value_and_grad
from wengert.func import vjp as vjp
from wengert.func import vmap as vmap
from wengert.inspection import draw as draw
from wengert.inspection import global_tape as global_tape
from wengert.ops import *
from wengert.ops import random as random
from wengert.storage import load as load
from wengert.storage import save as save
from wengert.tape.aliases import ViewWarning as ViewWarning
from wengert.tape.tensor import Tensor as Tensor

__version__: str
__array_api_version__: str
