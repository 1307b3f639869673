"""x"""
from wengert.tape import autograd, interpreter
