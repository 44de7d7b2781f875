"""NumPy's public names that `fgrad.numpy` does not have, by the reason; docs/parity.md prints it."""

ABSENT = {
    "dates and times are not differentiated; NumPy's own functions work on plain arrays": """busday_count busday_offset
    busdaycalendar datetime64 datetime_as_string datetime_data is_busday isnat timedelta64""",
    "text and records are not differentiated": "char fromregex genfromtxt rec recarray record strings void",
    "classes of arrays of their own; an array of fgrad is a plain one": "asmatrix bmat ma matrix memmap",
    "a class that holds numbers; NumPy's own works inside `grad`, `polyval` and its kin everywhere": "poly1d",
    "iterators over memory; traced values have none": "broadcast flatiter nditer nested_iters",
    "about memory; traced values have none": "ctypeslib getbufsize isfortran little_endian require setbufsize",
    "NumPy's class of functions; `vectorize` and `fgrad.vmap` make functions of arrays": "ufunc",
    "wider than what derivatives are computed in; NumPy's own `longdouble` is here": """complex256 float128 complex192
    float96""",
    "callbacks for NumPy's warnings": "geterrcall seterrcall",
    "tables of types; `fgrad.numpy.isdtype` and `issubdtype` ask": "ScalarType sctypeDict typecodes",
    "removed or deprecated by NumPy: `vstack`, `isin`, `trapezoid`": "row_stack in1d trapz",
    "packages of NumPy's; `fgrad.random` draws numbers": """core emath exceptions f2py lib polynomial random test
    testing typing""",
    "about the installation": "__version__ get_include info show_config show_runtime",
}
