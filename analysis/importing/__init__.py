"""Files of other benchmark tools, read so that the definitions of this kit can be applied to them.

Invariant: what is imported never becomes a record and never stands beside one in a table; what such
a file does not say is missing, not zero and not guessed.
"""
