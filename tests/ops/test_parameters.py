"""Every parameter of every public function is declared, and is what it is declared to be."""

import re
import warnings

import numpy as np
import pytest

import wengert as wg
from backend_check.calls import FUNCTIONS, arguments, call, parameters, results
from tests.ops.parameters import kinds, row_of
from tests.walking import walk
from wengert.testing import gradcheck, gradgradcheck
from wengert.testing.problem import values

#: Options that nothing reads: NumPy has one device.
UNREAD = ("inplace", "device")
#: Where the walk over all parameters goes; a second library need not see what NumPy's own rows do.
BACKENDS = ("numpy", "torch")


def walked(wanted, *left_out):
    """Check each parameter of a kind, on each backend, also by position."""

    def decorate(check):
        @pytest.mark.parametrize("on", BACKENDS)
        def test(on):
            pytest.importorskip(on)
            with wg.use_backend(on):
                walk(rows(on, wanted, left_out), check, backend=on)

        return test

    return decorate


def rows(backend, wanted, left_out):
    """Functions, parameters, and whether these go by position."""
    for name in FUNCTIONS:
        if name.startswith(left_out) or (backend != "numpy" and row_of(FUNCTIONS[name])):
            continue
        for parameter, kind in kinds(name).items():
            if kind == wanted and parameter not in UNREAD:
                yield name, parameter, False
                if has_choice(name, parameter):
                    yield name, parameter, True


def has_choice(name, parameter):
    about = parameters(FUNCTIONS[name])[parameter]
    return about.kind is about.POSITIONAL_OR_KEYWORD


# -- derivatives -----------------------------------------------------------------------------------


def is_number(value):
    return isinstance(value, float | int) and not isinstance(value, bool)


def tracked(value):
    """What is differentiated of an argument, as leaves, and how the argument is made of it."""
    if isinstance(value, list):
        made = [tracked(each) for each in value]
        counts = [len(leaves) for leaves, _ in made]
        ends = np.cumsum(counts)

        def rebuild(*leaves):
            return [
                again(*leaves[end - count : end])
                for (_, again), count, end in zip(made, counts, ends, strict=True)
            ]

        return [leaf for leaves, _ in made for leaf in leaves], rebuild
    if is_number(value) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        return [wg.asarray(np.asarray(value, dtype="float64"), requires_grad=True)], lambda t: t
    return [], lambda: wg.asarray(value) if isinstance(value, np.ndarray) else value


def others(given):
    """Arguments that are not differentiated."""
    return {parameter: untracked(value) for parameter, value in given.items()}


def untracked(value):
    if isinstance(value, list):
        return [untracked(each) for each in value]
    return wg.asarray(value) if isinstance(value, np.ndarray) else value


#: What changes with one element of a matrix that a function takes for symmetric changes with two.
SYMMETRIC = ("linalg.cholesky", "linalg.eigh", "linalg.eigvalsh")


def used(name, out):
    """The result of a call, and of `at` that of an update."""
    return out.multiply(2.0) if name == "at" else out


def function_of(name, parameter, positional):
    """A function as one of leaves in place of a parameter, and the leaves."""
    given = arguments(name)
    leaves, rebuild = tracked(given[parameter])
    rest = others({p: v for p, v in given.items() if p != parameter})

    def function(*leaves):
        wg.manual_seed(3)
        if name in SYMMETRIC:
            leaves = [(x + wg.matrix_transpose(x)) * 0.5 for x in leaves]
        else:  # so that no function returns what it is given
            leaves = [x * 1.0 for x in leaves]
        out = call(name, {**rest, parameter: rebuild(*leaves)}, positional=positional)
        return tuple(results(FOLLOWED.get(name, lambda out: out)(used(name, out))))

    return function, leaves


#: What of a result does not depend on the phase or the sign that a library chooses.
FOLLOWED = {
    "linalg.eig": lambda out: out.eigenvalues,
    "linalg.eigh": lambda out: out.eigenvalues,
    "linalg.svd": lambda out: out.S,
    "linalg.slogdet": lambda out: out.logabsdet,
}


@walked("differentiable", "nn.")
def test_a_differentiable_parameter_has_a_derivative(name, parameter, positional):
    function, leaves = function_of(name, parameter, positional)
    assert leaves, f"{name} has no call with {parameter}"
    outs = function(*leaves)
    assert any(out.requires_grad for out in outs), "the derivative is lost"
    if positional:  # which is the same call
        return
    assert gradcheck(function, leaves, check_forward_ad=True)
    assert gradgradcheck(function, leaves, fast_mode=True)


@walked("constant", "nn.", "init.", "optim.")
def test_a_constant_parameter_has_the_derivative_zero(name, parameter, positional):
    function, leaves = function_of(name, parameter, positional)
    for out in function(*leaves):
        if out.requires_grad:
            gradients = wg.autograd.grad(
                out, leaves, wg.ones_like(out), materialize_grads=True, retain_graph=True
            )
            for gradient in gradients:
                assert not values(gradient).any()
    if len(leaves) == 1 and function(*leaves):
        primal = leaves[0].detach()
        _, tangent = wg.jvp(lambda t: function(t)[0], (primal,), (wg.ones_like(primal),))
        assert not values(tangent).any()


