from wengert.ops.fft import *
