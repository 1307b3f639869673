"""SciPy's optimisers, with derivatives from the tape and parameters in trees."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.backends.backend import importing
from wengert.func.arguments import check_function
from wengert.optimize.objectives import Maker, Objective, Residuals, maker
from wengert.optimize.vectors import Vector, Vectors

#: SciPy's methods that take no gradient, and the form of the Hessian that others are given.
_VALUES_ONLY = frozenset(("nelder-mead", "powell", "cobyla", "cobyqa"))
_HESSIANS = {
    "newton-cg": "product",
    "trust-ncg": "product",
    "trust-krylov": "product",
    "trust-constr": "product",
    "dogleg": "dense",
    "trust-exact": "dense",
}
#: Methods of `scipy.optimize.root` that take a Jacobian.
_JACOBIANS = frozenset(("hybr", "lm"))


def _scipy(asking: str) -> Any:
    """Import SciPy's optimisers; an error names the function that needs them."""
    needs = f"wengert.optimize.{asking} needs SciPy, which cannot be imported ({{}}); install "
    with importing(f"{needs}wengert[scipy]"):
        from scipy import optimize

        return optimize


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    *,
    hess: Any = "auto",
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    compile: bool = False,
) -> Any:
    r"""Minimise a function by SciPy's optimisers, with derivatives from the tape.

    One run of the function gives the value and the gradient; methods that use a Hessian get that,
    or its products with vectors.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a real scalar Tensor; ``x`` is a tree of Tensors like ``x0``.
    x0 : tree
        The starting point: a Tensor, an array, a number, or nested dicts, lists, tuples and
        dataclasses of these, on any backend. A list of numbers is an array, as for SciPy.
    args : tuple
        Further arguments of ``fun``, passed on as they are.
    method : str or callable, optional
        As for `scipy.optimize.minimize`. Methods that use no derivatives get none.
    hess : {"auto", "dense", "product", None} or object
        The second derivatives that the method gets: the Hessian matrix (``"dense"``), its products
        with vectors (``"product"``), or None. ``"auto"`` chooses products for ``Newton-CG``,
        ``trust-ncg``, ``trust-krylov`` and ``trust-constr``, the matrix for ``dogleg`` and
        ``trust-exact``, and None for others. Other objects, such as `scipy.optimize.BFGS`, are
        passed on.
    bounds : tree, sequence or scipy.optimize.Bounds, optional
        For a tree of parameters, a tree with a pair ``(low, high)`` or None for each leaf; ``low``
        and ``high`` are numbers, arrays or None. For a single array, SciPy's own form; ``Bounds``
        are passed on.
    constraints : constraint or sequence
        SciPy's. The functions of a dict or ``NonlinearConstraint`` take the tree and return
        Tensors; their Jacobian comes from the tape unless one is given. A ``LinearConstraint``
        applies to the vector of all parameters, leaf by leaf.
    tol, options
        As for SciPy.
    callback : callable, optional
        As for SciPy, with the parameters in the tree's form: ``callback(x)``, or
        ``callback(intermediate_result)``.
    compile : bool
        Whether to record value, gradient and Hessian once, and to replay them: see
        `wengert.compile`. Arrays that ``fun`` uses beside ``x`` may change between calls.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` and ``jac`` (for ``trust-constr``, ``grad``) are trees in the kinds of ``x0``; the
        rest is SciPy's, with vectors of all parameters, leaf by leaf.

    Raises
    ------
    ImportError
        If SciPy is not installed.
    ValueError
        If ``fun`` returns no scalar, ``bounds`` do not fit the tree, or the method can't use
        ``hess``.
    TypeError
        If a leaf of ``x0`` is no number, or ``fun`` returns no Tensor.

    Notes
    -----
    SciPy computes in double precision, and the function in that of ``x0``. With float32, line
    searches may end early, at about half the digits. A complex parameter counts as two real ones.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert as wg
    >>> def rosenbrock(x):
    ...     return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    >>> found = wg.optimize.minimize(rosenbrock, np.zeros(4), method="trust-ncg")
    >>> found.x.round(6)
    array([1., 1., 1., 1.])
    """
    optimize = _scipy("minimize")
    check_function(fun, "minimize")
    vectors = Vectors(x0, "minimize")
    made = maker(compile)
    objective = Objective(fun, args if isinstance(args, tuple) else (args,), vectors, made)
    name = method.lower() if isinstance(method, str) else None
    derivatives: dict[str, Any] = _second(objective, method, name, hess)
    gradients = name not in _VALUES_ONLY
    result = optimize.minimize(
        objective.both if gradients else objective.value,
        vectors.x0,
        method=method,
        jac=True if gradients else None,
        bounds=vectors.bounds(bounds, optimize.Bounds),
        constraints=_constraints(constraints, vectors, optimize, made),
        tol=tol,
        callback=_callback(callback, vectors),
        options=options,
        **derivatives,
    )
    return _in_trees(result, vectors, ("grad",) if name == "trust-constr" else ("jac",))


