"""A subset of C, for each element of NumPy arrays: what the bodies of CuPy's kernels are made of.

Types are C's: operands are promoted and converted as C does it, a variable keeps the type with
which it was declared, and what is not declared does not compile. Branches run for those elements
that take them, so that an index out of range is an error where C would read another's memory.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?[fFuUlL]*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%]=|[-+*/%<>=!~&|^?:;,.(){}\[\]]))"
)
_WORDS = {"unsigned", "signed", "long", "short", "char", "int"}
_TYPES = {
    "bool": "?", "float16": "e", "float": "f", "double": "d", "ptrdiff_t": "l",
    "signed char": "b", "unsigned char": "B", "short": "h", "unsigned short": "H", "int": "i",
    "unsigned int": "I", "long long": "l", "unsigned long long": "L", "char": "b", "long": "l",
}  # fmt: skip
_SYMBOLS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="),
    ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_COMPARED = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal,
    ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_COMPUTED = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "|": np.bitwise_or, "^": np.bitwise_xor,
    "&": np.bitwise_and, "<<": np.left_shift, ">>": np.right_shift,
}  # fmt: skip
_SAME = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "floor", "ceil", "trunc", "rint",
)  # fmt: skip
#: Of floating numbers, which others become double.
_FLOATING: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME},
    **{f"a{name}": getattr(np, f"arc{name}") for name in _SAME[8:14]},
    "copysign": np.copysign, "fabs": np.abs, "pow": np.power, "atan2": np.arctan2,
    "hypot": np.hypot, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
}  # fmt: skip
_TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit}
#: What preambles define.
_DEFINED: dict[str, Callable[..., Any]] = {
    "rounded": lambda x: x,
    "wrapped": lambda x: x,
    "expit": scipy.special.expit,
    "log_expit": scipy.special.log_expit,
    "integral_power": np.power,
}


class DoesNotCompileError(Exception):
    """What the compiler of C refuses."""


class Raw:
    """An array that is indexed."""

    def __init__(self, host: np.ndarray, const: bool) -> None:
        self.host, self.const = host, const

    def at(self, index: np.ndarray) -> np.ndarray:
        if index.size and (index.min() < 0 or index.max() >= self.host.size):
            raise IndexError(f"a kernel reads beyond an array of {self.host.size} elements")
        return index


def convert(x: np.ndarray, dtype: Any) -> np.ndarray:
    """A conversion of C's."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        raise DoesNotCompileError("no conversion from a complex number to a real one")
    with np.errstate(all="ignore"):
        return x.astype(dtype, copy=False)


def _promoted(x: np.ndarray) -> np.ndarray:
    return x.astype("i") if x.dtype.kind in "biu" and x.dtype.itemsize < 4 else x


def common(x: np.ndarray, y: np.ndarray) -> np.dtype:
    """The usual arithmetic conversions."""
    a, b = _promoted(x[:0]).dtype, _promoted(y[:0]).dtype
    if a == b:
        return a
    if "c" in (a.kind, b.kind):
        raise DoesNotCompileError(f"no operator for {a} and {b}")
    if "e" in (a.char, b.char) and {a.kind, b.kind} != {"f"}:
        raise DoesNotCompileError(f"ambiguous operator for {a} and {b}")
    if "f" in (a.kind, b.kind):
        return max([z for z in (a, b) if z.kind == "f"], key=lambda z: z.itemsize)
    return max((a, b), key=lambda z: (z.itemsize, z.kind == "u"))


class Program:
    """Statements or an expression, with what their preamble defines."""

    def __init__(self, text: str, preamble: str = "") -> None:
        self.functions: dict[str, tuple[Any, list[tuple[np.dtype, str, bool]], Any]] = {}
        self.known = {
            name for name in _DEFINED if re.search(rf"\b{name}\((T|float|double|int) \w+", preamble)
        }
        self.nan = "#define NAN" in preamble
        for found in re.finditer(
            r"^static __device__ ([\w <>]+?) (\w+)\(([^)]*)\) \{",
            preamble,
            re.MULTILINE,
        ):
            kind, name, given = found.groups()
            body = _braced(preamble, found.end() - 1)
            if kind == "T" or "asm(" in body:  # a template of CuPy's, or no C
                continue
            parameters = [self._parameter(x) for x in given.split(", ") if x]
            statements = Parser(body).statements()
            self.functions[name] = (
                None if kind == "void" else kind_of(kind),
                parameters,
                statements,
            )
        self.statements = Parser(text).statements()

    @staticmethod
    def _parameter(text: str) -> tuple[np.dtype, str, bool]:
        kind, _, name = text.rpartition(" ")
        return kind_of(kind), name.lstrip("&"), name.startswith("&")


