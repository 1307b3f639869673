"""x"""
from wengert.ops import elementwise, operators
from wengert.tape.interpreter import differentiable
for n in ("add","multiply","subtract","exp","log","conj","negative"): setattr(differentiable,n,getattr(elementwise,n))
