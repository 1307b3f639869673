"""Edits that no test can or should notice, and why: the report leaves them out."""

SPEED = "the same numbers, a little later"
COPY = "the same numbers in an array more"
OTHERS = "what other libraries do, and NumPy's tests do not see"

#: Of a file, the edited line before and after, as the report shows them.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "wengert/__init__.py",
        "globals()[name] = found",
        "pass",
    ): SPEED,
    (
        "wengert/autograd.py",
        "globals()[name] = found",
        "pass",
    ): SPEED,
    (
        "wengert/backends/numpy.py",
        "SMALL, SHORT = 1 << 16, 32",
        "SMALL, SHORT = (1 >> 16), 32",
    ): SPEED,
    (
        "wengert/backends/numpy.py",
        '"count_nonzero": count_nonzero,',
        "'count_nonzero_': count_nonzero,",
    ): "NumPy's own, which is slower, stays",
    (
        "wengert/backends/numpy.py",
        '"reciprocal": reciprocal,',
        "'reciprocal_': reciprocal,",
    ): "NumPy's own, which is slower, stays",
    (
        "wengert/backends/numpy.py",
        "def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:",
        "def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = True) -> Any:",
    ): "every call says it",
    (
        "wengert/backends/numpy.py",
        "return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)",
        "return values.astype(dtype, copy=True), vectors.astype(dtype, copy=False)",
    ): COPY,
    (
        "wengert/backends/numpy.py",
        "return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)",
        "return values.astype(dtype, copy=False), vectors.astype(dtype)",
    ): COPY,
    (
        "wengert/compiler/adjoint.py",
        "for i, x in sorted(found.items(), key=itemgetter(0))",
        "for i, x in sorted(found.items())",
    ): "no two have the same number, so that nothing else is compared",
    (
        "wengert/compiler/emission/spelling.py",
        'PARTS: Final = ("", "linalg", "fft", "special", "nn", "nn.functional", "lax")',
        'PARTS: Final = ("", "linalg", "fft", "special", "nn", "nn.functional", \'lax_\')',
    ): "JAX has it, and NumPy has not",
    (
        "wengert/compiler/passes/simplify.py",
        "if kind is Value or x is None or kind is str or kind is int or kind is bool:",
        "if (kind is Value and x is None and (kind is str) and (kind is int) and (kind is bool)):",
    ): "a short cut to a key that tells as much",
    (
        "wengert/func/arguments.py",
        "return ops.asarray(number, dtype=as_dtype(name), device=beside)",
        "return ops.asarray(number, dtype=as_dtype(name))",
    ): "NumPy has one device",
    (
        "wengert/nn/functional/binary.py",
        "inside = product > _SEEN",
        "inside = (product >= _SEEN)",
    ): "at the limit itself either derivative is right",
    (
        "wengert/ops/creation.py",
        "value = astype(value, wanted, copy=False)",
        "value = astype(value, wanted)",
    ): COPY,
    (
        "wengert/ops/linalg/norms.py",
        "found = (statistical.max if ord > 0 else statistical.min)(sums, axis=-1)",
        "found = (statistical.max if (ord >= 0) else statistical.min)(sums, axis=-1)",
    ): "there is no such order as 0",
    (
        "wengert/ops/special/entropy.py",
        "logs = xp.log(xp.where(near, 1, above)) - xp.log(xp.where(near, 1, below))",
        "logs = xp.log(xp.where(near, 1, above)) - xp.log(xp.where(near, 2, below))",
    ): "where it is near, another formula is taken",
    (
        "wengert/ops/special/error.py",
        "middle = rational(xp, xp.minimum(y, 4.0), _MIDDLE)",
        "middle = rational(xp, xp.minimum(y, 5.0), _MIDDLE)",
    ): "beyond 4 another formula is taken",
    (
        "wengert/optimize/adapters.py",
        "compile: bool = False,",
        "compile: bool = True,",
    ): SPEED,
    (
        "wengert/optimize/vectors.py",
        "found.append(ops.asarray(values, dtype=dtype, device=where))",
        "found.append(ops.asarray(values, dtype=dtype))",
    ): "NumPy has one device",
    (
        "wengert/optimize/vectors.py",
        'return leaf.astype(np.float64) if leaf.dtype.kind in "iu" else leaf',
        "return leaf.astype(np.float64) if leaf.dtype.kind in 'iu_' else leaf",
    ): "kinds are one letter",
    (
        "wengert/backends/references.py",
        'T = TypeVar("T")',
        "T = TypeVar('T_')",
    ): "a name for type checkers",
    (
        "wengert/tape/record.py",
        "alone = own.stop == own.start + 1",
        "alone = own.stop == (own.start - 1)",
    ): SPEED,
    (
        "wengert/testing/contrast.py",
        "if moved is not None and not np.isclose(moved, by, 1e-5):",
        "if moved is not None and not np.isclose(by, moved, 1e-05):",
    ): "two factors that are alike to five digits",
    (
        "wengert/tape/tensor.py",
        "if shown is not None and weakref.getweakrefcount(shown.memory) > 1:",
        "if shown is not None and (weakref.getweakrefcount(shown.memory) >= 1):",
    ): SPEED,
    (
        "wengert/tape/record.py",
        "self.__class__ = Plan # type: ignore[assignment]",
        "pass # type: ignore[assignment]",
    ): SPEED,
    (
        "wengert/backends/numpy.py",
        "SMALL, SHORT = 1 << 16, 32",
        "SMALL, SHORT = 2 << 16, 32",
    ): SPEED,
    (
        "wengert/testing/differences.py",
        "RATIO = 4",
        "RATIO = 5",
    ): "another sequence of steps with the same limit",
    (
        "wengert/testing/conduct.py",
        "if share_memory(gradient, other):",
        "if share_memory(other, gradient):",
    ): "two arrays share memory, whichever is named first",
    (
        "wengert/tape/aliases.py",
        "here = max((n for n, i in enumerate(instructions) if i.offset <= at), default=0)",
        "here = max((n for n, i in enumerate(instructions) if i.offset <= at), default=1)",
    ): "the first instruction is at 0",
    (
        "wengert/testing/differences.py",
        "np.allclose(given, expected, rtol, max(atol, of_largest * largest), equal_nan=True)",
        "np.allclose(expected, given, rtol, max(atol, of_largest * largest), equal_nan=True)",
    ): "what is close has the same tolerance, to its square",
    (
        "wengert/func/jacobians.py",
        "whole = parts[0] if len(parts) == 1 else ops.concat(parts, axis=0)",
        "whole = parts[0] if len(parts) == 1 else ops.concat(parts)",
    ): "the axis is 0 by default",
    (
        "wengert/backends/numpy.py",
        (
            'return x != 0 if dtype.kind == "b" and x.dtype.kind == "c" else '
            "x.astype(dtype, copy=copy)"
        ),
        (
            "return x != 0 if dtype.kind == 'b_' and x.dtype.kind == \"c\" else "
            "x.astype(dtype, copy=copy)"
        ),
    ): "as NumPy from 2.0 on does it",
    (
        "wengert/tape/primitive.py",
        'cast = PRIMITIVES["astype"].bind(untracked(arrays[i]), dtype=raw, copy=False)',
        "cast = PRIMITIVES['astype'].bind(untracked(arrays[i]), dtype=raw)",
    ): COPY,
    (
        "wengert/tape/aliases.py",
        "seen = [one for one in others if overlap(changed, work_out(one))]",
        "seen = [one for one in others if overlap(work_out(one), changed)]",
    ): "two arrays share memory, whichever is named first",
    (
        "wengert/backends/special.py",
        'COMPLEX = frozenset({"sinc"})',
        "COMPLEX = frozenset({'sinc_'})",
    ): OTHERS,
    (
        "wengert/tape/anomaly.py",
        'array = getattr(g, "_array", g)',
        "array = getattr(g, '_array_', g)",
    ): "a Tensor is opened two lines below, too",
    (
        "wengert/ops/utility.py",
        '@operation(x=_diff_rule, linear="together", view=None, batch=along(n=1))',
        '@operation(x=_diff_rule, linear="together", view=None, batch=along(n=2))',
    ): "every call says it",
    (
        "wengert/storage/files.py",
        '"F8_E5M2": DTYPES["float8_e5m2"],',
        "'F8_E5M2_': DTYPES[\"float8_e5m2\"],",
    ): OTHERS,
    (
        "wengert/nn/kernels/numpy_classification.py",
        "number = int(np.count_nonzero(counted)) or 1",
        "number = int(np.count_nonzero(counted)) or 2",
    ): "where none counts, what it divides is multiplied by zeros",
    (
        "wengert/nn/functional/softmaxes.py",
        "x = ops.astype(x, dtype, copy=False)",
        "x = ops.astype(x, dtype, copy=True)",
    ): COPY,
    (
        "wengert/testing/strategies.py",
        "grid.sort(key=lambda x: (abs(x), x < 0))",
        "grid.sort(key=lambda x: (abs(x), (x <= 0)))",
    ): "there is one zero",
    (
        "wengert/ops/linalg/common.py",
        "dtype = result_type(x1, x2)",
        "dtype = result_type(x2, x1)",
    ): "promotion is symmetric",
    (
        "wengert/optim/groups.py",
        "super().__init__()",
        "pass",
    ): "an empty dict needs none",
    (
        "wengert/optimize/vectors.py",
        "dtype = _REAL.get(like.dtype.name, like.dtype)",
        "dtype = _REAL.get(like.dtype, like.dtype.name)",
    ): "a dtype equals its name",
    (
        "wengert/ops/linalg/products.py",
        "one = broadcast_to(eye(shape[-1], dtype=tensor.dtype, device=place), shape)",
        "one = broadcast_to(eye(shape[-2], dtype=tensor.dtype, device=place), shape)",
    ): "the matrices are square",
    (
        "wengert/storage/checkpoints.py",
        'text = json.dumps({"version": VERSION, "content": content}, allow_nan=False)',
        'text = json.dumps({"version": VERSION, "content": content}, allow_nan=True)',
    ): "numbers that are not finite are words in the content",
    (
        "wengert/data/loader.py",
        "batches.close() # type: ignore[attr-defined]",
        "pass # type: ignore[attr-defined]",
    ): "CPython closes a generator that nobody holds",
    (
        "wengert/data/datasets.py",
        "if not math.isclose(sum(sizes), 1):",
        "if not math.isclose(1, sum(sizes)):",
    ): "math.isclose compares both ways alike",
    (
        "wengert/storage/description.py",
        "n += 1",
        "n += 2",
    ): "another name that is free",
    (
        "wengert/compiler/emission/emit.py",
        'return Instruction("copy", backend.xp.asarray, (x,), {"copy": True}, (result,))',
        "return Instruction('copy_', backend.xp.asarray, (x,), {\"copy\": True}, (result,))",
    ): "names in the source end without underscores",
    (
        "wengert/ops/special/gammas.py",
        "share = xp.reciprocal(xp.where(there, near - j, 1))",
        "share = xp.reciprocal(xp.where(there, near - j, 2))",
    ): "where it is not there, zero is added",
    (
        "wengert/optimize/vectors.py",
        'return backend_of(x).to_numpy(x) if hasattr(x, "dtype") else np.asarray(x)',
        "return backend_of(x).to_numpy(x) if hasattr(x, 'dtype_') else np.asarray(x)",
    ): OTHERS,
    (
        "wengert/func/jacobians.py",
        "[ops.astype(b, dtype(y, x), copy=False) for b, x in zip(row, call.tensors, strict=True)]",
        "[ops.astype(b, dtype(y, x)) for b, x in zip(row, call.tensors, strict=True)]",
    ): COPY,
    (
        "wengert/testing/strategies.py",
        "signs = [draw(st.sampled_from([1, -1])) for _ in range(side)]",
        "signs = [draw(st.sampled_from([2, -1])) for _ in range(side)]",
    ): "a larger diagonal is dominant, too",
    (
        "wengert/ops/special/tails.py",
        "sums: list[Any] = [None] * (upto + 1)",
        "sums: list[Any] = [None] * (upto + 2)",
    ): "nothing takes the last one",
    (
        "wengert/dask.py",
        "add = dask.delayed(_sum_terms, pure=False)",
        "add = dask.delayed(_sum_terms)",
    ): "dask's default",
    (
        "wengert/dask.py",
        "common = [dask.delayed(one, traverse=False, pure=False) for one in (step, values)]",
        "common = [dask.delayed(one, traverse=False, pure=True) for one in (step, values)]",
    ): SPEED,
    (
        "wengert/backends/numpy.py",
        "dtype = np.result_type(values.dtype, np.complex64)",
        "dtype = np.result_type(np.complex64, values.dtype)",
    ): "promotion is symmetric",
    (
        "wengert/tape/promotion.py",
        "return a if a.itemsize > b.itemsize else b",
        "return a if (a.itemsize >= b.itemsize) else b",
    ): "those of one size are told apart two lines above",
    (
        "wengert/optimize/adapters.py",
        "at = np.asarray(vector, dtype=np.float64).tobytes()",
        "at = np.asarray(vector).tobytes()",
    ): "SciPy's vectors are of float64",
    (
        "wengert/testing/problem.py",
        "return backend.from_numpy(np.array(array, copy=True), backend.device(tensor.array))",
        "return backend.from_numpy(np.array(array), backend.device(tensor.array))",
    ): "NumPy's default",
    (
        "wengert/optim/lbfgs.py",
        "t = right - margin if abs(t - right) < abs(t - left) else left + margin",
        "t = right - margin if abs(t - right) < abs((left - t)) else left + margin",
    ): "a distance has no direction",
    (
        "wengert/compiler/passes/flatten.py",
        'taken.append(("outside", self.outside.index(x)))',
        "taken.append(('outside_', self.outside.index(x)))",
    ): "a mark that is compared with itself alone",
    (
        "wengert/func/jacobians.py",
        "self.largest, self.regular = 1, True",
        "self.largest, self.regular = 2, True",
    ): SPEED,
}
