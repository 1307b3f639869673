"""Which results a caller can see the memory of."""

from wengert.compiler.program import Instruction, Program, Value, values_in

__all__ = ["fresh", "shown"]

#: Functions whose results have memory of their own on every backend. Of any other name, a result
#: may be a view of an operand, or the operand itself.
_FRESH = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "pow", "negative", "square", "reciprocal"),
        *("abs", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "logaddexp", "hypot"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh"),
        *("acosh", "atanh", "sign", "maximum", "minimum", "floor_divide", "remainder"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite"),
        *("isinf", "isnan", "logical_and", "logical_or", "logical_xor", "logical_not", "where"),
        *("dot", "matmul", "tensordot", "vecdot", "linear", "relu", "mask", "axpby", "normalised"),
        *("sum", "prod", "mean", "var", "std", "max", "min", "cumulative_sum", "cumulative_prod"),
        *("zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like"),
        *(
            "argmax",
            "argmin",
            "count_nonzero",
            "arange",
            "linspace",
            "eye",
            "stack_arrays",
            "setitem",
            "scatter_add",
            "take",
        ),
        *("softmax_cross_entropy_parts", "rand_like", "draw"),
    }
)


def fresh(step: Instruction) -> bool:
    """Whether nothing else has the memory of the results."""
    return step.name in _FRESH


def shown(program: Program) -> set[Value]:
    """The outputs, and what they may be views of.

    These have to be made by their own instructions in each run: were such a value replaced by an
    equal one, which somebody else holds, the caller would get memory that is not its own. So no
    pass replaces them by an input, a constant, or one another.
    """
    found = set(values_in(program.outputs))
    for step in reversed(program.instructions):
        if step.name not in _FRESH and not found.isdisjoint(step.results):
            found.update(step.used())
    return {value for value in found if value.shape is not None}  # numbers have no memory
