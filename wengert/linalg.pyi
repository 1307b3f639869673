from wengert.ops.linalg.determinants import *
from wengert.ops.linalg.factorisations import *
from wengert.ops.linalg.norms import *
from wengert.ops.linalg.products import *
from wengert.ops.linalg.singular_values import *
from wengert.ops.linalg.solving import *
from wengert.ops.linalg.spectral import *
from wengert.ops.linear_algebra import *
