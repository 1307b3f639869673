"""The backward functions' names are PyTorch's."""

import wengert.fft
import wengert.linalg
import wengert.nn.functional
import wengert.ops.beyond  # noqa: F401 -- whose primitives are looked at, as those of the others
from tests.walking import lines_of, walk
from wengert.tape.node import backward_name
from wengert.tape.primitive import PRIMITIVES

#: Where PyTorch's name is not that of the standard.
NAMES = dict(row.split() for row in lines_of("""
astype ToCopy  broadcast_to Expand  clip Clamp  concat_arrays Cat  cumulative_prod Cumprod
cumulative_sum Cumsum  divide Div  einsum_pair Einsum  expand_dims Unsqueeze  expit Sigmoid
fft.fftn FftC2C  fft.ifftn FftC2C  fft.irfftn FftC2R  fft.rfftn FftR2C  getitem Index
linear Addmm  log1p Log1P  log_expit LogSigmoid  logistic_loss BinaryCrossEntropyWithLogits
matrix_transpose Transpose  max Amax  min Amin  multiply Mul  negative Neg  permute_dims Permute
pow_scalar Pow  setitem IndexPut  softmax_cross_entropy CrossEntropy  square Pow
stack_arrays Stack  subtract Sub  take IndexSelect  take_along_axis Gather  to_backend ToCopy
to_device ToCopy  unstack Unbind"""))  # fmt: skip


def test_names() -> None:
    def check(name: str) -> None:
        words = name.replace(".", "_").split("_")
        expected = NAMES.get(name, "".join(word.capitalize() for word in words))
        assert backward_name(name) == expected

    assert NAMES.keys() <= PRIMITIVES.keys()
    walk([(name,) for name in PRIMITIVES], check, whole=True)
    assert backward_name("linalg.vector_norm") == "LinalgVectorNorm"
