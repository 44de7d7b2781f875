"""`python -m fgrad.check --table` prints the table of primitives as docs/ops.md holds it."""

import argparse

from fgrad.check.table import table

parser = argparse.ArgumentParser(prog="python -m fgrad.check", description="Print the table of primitives.")
parser.add_argument("--table", action="store_true", required=True, help="print the table in Markdown")
parser.parse_args()
print(table(), end="")