@walked("undefined")
def test_an_undefined_derivative_is_an_error_where_it_is_used(name, parameter, positional):
    function, leaves = function_of(name, parameter, positional)
    out = function(*leaves)[0]
    own = name.rpartition(".")[2]
    with pytest.raises(NotImplementedError, match=rf"{own}\b.*\b{parameter}\b"):
        wg.autograd.grad(out, leaves, wg.ones_like(out))


#: Values that options have: also what would be a plain value of its own.
VALUES = (1.5, 0.0, 1.0, 2.0, [1.0, 2.0])


def given_option(name, parameter, value):
    """A call's arguments, with a value as an option."""
    given = others(arguments(name)) if not name.startswith("optim.") else {"params": [leaf()]}
    given[parameter] = [value] if is_variadic(name, parameter) else value
    return given


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@walked("option")
def test_an_option_loses_no_derivative_without_a_word(name, parameter, positional):
    """A tracked Tensor there is differentiated, or an error, or a warning of the program's line."""
    for number in VALUES:
        value = leaf(number)
        given = given_option(name, parameter, value)
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                out = used(name, call(name, given, positional=positional))
        except Exception as error:
            told = [error]
        else:
            said = any("to a scalar" in str(one.message) for one in told)
            assert flows(out, value) or said or keeps(out, value), f"{number} is dropped"


@walked("option", "optim.")
def test_an_option_loses_no_derivative_in_a_transform(name, parameter, positional):
    for number in VALUES:
        ran = False

        def function(value):
            nonlocal ran
            out = used(name, call(name, given_option(name, parameter, value)))
            ran = not keeps(out, value)
            return wg.sum(out) if isinstance(out, wg.Tensor) else wg.zeros(())

        for transform in (
            lambda f, x: wg.jvp(f, (x,), (wg.ones_like(x),))[1],
            lambda f, x: wg.grad(f)(x),
        ):
            ran = False
            try:
                answer = transform(function, wg.asarray(number))
            except Exception:
                continue
            assert not ran or values(answer).any(), f"{number} is dropped"


def flows(out, value):
    """Whether a derivative of what a call gives flows to a leaf."""
    tracked = [one for one in results(out) if one.requires_grad]
    if not tracked:
        return False
    ones = [wg.ones_like(one) for one in tracked]
    (found,) = wg.autograd.grad(tracked, value, ones, allow_unused=True)
    return found is not None


def keeps(out, value):
    """Whether a module stores what it is given; its function meets it when it is called."""
    return isinstance(out, wg.nn.Module) and any(v is value for v in vars(out).values())


NUMBERS = [
    (name, parameter)
    for name in FUNCTIONS
    if not name.startswith(("nn.", "optim."))
    for parameter, kind in kinds(name).items()
    if kind in ("differentiable", "constant")
    and is_number(parameters(FUNCTIONS[name])[parameter].default)
    and (name, parameter) not in (("arange", "step"), ("normal", "std"))
    and name != "pad"
]
NUMBERS += [
    (name, parameter)
    for name in FUNCTIONS
    if name.startswith("init.")
    for parameter in kinds(name)
    if parameters(FUNCTIONS[name])[parameter].annotation in ("float", "complex", float, complex)
]


def test_what_is_no_number_is_refused_by_its_name():
    def check(name, parameter):
        given = others(arguments(name)) | {parameter: "text"}
        own = re.escape(name.rpartition(".")[2])
        with pytest.raises(TypeError, match=rf"^{own} takes a number as {parameter}, not 'text'"):
            call(name, given)

    walk(NUMBERS, check, whole=True)


def is_variadic(name, parameter):
    about = parameters(FUNCTIONS[name])[parameter]
    return about.kind is about.VAR_POSITIONAL


def leaf(value=1.5):
    return wg.tensor(value, requires_grad=True)


# -- values and derivatives by formula -------------------------------------------------------------


def number_of(value, dtype="float64", requires_grad=True):
    return wg.asarray(value, dtype=dtype, requires_grad=requires_grad)


X = np.array([[0.31, -0.72, 0.53, np.inf], [-0.84, 0.0, -0.46, 2.0]])


def test_slopes_at_special_points(backend):
    """An infinity on the right, or a zero, is no part of what the slope does on the left."""
    left = np.where(X > 0, 0, X)
    x = number_of(X, requires_grad=False)
    p = number_of(0.3)
    out = wg.leaky_relu(x, p)
    np.testing.assert_allclose(values(out), values(wg.leaky_relu(x, 0.3)), rtol=1e-15)
    (gradient,) = wg.autograd.grad(wg.sum(out), p)
    assert gradient.item() == pytest.approx(left.sum())
    # At 0 the slope for x is the left one, as for a number.
    x = number_of(0.0)
    for slope in (p, 0.3):
        (gradient,) = wg.autograd.grad(wg.leaky_relu(x, slope), x)
        assert gradient.item() == 0.3
    (gradient,) = wg.autograd.grad(wg.nn.functional.elu(x, 0.3), x)
    assert gradient.item() == 0.3
    x = number_of(X)
    (gradient,) = wg.autograd.grad(wg.sum(wg.nn.functional.softplus(x, 0.7)), x)
    assert np.isfinite(values(gradient)).all()


