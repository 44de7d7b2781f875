"""Translates TTIR into a Python program over NumPy: each value a variable, each loop a loop.

The program is ordinary source text (`Program.text`), so that it can be read when an interpretation surprises. An
operation the translation does not know raises here, before anything runs. What operations compute is in `numerics`.
"""

import re
from itertools import count

import numpy as np

from . import numerics
from .descriptor import Descriptor
from .numerics import CASTS, OPERATIONS, dtype_of
from .ttir import VALUE, parse, parse_type


class Program:
    """A translated kernel: call `run(machine, *arguments)` once for each program of the grid."""

    def __init__(self, ttir):
        functions = parse(ttir)
        self.names = {name: f"function_{index}" for index, name in enumerate(functions)}
        self.constants = {}
        parts = [_FunctionTranslator(function, self).text() for function in functions.values()]
        self.text = "\n\n".join(parts)
        entry = next(iter(functions.values()))
        namespace = {"np": np, "numerics": numerics, "Descriptor": Descriptor, **self.constants}
        exec(compile(self.text, f"<twin of {entry.name}>", "exec"), namespace)
        self.run = namespace[self.names[entry.name]]

    def constant(self, value, hint):
        """Keep an object the program refers to under a name made from a hint, and return the name."""
        base = name = re.sub(r"\W+", "_", hint)
        for number in count(2):
            if self.constants.setdefault(name, value) is value:
                return name
            name = f"{base}_{number}"