def _braced(text: str, start: int) -> str:
    """What is from a brace to the one that closes it."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[start : at + 1]
    raise DoesNotCompileError("a brace is not closed")


def kind_of(name: str) -> np.dtype:
    """The type of a name in C."""
    found = re.fullmatch(r"complex<(float|double)>", name)
    if found:
        return np.dtype("F" if found[1] == "float" else "D")
    if name not in _TYPES:
        raise DoesNotCompileError(f"{name!r} is no type")
    return np.dtype(_TYPES[name])


def c_name(dtype: np.dtype) -> str:
    """The first name in C of a type."""
    found = [name for name, char in _TYPES.items() if np.dtype(char) == dtype]
    return found[0] if found else f"complex<{'float' if dtype.char == 'F' else 'double'}>"


class Parser:
    """Recursive descent."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"//[^\n]*", "", text)
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise DoesNotCompileError(f"unexpected {text[at:].strip()[:10]!r}")
            self.tokens.append(found.group().strip())
            at = found.end()
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise DoesNotCompileError(f"expected {wanted or 'more'!r}, not {token!r}")
        self.at += 1
        return token

    def type(self) -> np.dtype | None:
        """A type, if one begins here."""
        start = self.at
        if self.peek() == "const":
            self.at += 1
        words = []
        while self.peek() in _WORDS:
            words.append(self.take())
        if not words and self.peek() in _TYPES:
            words.append(self.take())
        elif not words and self.peek() == "complex" and self.peek(1) == "<":
            words.append("".join(self.tokens[self.at : self.at + 4]))
            self.at += 4
        if words:
            return kind_of(" ".join(words))
        self.at = start
        return None

    def statements(self) -> list[Any]:
        found = []
        while self.peek():
            found.append(self.statement())
        return found

    def statement(self) -> Any:
        if self.peek() == "{":
            self.take()
            inner = []
            while self.peek() != "}":
                inner.append(self.statement())
            self.take()
            return "block", inner
        if self.peek() == "if":
            self.take()
            self.take("(")
            condition = self.expression()
            self.take(")")
            then, otherwise = self.statement(), None
            if self.peek() == "else":
                self.take()
                otherwise = self.statement()
            return "if", condition, then, otherwise
        if self.peek() == "return":
            self.take()
            made = "return", self.expression()
        else:
            made = self.simple()
        if self.peek():  # CuPy adds the last one
            self.take(";")
        return made

    def simple(self) -> Any:
        start = self.at
        kind = self.type()
        if kind is not None and re.match(r"[A-Za-z_]", self.peek()):
            name = self.take()
            value = None
            if self.peek() == "=":
                self.take()
                value = self.expression()
            return "declare", kind, name, value
        self.at = start
        target = self.expression()
        if self.peek() == "=":
            self.take()
            return "assign", target, self.expression()
        return "call", target

    def expression(self) -> Any:
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.take()
        then = self.expression()
        self.take(":")
        return "?", condition, then, self.expression()

    def binary(self, level: int) -> Any:
        if level == len(_SYMBOLS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _SYMBOLS[level]:
            left = "binary", self.take(), left, self.binary(level + 1)
        return left

    def unary(self) -> Any:
        if self.peek() in ("-", "+", "!", "~"):
            return "unary", self.take(), self.unary()
        if self.peek() == "(":
            start = self.at
            self.take()
            kind = self.type()
            if kind is not None and self.peek() == ")":
                self.take()
                return "cast", kind, self.unary()
            self.at = start
        return self.postfix()

    def postfix(self) -> Any:
        made = self.primary()
        while self.peek() in ("[", "."):
            if self.take() == "[":
                made = "index", made, self.expression()
                self.take("]")
            else:
                made = "method", self.take(), made
                self.take("(")
                self.take(")")
        return made

    def primary(self) -> Any:
        if self.peek() == "(":
            self.take()
            made = self.expression()
            self.take(")")
            return made
        if self.peek() == "static_cast":
            self.take()
            self.take("<")
            kind = self.type()
            self.take(">")
            (value,) = self.arguments()
            return "cast", kind, value
        if self.peek() not in _WORDS:
            start = self.at
            kind = self.type()
            if kind is not None and self.peek() == "(":
                return "make", kind, self.arguments()
            self.at = start
        elif self.peek(1) == "(":
            return "make", self.type(), self.arguments()
        token = self.take()
        if re.match(r"[\d.]", token):
            return "number", _literal(token)
        if not re.match(r"[A-Za-z_]", token):
            raise DoesNotCompileError(f"unexpected {token!r}")
        return ("function", token, self.arguments()) if self.peek() == "(" else ("name", token)

    def arguments(self) -> list[Any]:
        self.take("(")
        found = []
        while self.peek() != ")":
            found.append(self.expression())
            if self.peek() == ",":
                self.take()
        self.take(")")
        return found


def _literal(token: str) -> np.ndarray:
    digits = token.rstrip("uUlLfF")
    if "." in digits or "e" in digits.lower():
        return np.array(float(digits), "f" if token[-1] in "fF" else "d")
    value = int(digits)
    if value >= 1 << 63:
        raise DoesNotCompileError(f"{token} is too large")
    return np.array(value, "i" if value < 1 << 31 and token[-1] not in "lL" else "l")


class Lanes:
    """One run: variables by name, an element for each index of the loop.

    ``const`` has the names that nobody may assign to.
    """

    def __init__(
        self, program: Program, count: int, variables: dict[str, Any], const: set[str]
    ) -> None:
        self.program, self.count = program, count
        self.variables, self.const = variables, const
        self.returned: np.ndarray | None = None

    def run(self, statements: Sequence[Any]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, statement: Any) -> None:
        what, *rest = statement
        if what == "declare":
            kind, name, value = rest
            if name in self.variables:
                raise DoesNotCompileError(f"{name!r} has already been declared")
            made = np.zeros(1, kind) if value is None else convert(self.value(value), kind)
            self.variables[name] = np.array(np.broadcast_to(made, self.count))
        elif what == "assign":
            self.assign(rest[0], self.value(rest[1]))
        elif what == "return":
            self.returned = self.value(rest[0])
        elif what == "block":
            inner = Lanes(self.program, self.count, dict(self.variables), self.const)
            inner.run(rest[0])
            self.returned = inner.returned
            self.variables |= {name: inner.variables[name] for name in self.variables}
        elif what == "if":
            self.branch(*rest)
        else:
            self.value(rest[0])

    def branch(self, condition: Any, then: Any, otherwise: Any) -> None:
        holds = np.broadcast_to(convert(self.value(condition), np.dtype(bool)), self.count)
        for where, statement in ((holds, then), (~holds, otherwise)):
            if statement is None:
                continue
            chosen = {
                name: x if isinstance(x, Raw) else np.broadcast_to(x, self.count)[where]
                for name, x in self.variables.items()
            }
            inner = Lanes(self.program, int(where.sum()), chosen, self.const)
            inner.statement(statement)
            for name, x in self.variables.items():
                if not isinstance(x, Raw):
                    whole = np.array(np.broadcast_to(x, self.count))
                    whole[where] = inner.variables[name]
                    self.variables[name] = whole

    def assign(self, target: Any, value: np.ndarray) -> None:
        if target[0] == "name":
            name = target[1]
            if name not in self.variables:
                raise DoesNotCompileError(f"identifier {name!r} is undefined")
            if name in self.const or isinstance(self.variables[name], Raw):
                raise DoesNotCompileError(f"{name!r} must be a modifiable lvalue")
            kind = self.variables[name].dtype
            self.variables[name] = np.array(np.broadcast_to(convert(value, kind), self.count))
        elif target[0] == "index":
            array, index = self.indexed(target)
            if array.const:
                raise DoesNotCompileError(f"{target[1][1]!r} must be a modifiable lvalue")
            array.host.flat[index] = convert(value, array.host.dtype)
        else:
            raise DoesNotCompileError("expression must be a modifiable lvalue")

    def indexed(self, target: Any) -> tuple[Raw, np.ndarray]:
        array = self.variables.get(target[1][1]) if target[1][0] == "name" else None
        if not isinstance(array, Raw):
            raise DoesNotCompileError(f"{target[1][1]!r} is no array")
        return array, array.at(np.broadcast_to(self.value(target[2]), self.count))

    def value(self, x: Any) -> np.ndarray:
        what, *rest = x
        return getattr(self, f"_{_METHODS.get(what, what)}")(*rest)  # type: ignore[no-any-return]

    def _number(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(1)

    def _name(self, name: str) -> np.ndarray:
        if name in ("true", "false"):
            return np.array([name == "true"])
        if name == "NAN" and self.program.nan:
            return np.array([np.nan], "f")
        if name not in self.variables:
            raise DoesNotCompileError(f"identifier {name!r} is undefined")
        found = self.variables[name]
        if isinstance(found, Raw):
            raise DoesNotCompileError(f"{name!r} is an array")
        return found

    def _index(self, *target: Any) -> np.ndarray:
        array, index = self.indexed(("index", *target))
        return np.asarray(array.host.reshape(-1)[index])

    def _cast(self, kind: np.dtype, x: Any) -> np.ndarray:
        return convert(self.value(x), kind)

    def _make(self, kind: np.dtype, given: list[Any]) -> np.ndarray:
        parts = [self.value(x) for x in given]
        if len(parts) == 1:
            return convert(parts[0], kind)
        if len(parts) != 2 or kind.kind != "c":
            raise DoesNotCompileError(f"{kind} is not made of {len(parts)} values")
        made = np.empty(max(map(len, parts)), kind)
        made.real, made.imag = parts
        return made

    def _method(self, name: str, x: Any) -> np.ndarray:
        value = self.value(x)
        if value.dtype.kind != "c" or name not in ("real", "imag"):
            raise DoesNotCompileError(f"{value.dtype} has no member {name!r}")
        return np.asarray(getattr(value, name))

    def _choose(self, condition: Any, then: Any, otherwise: Any) -> np.ndarray:
        holds = convert(self.value(condition), np.dtype(bool))
        x, y = self.value(then), self.value(otherwise)
        kind = x.dtype if x.dtype == y.dtype else common(x, y)
        return np.where(holds, convert(x, kind), convert(y, kind))

    def _unary(self, sign: str, x: Any) -> np.ndarray:
        value = self.value(x)
        if sign == "!":
            return ~convert(value, np.dtype(bool))
        value = _promoted(value)
        with np.errstate(all="ignore"):
            return {"-": np.negative, "+": np.positive, "~": np.invert}[sign](value)  # type: ignore[no-any-return, operator]

    def _binary(self, sign: str, left: Any, right: Any) -> np.ndarray:
        x, y = self.value(left), self.value(right)
        if sign in ("&&", "||"):
            x, y = convert(x, np.dtype(bool)), convert(y, np.dtype(bool))
            return x & y if sign == "&&" else x | y
        kind = common(x, y)
        x, y = convert(x, kind), convert(y, kind)
        with np.errstate(all="ignore"):
            if sign in _COMPARED:
                return _COMPARED[sign](x, y)  # type: ignore[no-any-return]
            if sign in _COMPUTED:
                return _COMPUTED[sign](x, y)  # type: ignore[no-any-return, operator]
            if kind.kind in "iu":  # which is cut off, and not rounded down
                zero = y == 0
                made = np.fmod(x, np.where(zero, 1, y))
                if sign == "/":
                    made = (x - made) // np.where(zero, 1, y)
                return np.asarray(made, kind)
            if sign == "%":
                raise DoesNotCompileError(f"no operator % for {kind}")
            return np.divide(x, y)  # type: ignore[no-any-return]

    def _function(self, name: str, given: list[Any]) -> np.ndarray:
        if name in self.program.functions:
            return self._own(name, given)
        parts = [self.value(x) for x in given]
        with np.errstate(all="ignore"):
            if name in ("max", "min"):
                if parts[0].dtype != parts[1].dtype:
                    raise DoesNotCompileError(f"ambiguous {name} of {parts[0].dtype} and others")
                return (np.maximum if name == "max" else np.minimum)(*parts)  # type: ignore[no-any-return]
            if name in _TESTS:
                return np.asarray(_TESTS[name](parts[0]))
            if name in ("fabsf", "powf"):
                wide = [x if x.dtype.char == "e" else convert(x, np.dtype("f")) for x in parts]
                return np.asarray((np.abs if name == "fabsf" else np.power)(*wide))
            if name in ("abs", "conj"):
                return np.asarray((np.abs if name == "abs" else np.conjugate)(*parts))
            if name in _FLOATING:
                wide = [x if x.dtype.kind in "fc" else x.astype("d") for x in parts]
                return np.asarray(_FLOATING[name](*wide))
            if name == "_floor_divide":
                return np.asarray(np.floor_divide(*parts))
            if name in self.program.known:
                if name == "rounded" and parts[0].dtype.char not in "fd":
                    raise DoesNotCompileError(f"{name} of {parts[0].dtype}")
                if name == "wrapped" and parts[0].dtype.kind not in "biu":
                    raise DoesNotCompileError(f"{name} of {parts[0].dtype}")
                return np.asarray(_DEFINED[name](*parts))
        raise DoesNotCompileError(f"identifier {name!r} is undefined")

    def _own(self, name: str, given: list[Any]) -> np.ndarray:
        kind, parameters, statements = self.program.functions[name]
        if len(parameters) != len(given):
            raise DoesNotCompileError(f"{name} takes {len(parameters)} arguments, not {len(given)}")
        variables: dict[str, Any] = {}
        for (dtype, own, refers), x in zip(parameters, given, strict=True):
            value = np.broadcast_to(self.value(x), self.count)
            if refers and value.dtype != dtype:
                raise DoesNotCompileError(f"a reference to {dtype} refers to {value.dtype}")
            variables[own] = convert(value, dtype)
        inner = Lanes(self.program, self.count, variables, set())
        inner.run(statements)
        for (_, own, refers), x in zip(parameters, given, strict=True):
            if refers:
                self.assign(x, inner.variables[own])
        if kind is None:
            return np.zeros(1, "i")
        if inner.returned is None:
            raise DoesNotCompileError(f"{name} returns nothing")
        return convert(inner.returned, kind)


_METHODS = {"?": "choose"}