@pytest.mark.parametrize("single", [wg.float32, wg.float64])
def test_a_parameter_does_not_change_the_dtype(backend, single):
    x = wg.asarray([[0.5, -0.5, 1.0]], dtype=single)
    F = wg.nn.functional
    untracked = number_of(0.3).detach()
    for p in (untracked, wg.astype(untracked, "float32"), np.float64(0.3), np.asarray(0.3)):
        for out in (
            wg.leaky_relu(x, p),
            F.elu(x, p),
            F.softplus(x, p, p),
            wg.std(x, correction=p),
            F.huber_loss(x, x * 0, delta=p),
            F.smooth_l1_loss(x, x * 0, beta=p),
            F.cross_entropy(x, wg.asarray([1]), label_smoothing=p),
        ):
            assert out.dtype is single


def test_numbers_of_another_library_are_numbers(backend):
    x = wg.asarray([0.5, -0.5, 1.5], dtype="float64")
    with wg.use_backend("array_api_strict"):
        p = wg.asarray(0.25, dtype="float64")
        raw = p.array
    for given in (p, raw, np.float64(0.25), np.asarray(0.25)):
        for function in (
            lambda p: wg.leaky_relu(x, p),
            lambda p: wg.std(x, correction=p),
            lambda p: wg.nn.functional.elu(x, p),
            lambda p: wg.nn.functional.huber_loss(x, x * 2, delta=p),
        ):
            np.testing.assert_allclose(values(function(given)), values(function(0.25)), rtol=1e-14)
        with wg.no_grad():
            assert wg.nn.functional.dropout(x, given, training=False).shape == (3,)


def test_a_tracked_number_of_another_library_is_an_error():
    with wg.use_backend("array_api_strict"):
        p = wg.asarray(0.25, requires_grad=True)
    with wg.use_backend("numpy"):
        x = wg.ones(3)
    with pytest.raises(wg.BackendError, match="two backends"):
        wg.leaky_relu(x, p)


def test_without_recording_an_option_may_be_a_parameters_number():
    x, p = wg.ones((2, 3)), number_of(0.25)
    with wg.no_grad():
        assert wg.nn.functional.dropout(x, p).shape == (2, 3)
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True"):
        wg.nn.functional.dropout(x, p)


def test_an_option_is_refused_while_a_transform_follows_it():
    x = wg.ones((2, 3))
    for transform in (
        lambda f: wg.grad(f)(1.0),
        lambda f: wg.jvp(f, (1.0,), (1.0,)),
        lambda f: wg.jacobian(f)(1.0),
    ):
        with pytest.raises(TypeError, match="float64"):
            transform(lambda p: wg.sum(wg.sum(x, keepdims=p)))
        with pytest.raises(TypeError, match="float64"):
            transform(lambda p: wg.sum(wg.reshape(x, (p, 6))))


def test_a_flag_that_a_called_function_reads_is_a_value_that_leaves():
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True"):
        wg.linalg.matrix_norm(wg.ones((2, 2)), keepdims=number_of(1.0))


def test_random_numbers_of_arrays_are_drawn_for_each_element():
    for draw in (wg.normal, wg.uniform):
        for low in (np.zeros(5), wg.zeros(5)):
            drawn = draw(low, 2.0)
            assert drawn.shape == (5,)
            assert len(set(drawn.tolist())) == 5
        assert draw(np.float64(0.5), 2.0).dtype is wg.float32
    wg.manual_seed(0)
    low, high = number_of([0.0, 1.0]), number_of(3.0)
    out = wg.uniform(low, high)
    by_low, by_high = wg.autograd.grad(wg.sum(out), (low, high))
    share = (values(out) - [0.0, 1.0]) / [3.0, 2.0]
    np.testing.assert_allclose(values(by_low), 1 - share)
    assert by_high.item() == pytest.approx(share.sum())


def test_a_groups_hyper_parameter_is_a_number():
    weight, rate = wg.ones(2, requires_grad=True), number_of(0.5)
    optimizer = wg.optim.SGD([weight], lr=rate.detach())
    for change in (
        lambda: optimizer.add_param_group({"params": [wg.ones(1)], "lr": rate}),
        lambda: optimizer.param_groups[0].__setitem__("lr", rate),
    ):
        with pytest.raises(TypeError, match="lr should be a number without a derivative"):
            change()
    with wg.no_grad():
        optimizer.param_groups[0]["lr"] = rate
    assert optimizer.param_groups[0]["lr"] == 0.5
