from wengert.ops.linalg import *
