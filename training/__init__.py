"""How the eye's model is made: photographs, marks, crops, the network, its training and its export.

Not part of the wheel. ``training/README.md`` says which command does what.
"""