def _second(objective: Objective, method: Any, name: str | None, hess: Any) -> dict[str, Any]:
    """The arguments by which SciPy gets second derivatives."""
    if isinstance(hess, str) and hess == "auto":
        hess = _HESSIANS.get(name or "")
    if hess is None:
        return {}
    if not isinstance(hess, str):
        return {"hess": hess}
    if hess not in ("dense", "product"):
        raise ValueError(f'hess should be "auto", "dense", "product" or None, not {hess!r}')
    takes = name in _HESSIANS if name or method is None else callable(method)
    if not takes or (hess == "product" and _HESSIANS.get(name or "") == "dense"):
        raise ValueError(f"the method {method!r} doesn't use a Hessian of the form {hess!r}")
    return {"hess": objective.dense} if hess == "dense" else {"hessp": objective.product}


def _callback(callback: Callable[..., Any] | None, vectors: Vectors) -> Any:
    """A callback that takes vectors, for one that takes trees; SciPy inspects its signature."""
    if callback is None:
        return None
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:

        def with_result(intermediate_result: Any) -> Any:
            copied = type(intermediate_result)(intermediate_result)
            copied.x = vectors.answer(copied.x)
            with vectors.precise():
                return callback(intermediate_result=copied)

        return with_result

    def with_parameters(vector: Vector, *rest: Any) -> Any:
        with vectors.precise():
            return callback(vectors.answer(vector), *rest)

    return with_parameters


def _constraints(constraints: Any, vectors: Vectors, optimize: Any, made: Maker) -> Any:
    """Constraints whose functions take vectors, for those whose functions take trees."""
    single = isinstance(constraints, dict) or hasattr(constraints, "lb")
    found = []
    for constraint in (constraints,) if single else constraints:
        if isinstance(constraint, dict):
            residuals = Residuals(
                constraint["fun"], constraint.get("args", ()), vectors, "constraints", made
            )
            rest = {k: v for k, v in constraint.items() if k != "args"}
            found.append({"jac": residuals.jacobian, **rest, "fun": residuals.value})
        elif isinstance(constraint, optimize.NonlinearConstraint):
            residuals = Residuals(constraint.fun, (), vectors, "constraints", made)
            jac = constraint.jac if callable(constraint.jac) else residuals.jacobian
            options = constraint.lb, constraint.ub, jac, constraint.hess, constraint.keep_feasible
            found.append(optimize.NonlinearConstraint(residuals.value, *options))
        else:
            found.append(constraint)
    return found[0] if single else found


