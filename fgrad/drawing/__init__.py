"""Pictures: graphs of Programs and of recorded gradients, flame graphs, charts, and memory over time.

Everything here is text made by hand, SVG and HTML without scripts or fonts from elsewhere, so that it opens anywhere.
Graphviz is used where it is asked for. Nothing below this floor imports it.
"""
