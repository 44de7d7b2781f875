"""`python -m fgrad.compat script.py`: run a program for torch on fgrad."""

import sys

from .unchanged import main

sys.exit(main(sys.argv[1:]))
