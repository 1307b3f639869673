"""Primitives with mistakes in them, which the checks have to find."""

import itertools

import pytest

from wengert.interpreters.namespaces import differentiable
from wengert.tape.primitive import PRIMITIVES, Primitive


@pytest.fixture
def plant():
    """Make primitives for one test, and take them out of the table again."""
    count = itertools.count()
    made = []

    def make(forward, elementwise=None, linear=None, jvps=None, **rules):
        name = f"planted_{next(count)}_{id(made)}"
        names = forward.__code__.co_varnames[1 : forward.__code__.co_argcount]
        defaults = forward.__kwdefaults__ or {}
        if elementwise is None:
            elementwise = linear is None
        facts = {"elementwise": elementwise, "linear": linear}
        primitive = Primitive(name, names, rules, **facts, composite=forward, jvps=jvps)
        made.append(name)
        setattr(differentiable, name, primitive.bind)

        def planted(*arrays, **parameters):
            return primitive.bind(*arrays, **{**defaults, **parameters})

        planted.primitive = name
        return planted

    yield make
    for name in made:
        del PRIMITIVES[name]
        delattr(differentiable, name)
