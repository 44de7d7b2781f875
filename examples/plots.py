"""What the examples draw with: one style, files that need no screen, the same bytes for the same figures."""

import argparse
import pathlib

import matplotlib

matplotlib.use("Agg")  # draws without a screen
import matplotlib.pyplot as plt

plt.rcParams.update(
    {
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.prop_cycle": plt.cycler(color=["#0072b2", "#d55e00", "#009e73", "#cc79a7"]),
        "figure.constrained_layout.use": True,
        "legend.frameon": False,
        "svg.hashsalt": "fgrad",
    }
)


def figure(columns=1, width=4.5, height=3.2):
    """Return a figure and its axes, side by side."""
    return plt.subplots(1, columns, figsize=(columns * width, height))


def save(picture, path):
    """Write a figure to a file and say where."""
    picture.savefig(path, metadata={"Date": None})
    plt.close(picture)
    print(f"plot: {path}")


def run(main, doc):
    """Run an example from the command line: `main` gets the folder for its pictures."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out"), help="folder for pictures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    main(out)