def _in_trees(result: Any, vectors: Vectors, names: tuple[str, ...]) -> Any:
    """An `OptimizeResult` with the parameters, and some others, in the form of the tree."""
    for name in ("x", *names):
        if result.get(name) is not None:
            result[name] = vectors.answer(result[name])
    return result


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    *,
    jac: str = "auto",
    bounds: Any = None,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    compile: bool = False,
    **options: Any,
) -> Any:
    r"""Fit parameters to data by SciPy's non-linear least squares, with the tape's Jacobian.

    It minimises :math:`\tfrac12 \sum_i \rho(f_i(x)^2)`.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args, **kwargs)`` returns the residuals: a Tensor of any shape, or a tree of
        these. ``x`` is a tree of Tensors like ``x0``.
    x0 : tree
        The starting point, as for `minimize`.
    jac : {"auto", "forward", "reverse"}
        How the Jacobian is computed: by a forward run for each parameter, or by a backward pass
        for each residual. ``"auto"`` takes the cheaper one, as `wengert.func.jacobian` does.
    bounds : tree, pair or scipy.optimize.Bounds, optional
        As for `minimize`; for a single array SciPy's pair of lower and upper bounds.
    args, kwargs
        Further arguments of ``fun``, passed on as they are.
    compile : bool
        Whether to record residuals and Jacobian once and to replay them, as for `minimize`.
    **options
        `scipy.optimize.least_squares`'s own: ``method``, ``loss``, ``f_scale``, ``x_scale``,
        ``ftol``, ``xtol``, ``gtol``, ``max_nfev``, ``verbose``, ``tr_solver`` and others.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` and ``grad`` are trees in the kinds of ``x0``. ``fun`` is the vector of all residuals
        and ``jac`` their Jacobian, with a column for each parameter, leaf by leaf.

    Raises
    ------
    ImportError, TypeError, ValueError
        As `minimize`.

    Examples
    --------
    >>> import numpy as np
    >>> import wengert as wg
    >>> t = np.linspace(0, 1, 5)
    >>> data = 3 * np.exp(-2 * t)
    >>> found = wg.optimize.least_squares(
    ...     lambda p: p["height"] * np.exp(-p["rate"] * t) - data, {"height": 1.0, "rate": 1.0}
    ... )
    >>> round(found.x["height"], 6), round(found.x["rate"], 6)
    (3.0, 2.0)
    """
    optimize = _scipy("least_squares")
    check_function(fun, "least_squares")
    vectors = Vectors(x0, "least_squares")
    args = args if isinstance(args, tuple) else (args,)
    residuals = Residuals(
        functools.partial(fun, **(kwargs or {})),
        args,
        vectors,
        "least_squares",
        maker(compile),
        jac,
    )
    if options.get("callback") is not None:
        options["callback"] = _callback(options["callback"], vectors)
    result = optimize.least_squares(
        residuals.value,
        vectors.x0,
        jac=residuals.jacobian,
        bounds=(-np.inf, np.inf) if bounds is None else vectors.bounds(bounds, optimize.Bounds),
        **options,
    )
    return _in_trees(result, vectors, ("grad",))


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    *,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    compile: bool = False,
) -> Any:
    r"""Solve a system of equations :math:`f(x) = 0` by SciPy, with the tape's Jacobian.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns as many real numbers as there are in ``x``: a Tensor of any
        shape, or a tree of these. ``x`` is a tree of Tensors like ``x0``.
    x0 : tree
        The starting point, as for `minimize`.
    args : tuple
        Further arguments of ``fun``, passed on as they are.
    method : str
        As for `scipy.optimize.root`. ``"hybr"`` and ``"lm"`` use the Jacobian.
    tol, options
        As for SciPy.
    callback : callable, optional
        ``callback(x, f)``, for methods that call one: ``x`` is a tree, ``f`` a vector.
    compile : bool
        Whether to record the function and its Jacobian once and to replay them, as for `minimize`.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x`` is a tree in the kinds of ``x0``, ``fun`` the vector of all residuals.

    Raises
    ------
    ImportError, TypeError, ValueError
        As `minimize`.

    Examples
    --------
    >>> import wengert as wg
    >>> round(wg.optimize.root(lambda x: wg.cos(x) - x, 1.0).x, 6)
    0.739085
    """
    optimize = _scipy("root")
    check_function(fun, "root")
    vectors = Vectors(x0, "root")
    args = args if isinstance(args, tuple) else (args,)
    residuals = Residuals(fun, args, vectors, "root", maker(compile))
    result = optimize.root(
        residuals.value,
        vectors.x0,
        method=method,
        jac=residuals.jacobian if method.lower() in _JACOBIANS else None,
        tol=tol,
        callback=_callback(callback, vectors),
        options=options,
    )
    return _in_trees(result, vectors, ())
