from wengert.ops.random import *
