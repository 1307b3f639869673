from wengert.ops.special import *
