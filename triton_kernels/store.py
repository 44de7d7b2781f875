"""What is kept between runs: small results and generated source in a cache directory, safe to share by processes."""

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import tempfile
from pathlib import Path


def directory():
    """Return the cache directory: $FGRAD_CACHE_DIR, or a folder in the user's cache on this machine."""
    root = (
        os.environ.get("FGRAD_CACHE_DIR") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fgrad"
    )
    return Path(root)


def remembered(key, compute, valid=lambda value: True):
    """Return the stored JSON value of a key, or compute and store it.

    A file appears whole or not at all, so that processes that compute the same key do not disturb each other. Where
    the directory cannot be written, the value is computed every time. What is stored counts where `valid(value)`.
    """
    value = recalled(key, valid)
    if value is None:
        value = compute()
        with contextlib.suppress(OSError):
            _write_whole(_path_of(key), json.dumps(value))
    return value


def recalled(key, valid=lambda value: True):
    """Return the stored JSON value of a key; None where there is none, or none that is whole and `valid(value)`."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        value = json.loads(_path_of(key).read_text(encoding="utf-8"))
        return value if valid(value) else None
    return None


def written(name, text):
    """Return the path of a file of the cache directory with this text; a folder of this process if that is read-only.

    Equal names are given to equal texts alone.
    """
    path = directory() / name
    with contextlib.suppress(OSError):
        if not path.exists():
            _write_whole(path, text)
        return path
    path = Path(_folder_of_process().name) / name
    path.write_text(text)
    return path


def module_of(text, **names):
    """Return the module that a program text makes, imported from a file, since Triton reads kernels from theirs.

    The file is named by a hash of the text. `names` are put into the module before it runs.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(f"fgrad_generated_{digest}", written(f"kernel_{digest}.py", text))
    module = importlib.util.module_from_spec(spec)
    vars(module).update(names)
    spec.loader.exec_module(module)
    return module


@functools.cache
def _folder_of_process():
    return tempfile.TemporaryDirectory(prefix="fgrad")


def _path_of(key):
    return directory() / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.json"


def _write_whole(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        try:
            file.write(text)
            file.close()
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
            raise
