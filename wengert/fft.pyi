from wengert.ops.fft.frequency import *
from wengert.ops.fft.real import *
from wengert.ops.fft.spectrum import *
