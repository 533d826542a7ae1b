"""The commands, one module each: what it asks for, and what it does, in a few lines over the library.

torch is imported only by those that need it, when they run.
"""