class _FunctionTranslator:
    """Translates one function; holds the Python names of its values."""

    def __init__(self, function, program):
        self.function = function
        self.program = program
        self.names = {}
        self.fresh = count()

    def text(self):
        """Return the function's Python source."""
        parameters = [self.name(name) for name, _ in self.function.parameters]
        body = self.blocks(self.function.blocks)
        return "\n".join(
            [f"def {self.program.names[self.function.name]}({', '.join(['machine', *parameters])}):", *body]
        )

    def name(self, value):
        """Return the Python name of an SSA value such as %acc_10 or %r#1."""
        if value not in self.names:
            self.names[value] = f"v{len(self.names)}_{re.sub(r'[^0-9A-Za-z]', '_', value[1:])}"
        return self.names[value]

    def operand_names(self, operation):
        """Return the Python names of all operands."""
        return [self.name(value) for value in operation.operands]

    def result_names(self, operation):
        """Return the Python names of all results."""
        names = []
        for value, size in operation.results:
            names += [self.name(value)] if size == 1 else [self.name(f"{value}#{index}") for index in range(size)]
        return names

    def dtype(self, element):
        """Return an expression for a dtype."""
        return self.program.constant(dtype_of(element), element)

    # Control flow

    def blocks(self, blocks):
        """Translate a function's blocks: straight down, or as a jump table where the kernel returns early."""
        reachable = _reachable(blocks)
        if len(reachable) == 1:
            return _indented(self.lines(blocks[0].operations))
        lines = [f"block = {blocks[0].label!r}", "while True:"]
        for block in blocks:
            if block.label in reachable:
                lines += _indented([f"if block == {block.label!r}:", *_indented(self.lines(block.operations))])
        self.labels = {block.label: block for block in blocks}
        return _indented(lines)

    def lines(self, operations):
        """Translate a straight line of operations."""
        lines = []
        for operation in operations:
            special = getattr(self, "op_" + operation.name.replace(".", "_"), None)
            if special:
                lines += special(operation)
            else:
                lines.append(self.assign(operation, self.expression(operation)))
        return lines or ["pass"]

    def assign(self, operation, expression):
        """Return a line that binds an operation's results."""
        names = self.result_names(operation)
        return f"{', '.join(names)} = {expression}" if names else expression

    def assign_all(self, names, values):
        """Return lines that bind names to values at once, as branches and yields do."""
        return [f"{', '.join(names)} = {', '.join(values)}"] if names else []

    def expression(self, operation):
        """Return the expression of an operation that only computes."""
        arguments = ", ".join(self.operand_names(operation))
        name = operation.name
        if name in ("arith.cmpi", "arith.cmpf"):
            name += " " + operation.text.split(",")[0].strip()
        hint = name.partition(".")[2]
        if name in OPERATIONS:
            return f"{self.program.constant(OPERATIONS[name], hint)}({arguments})"
        if name in CASTS:
            rounding = re.search(r"rounding = (\w+)", operation.arguments)
            target = operation.result_type
            dtype = self.dtype("i64" if target.pointer else target.element)
            extra = f", {rounding[1]!r}" if rounding else ""
            return f"{self.program.constant(CASTS[name], hint)}({arguments}, {dtype}{extra})"
        raise NotImplementedError(
            f"the twin cannot interpret {operation.name!r} ({operation.source or 'no source line'}); "
            "compile the kernel and test it on a GPU, or leave the operation out under interpretation"
        )

    def op_scf_for(self, operation):
        header = operation.text
        if header.startswith("unsigned"):
            raise NotImplementedError(f"the twin has no unsigned loops ({operation.source})")
        counter, first, last, step = re.findall(VALUE, header)[:4]
        carried = (
            re.findall(rf"({VALUE}) = ({VALUE})", header.split("iter_args", 1)[1]) if "iter_args" in header else []
        )
        inner = [self.name(name) for name, _ in carried]
        bounds = ", ".join(self.name(value) for value in (first, last, step))
        body = operation.regions[0][0].operations
        return [
            *self.assign_all(inner, [self.name(value) for _, value in carried]),
            f"for {self.name(counter)} in numerics.counted({bounds}):",
            *_indented([*self.lines(_inside(body)), *self.assign_all(inner, self.yielded(body))]),
            *self.assign_all(self.result_names(operation), inner),
        ]

    def op_scf_if(self, operation):
        results = self.result_names(operation)
        lines = []
        for keyword, region in zip(
            (f"if {self.name(re.findall(VALUE, operation.text)[0])}:", "else:"), operation.regions
        ):
            body = region[0].operations
            lines += [keyword, *_indented([*self.lines(_inside(body)), *self.assign_all(results, self.yielded(body))])]
        return lines

    def op_scf_while(self, operation):
        before, after = operation.regions[0][0], operation.regions[1][0]
        carried = re.findall(rf"({VALUE}) = ({VALUE})", operation.text)
        inner = [self.name(name) for name, _ in carried]
        condition = before.operations[-1]
        flag, *values = [self.name(value) for value in condition.operands]
        leave = [*self.assign_all(self.result_names(operation), values), "break"]
        body = [
            *self.lines(before.operations[:-1]),
            f"if not {flag}:",
            *_indented(leave),
            *self.assign_all([self.name(name) for name, _ in after.parameters], values),
            *self.lines(_inside(after.operations)),
            *self.assign_all(inner, self.yielded(after.operations)),
        ]
        return [*self.assign_all(inner, [self.name(value) for _, value in carried]), "while True:", *_indented(body)]

    def yielded(self, operations):
        """Return the Python names a region hands out at its end."""
        last = operations[-1] if operations else None
        return self.operand_names(last) if last is not None and last.name == "scf.yield" else []

    def op_cf_br(self, operation):
        return self.jump(operation.text)

    def op_cf_cond_br(self, operation):
        flag, taken, other = re.match(
            rf"({VALUE}), (\^\w+(?:\([^)]*\))?), (\^\w+(?:\([^)]*\))?)", operation.text
        ).groups()
        return [f"if {self.name(flag)}:", *_indented(self.jump(taken)), "else:", *_indented(self.jump(other))]

    def jump(self, text):
        label = re.match(r"\^\w+", text)[0]
        block = next(block for block in self.function.blocks if block.label == label)
        values = [self.name(value) for value in re.findall(VALUE, text.split(":")[0])]
        return [
            *self.assign_all([self.name(name) for name, _ in block.parameters], values),
            f"block = {label!r}",
            "continue",
        ]

    def op_tt_return(self, operation):
        return [f"return {', '.join(self.operand_names(operation))}".rstrip()]

    def op_tt_call(self, operation):
        callee = re.match(r'@("[^"]*"|[\w$.\-]+)', operation.text)[1]
        arguments = re.findall(VALUE, operation.arguments[len(callee) + 1 :])
        call = f"{self.program.names[callee]}({', '.join(['machine', *map(self.name, arguments)])})"
        return [self.assign(operation, call)]

    def combiner(self, operation):
        """Return the lines of a local function for the region of a reduction, and its name."""
        block = operation.regions[0][0]
        name = f"combine_{next(self.fresh)}"
        parameters = ", ".join(self.name(value) for value, _ in block.parameters)
        last = block.operations[-1]
        body = [*self.lines(block.operations[:-1]), f"return {', '.join(self.operand_names(last))}"]
        return [f"def {name}({parameters}):", *_indented(body)], name

    def op_tt_reduce(self, operation):
        lines, combine = self.combiner(operation)
        axis = int(operation.attribute("axis"))
        values = ", ".join(self.operand_names(operation))
        return [*lines, self.assign(operation, f"numerics.reduce(({values},), {axis}, {combine})")]

    def op_tt_scan(self, operation):
        lines, combine = self.combiner(operation)
        axis, reverse = int(operation.attribute("axis")), operation.attribute("reverse") == "true"
        values = ", ".join(self.operand_names(operation))
        return [*lines, self.assign(operation, f"numerics.scan(({values},), {axis}, {reverse}, {combine})")]

    def op_tt_map_elementwise(self, operation):
        if operation.attribute("pack") not in (None, "1"):
            raise NotImplementedError(f"the twin maps one element at a time ({operation.source})")
        lines, mapped = self.combiner(operation)
        values = ", ".join(self.operand_names(operation))
        return [*lines, self.assign(operation, f"numerics.map_elements({mapped}, {values})")]

    # Values

    def op_arith_constant(self, operation):
        text = operation.arguments.strip()
        kind = parse_type(operation.type_text) if operation.type_text.strip() else parse_type("i1")
        literal = text.removeprefix("dense<").removesuffix(">")
        if literal.startswith("["):
            raise NotImplementedError(f"the twin reads no array constants ({operation.source})")
        value = _constant(literal, dtype_of(kind.element))
        if kind.shape:
            value = np.broadcast_to(value, kind.shape)
        return [self.assign(operation, self.program.constant(value, "value"))]

    def op_ub_poison(self, operation):
        kind = parse_type(operation.text.split(":")[-1])
        dtype = np.dtype(np.int64) if kind.pointer else dtype_of(kind.element)
        return [self.assign(operation, self.program.constant(numerics.undefined(kind.shape, dtype)[()], "undefined"))]

    def op_tt_get_program_id(self, operation):
        return [self.assign(operation, f"machine.program_id({'xyz'.index(operation.text.strip()[0])})")]

    def op_tt_get_num_programs(self, operation):
        return [self.assign(operation, f"machine.num_programs({'xyz'.index(operation.text.strip()[0])})")]

    def op_tt_make_range(self, operation):
        first, last = int(operation.attribute("start")), int(operation.attribute("end"))
        return [self.assign(operation, self.program.constant(np.arange(first, last, dtype=np.int32), f"range_{last}"))]

    def op_tt_splat(self, operation):
        return [
            self.assign(
                operation, f"np.broadcast_to({self.operand_names(operation)[0]}, {operation.result_type.shape})"
            )
        ]

    op_tt_broadcast = op_tt_splat

    def op_tt_expand_dims(self, operation):
        axis = operation.attribute("axis")
        return [self.assign(operation, f"np.expand_dims({self.operand_names(operation)[0]}, {axis})")]

    def op_tt_reshape(self, operation):
        return [self.assign(operation, f"{self.operand_names(operation)[0]}.reshape({operation.result_type.shape})")]

    def op_tt_trans(self, operation):
        return [self.assign(operation, f"{self.operand_names(operation)[0]}.transpose({operation.integers('order')})")]

    def op_tt_dot(self, operation):
        precision = re.search(r"inputPrecision = (\w+)", operation.text)
        x, y, accumulator = self.operand_names(operation)
        wanted = precision[1] if precision else "ieee"
        return [self.assign(operation, f"numerics.dot({x}, {y}, {accumulator}, {wanted!r})")]

    def op_tt_clampf(self, operation):
        propagate = re.search(r"propagateNan = (\w+)", operation.text)
        arguments = ", ".join(self.operand_names(operation))
        return [self.assign(operation, f"numerics.clamp({arguments}, {propagate[1] if propagate else 'none'!r})")]

    def op_tt_gather(self, operation):
        x, indices = self.operand_names(operation)
        return [self.assign(operation, f"numerics.gather({x}, {indices}, {operation.attribute('axis')})")]

    def op_tt_histogram(self, operation):
        x, *mask = self.operand_names(operation)
        bins = operation.result_type.shape[0]
        return [self.assign(operation, f"numerics.histogram({', '.join([x, str(bins), *mask])})")]

    def op_tt_extern_elementwise(self, operation):
        symbol = operation.attribute("symbol").strip('"')
        function = self.program.constant(numerics.libdevice(symbol), symbol)
        dtype = self.dtype(operation.result_type.element)
        call = f"{function}({', '.join(self.operand_names(operation))})"
        return [self.assign(operation, f"{call}.astype({dtype})")]

    # Memory

    def op_tt_addptr(self, operation):
        pointer, offset = self.operand_names(operation)
        itemsize = dtype_of(operation.operand_type.element).itemsize
        return [self.assign(operation, f"numerics.offset_pointers({pointer}, {offset}, {itemsize})")]

    def pointee(self, operation):
        """Return an expression for the dtype the first operand points to."""
        return self.dtype(operation.operand_type.element)

    def op_tt_load(self, operation):
        pointer, mask, other = (self.operand_names(operation) + ["None", "None"])[:3]
        arguments = f"{pointer}, {mask}, {other}, {self.pointee(operation)}, {operation.source!r}"
        return [self.assign(operation, f"machine.memory.load({arguments})")]

    def op_tt_store(self, operation):
        pointer, value, mask = (self.operand_names(operation) + ["None"])[:3]
        return [f"machine.memory.store({pointer}, {value}, {mask}, {self.pointee(operation)}, {operation.source!r})"]

    def op_tt_atomic_rmw(self, operation):
        kind = operation.text.split(",")[0].strip()
        pointer, value, mask = (self.operand_names(operation) + ["None"])[:3]
        arguments = f"{kind!r}, {pointer}, {value}, {mask}, {self.pointee(operation)}, {operation.source!r}"
        return [self.assign(operation, f"machine.memory.atomic({arguments})")]

    def op_tt_atomic_cas(self, operation):
        arguments = ", ".join([*self.operand_names(operation), self.pointee(operation), repr(operation.source)])
        return [self.assign(operation, f"machine.memory.compare_and_swap({arguments})")]

    # Tensor descriptors

    def op_tt_make_tensor_descriptor(self, operation):
        base, shape, strides = re.match(r"(%\S+), \[(.*?)\], \[(.*?)\]", operation.text).groups()
        sizes, element = re.search(r"((?:\d+x)+)(\w+)>+$", operation.text).groups()
        padding = "np.nan" if operation.attribute("padding") == "2" else "0"
        arguments = ", ".join(
            [
                self.name(base),
                f"({''.join(self.name(value) + ', ' for value in re.findall(VALUE, shape))})",
                f"({''.join(self.name(value) + ', ' for value in re.findall(VALUE, strides))})",
                self.dtype(element),
                str(tuple(int(size) for size in sizes.split("x") if size)),
                padding,
            ]
        )
        return [self.assign(operation, f"Descriptor(machine.memory, {arguments})")]

    def corner(self, operation):
        """Return the names of a descriptor, of the coordinates in its brackets, and of what follows."""
        descriptor, inside, rest = re.search(rf"({VALUE})\[(.*?)\](.*)", operation.arguments).groups()
        coordinates = ", ".join(self.name(value) for value in re.findall(VALUE, inside))
        return self.name(descriptor), coordinates, [self.name(value) for value in re.findall(VALUE, rest)]

    def op_tt_descriptor_load(self, operation):
        descriptor, corner, _ = self.corner(operation)
        call = f"{descriptor}.load(({corner},), {operation.source!r}).reshape({operation.result_type.shape})"
        return [self.assign(operation, call)]

    def op_tt_descriptor_store(self, operation):
        descriptor, corner, (value,) = self.corner(operation)
        return [f"{descriptor}.store(({corner},), {value}, {operation.source!r})"]

    def op_tt_descriptor_reduce(self, operation):
        descriptor, corner, (value,) = self.corner(operation)
        kind = operation.text.split(",")[0].strip()
        return [f"{descriptor}.reduce({kind!r}, ({corner},), {value}, {operation.source!r})"]

    def op_tt_descriptor_gather(self, operation):
        descriptor, corner, _ = self.corner(operation)
        return [self.assign(operation, f"{descriptor}.gather({corner}, {operation.source!r})")]

    def op_tt_descriptor_scatter(self, operation):
        descriptor, corner, (value,) = self.corner(operation)
        return [f"{descriptor}.scatter({corner}, {value}, {operation.source!r})"]

    # What a program says and demands

    def op_tt_assert(self, operation):
        message = re.search(r'"(.*)"', operation.text)[1]
        return [f"machine.require({self.operand_names(operation)[0]}, {message!r}, {operation.source!r})"]

    def op_llvm_intr_assume(self, operation):
        message = "tl.assume does not hold"
        return [f"machine.require({self.operand_names(operation)[0]}, {message!r}, {operation.source!r})"]

    def op_tt_print(self, operation):
        prefix = re.search(r'"(.*?)"', operation.text)[1]
        return [f"machine.show({', '.join([repr(prefix), *self.operand_names(operation)])})"]

    def op_gpu_barrier(self, operation):
        return []

    op_ttg_barrier = op_ttg_local_barrier = op_gpu_barrier


def _indented(lines):
    return ["    " + line for line in lines]


def _inside(operations):
    return operations[:-1] if operations and operations[-1].name == "scf.yield" else operations


def _reachable(blocks):
    by_label = {block.label: block for block in blocks}
    found, pending = {blocks[0].label}, [blocks[0]]
    while pending:
        last = pending.pop().operations[-1]
        for label in re.findall(r"\^\w+", last.text) if last.name.startswith("cf.") else ():
            if label not in found:
                found.add(label)
                pending.append(by_label[label])
    return found


def _constant(literal, dtype):
    if literal in ("true", "false"):
        return np.bool_(literal == "true")
    if numerics.is_float(dtype):
        if literal.startswith("0x"):
            return np.array(int(literal, 16), f"u{dtype.itemsize}").view(dtype)[()]
        return np.array(float(literal)).astype(dtype)[()]
    return np.array(int(literal, 0)).astype(dtype)[()]
