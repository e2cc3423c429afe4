"""Makes a checkpoint of shardc from one of PyTorch: a folder of torch.distributed.checkpoint, or a file of torch.save; and the reverse.

Usage: import_checkpoint.py SOURCE -o DIR --recipe FILE
       import_checkpoint.py --to dcp CHECKPOINT -o DIR --names-of torchtitan-0.3

DIR is what `start.first = { seed = "DIR" }` and `{ continue = "DIR" }` take: the parameters of the recipe's model, and the moments
of AdamW with their number of updates. Names of torchtitan, KempnerForge and Hugging Face are known. Each tensor of SOURCE is used
once, or named in an error; --unused leaves tensors out. Objects that are no tensors are named, and never run. SOURCE is read tensor by
tensor. Neither torch nor another package is needed but xxhash, or its library; --to dcp needs torch.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import time

from checkpoint_archives import FORMATS, ITEM_BYTES
from checkpoint_names import (HALVES, INTERLEAVED, MOMENTS, ORDER_HELP, ROTARY, SETTINGS, STATE, TABLES, TRAINER, WRITTEN, Found, Matcher, Model, listed,
                              permute, plain, read_names, rotary_of, row_order, table_of)
from checkpoint_output import BLOCKS, MANIFEST, TENSORS, TYPES, BlockWriter, Folder, header_of, manifest_text, write_durably, xxh3_128
from checkpoint_sources import open_source
from failure import Failure, end_with

MIB = 1 << 20
WIDENED_AT_ONCE = MIB
# float32 counts no further.
MOST_UPDATES = 1 << 24
UNKNOWN_SEED = (1 << 64) - 1


def model_of(options: argparse.Namespace) -> Model:
    """Returns what the recipe computes, as shardc says it."""
    # What the run begins from may be what is to be made. Shapes do not depend on initial values, whose rules may read it.
    unset = [word for key in ("start.first", "init.rule", "init.scheme") for word in ("--unset", key)]
    command = [options.shardc, "plan", "--format", "json", *unset, "--set", 'init.scheme="torch-default"', options.recipe]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Failure(f"{options.shardc} cannot be started ({error.strerror}); put shardc on the PATH, or give --shardc PROGRAM") from None
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} ended with {done.returncode}; mend the recipe:\n{done.stderr.rstrip()}")
    plan = json.loads(done.stdout)
    return Model(plan["model"], {own["name"]: tuple(own["shape"]) for own in plan["parameters"]})


def widened(data: bytearray, dtype: str):
    """Yields the elements as f32, some at a time. Narrower types widen exactly."""
    if dtype == "float32":
        yield data
    for begin in range(0, len(data) if dtype == "bfloat16" else 0, WIDENED_AT_ONCE):
        own = memoryview(data)[begin:begin + WIDENED_AT_ONCE]
        wide = bytearray(2 * len(own))
        memoryview(wide).cast("H")[1::2] = own.cast("H")
        yield wide


class Import:
    def __init__(self, options: argparse.Namespace):
        self.source = open_source(options.source)
        self.model = model_of(options)
        names = list(self.source.tensors)
        parameters = [name for name in names if not STATE.match(name) and not TRAINER.search(name)]
        own = read_names(options.names) if options.names else {}
        self.program = table_of(parameters, self.model, bool(own))
        order = options.order.read_text().split() if options.order else self.order_of(parameters, names)
        table = TABLES.get(self.program, {}) | own
        self.found: Found = Matcher(names, self.model, self.program, table, order, options.unused).found
        self.rotary = rotary_of(self.program, options.rotary, self.model)
        self.updates = self.count_updates()
        self.step = self.step_of(options.step)
        self.check()

    def order_of(self, parameters: list[str], names: list[str]) -> list[str]:
        """Returns the parameters as an optimizer without names counts them."""
        has_numbers = any((found := STATE.match(name)) and found.group(1).isdecimal() for name in names)
        groups = {found.group(1) for name in [*names, *self.source.objects] if (found := re.search(r"(?:^|\.)param_groups\.(\d+)\.", name))}
        if has_numbers and len(groups) > 1:
            raise Failure(f"the optimizer's state has numbers in place of names, and {len(groups)} groups, so that it is not known which parameter has "
                          f"which number; give --order FILE, with the names of the parameters in the order of the groups, one a line: {ORDER_HELP}")
        return [name for name in parameters if not (self.model.is_tied() and plain(name)[-1] in ("lm_head.weight", "output.weight"))]

    def count(self, name: str) -> int | None:
        """Returns a whole number that the source keeps as a tensor or as an object."""
        value = self.number(name)
        return int(value) if value is not None and math.isfinite(value) and value == int(value) and value >= 0 else None

    def number(self, name: str):
        if (tensor := self.source.tensors.get(name)) is None:
            return self.source.number(name)
        if tensor.bytes() != ITEM_BYTES[tensor.dtype]:
            return None
        data = bytearray(tensor.bytes())
        tensor.read(memoryview(data))
        formats = {"float32": "f", "float64": "d"} | {dtype: FORMATS[ITEM_BYTES[dtype]].lower() for dtype in ("int64", "int32")}
        return memoryview(data).cast(formats[tensor.dtype])[0] if tensor.dtype in formats else None

    def count_updates(self) -> int:
        """Returns the number of updates that all moments have seen."""
        counts: dict[int, list[str]] = {}
        for parameter in self.found.moments["exp_avg"]:
            name = self.found.steps[parameter]
            count = self.count(name)
            if count is None or count > MOST_UPDATES:
                raise Failure(f"{name} is {self.number(name)}, which is no number of updates; leave the moments of {parameter} out with --unused")
            counts.setdefault(count, []).append(parameter)
        if not counts:
            return 0
        most, *others = sorted(counts, key=lambda count: -len(counts[count]))
        if others:
            raise Failure(f"the moments of {listed(counts[others[0]])} have seen {others[0]} updates, and those of the others {most}; a checkpoint here has "
                          f"one count. Leave the former out, with --unused '{self.found.steps[counts[others[0]][0]].removesuffix('step')}*' and so on: "
                          "they begin with moments of 0, and count their own updates")
        return most

    def step_of(self, given: int | None) -> int:
        """Returns the steps of the run: what is given, what the trainer kept, or the number of updates."""
        kept = (self.count(name) for name in ("train_state.step", "step"))
        step = next((own for own in (given, *kept) if own is not None), self.updates)
        if step < self.updates:
            raise Failure(f"the moments have seen {self.updates} updates, and the step is {step}; give --step {self.updates}, or a later one")
        return step

    def check(self) -> None:
        """Refuses tensors of other shapes and types than the recipe's model has."""
        there = [(name, self.found.parameters[name], TYPES) for name in self.found.parameters]
        there += [(name, own, ("float32", "bfloat16")) for role in MOMENTS for name, own in self.found.moments[role].items()]
        for parameter, name, types in there:
            tensor = self.source.tensors[name]
            shape = self.model.shapes.get(parameter) or self.model.shapes["model.embed_tokens.weight"]
            if tensor.shape != shape:
                raise Failure(f"{name} has the shape {list(tensor.shape)}, and {parameter} of the recipe {list(shape)}; change the sizes in [model], or "
                              "name the checkpoint of that model")
            if tensor.dtype not in types:
                raise Failure(f"{name} is {tensor.dtype}, and {' and '.join(types)} are read; convert it to float32 where it is saved")
        if self.rotary == INTERLEAVED and int(self.model.sizes["head_dim"]) % 2:
            raise Failure("heads of an odd size have no pairs of rows; give --rotary halves")

    def read(self, parameter: str, name: str) -> bytearray:
        """Returns the elements of a tensor, its rows in the order that shardc computes with."""
        tensor = self.source.tensors[name]
        data = bytearray(tensor.bytes())
        tensor.read(memoryview(data))
        if self.rotary == INTERLEAVED and ROTARY.search(parameter):
            permute(data, tensor.shape[0], row_order(int(self.model.sizes["head_dim"])))
        return data

    def pieces(self) -> list[tuple[str, str, str, str]]:
        """Returns what is written, in order: parameter, role, the tensor there, and its type here. Wider types come first, so that all are aligned."""
        pieces = []
        for parameter in self.model.shapes:
            name = self.found.parameters[parameter]
            pieces.append((parameter, "parameter", name, self.source.tensors[name].dtype))
            pieces += [(parameter, role, self.found.moments[role][parameter], "float32") for role in MOMENTS if parameter in self.found.moments[role]]
        return sorted(pieces, key=lambda piece: -ITEM_BYTES[piece[3]])

    def write(self, folder: Folder, digest) -> int:
        """Writes the checkpoint; returns the bytes of its tensors."""
        pieces = self.pieces()
        named = [(parameter if role == "parameter" else f"{parameter}.{role}", dtype, self.model.shapes[parameter])
                 for parameter, role, _, dtype in pieces]
        file = BlockWriter(folder.partial / TENSORS, digest)
        file.write(header_of(named))
        for parameter, role, name, _ in pieces:
            data = self.read(parameter, name)
            if parameter == "model.embed_tokens.weight" and role == "parameter":
                self.compare_tied(data)
            for part in [data] if role == "parameter" else widened(data, self.source.tensors[name].dtype):
                file.write(part)
            # The next tensor takes the memory of this one.
            data = part = None
        file.finish()
        write_durably(folder.partial / BLOCKS, file.digests)
        write_durably(folder.partial / MANIFEST, manifest_text(self.manifest(file.bytes, digest(file.digests).hex(), folder.path.name), digest))
        return file.bytes

    def compare_tied(self, data: bytearray) -> None:
        """Refuses a head of its own where the recipe's model has none."""
        head = self.found.parameters.get("lm_head.weight") if self.model.is_tied() else None
        if head and self.read("lm_head.weight", head) != data:
            raise Failure(f"{head} is not the embedding, and the recipe's model shares both; set model.tied = false")

    def manifest(self, size: int, digest: str, run_id: str) -> dict:
        layouts, tensors = [], {}
        for has_moments in (True, False):
            begin = 0
            for parameter, shape in self.model.shapes.items():
                if (parameter in self.found.moments["exp_avg"]) != has_moments:
                    continue
                dtype = self.source.tensors[self.found.parameters[parameter]].dtype
                tensors[parameter] = {"shape": list(shape), "dtype": TYPES[dtype][0], "layout": len(layouts), "begin": begin}
                begin += math.prod(shape)
            if begin:
                layouts.append({"length": begin, "axes": "dp", "cut": "none", "roles": ["parameter", *MOMENTS] if has_moments else ["parameter"]})
        # Which samples were taken is not known. No recipe can have this seed, so that no run keeps the data.
        data = {"fingerprint": "imported", "order": "sequential", "seed": UNKNOWN_SEED, "seq": int(self.model.sizes["seq"]), "eval_tokens": 0,
                "tokens_per_step": 0}
        # No plan made it.
        return {"format": "shardc checkpoint", "version": 3, "run_id": re.sub(r"[^A-Za-z0-9_.-]", "_", run_id).lstrip(".") or "imported",
                "step": self.step, "plan_hash": "0" * 32, "model": self.model.sizes, "mesh": {"dp": 1, "replicate": 1, "tp": 1},
                "state": {"step": self.step, "updates": self.updates}, "data": data, "files": {TENSORS: {"bytes": size, "digest": digest}},
                "layouts": layouts, "tensors": tensors}

    def report(self, out: pathlib.Path, size: int, seconds: float) -> None:
        moments = self.found.moments["exp_avg"]
        print(f"{out}: step {self.step}, {len(self.model.shapes)} parameters, moments of {len(moments)} with {self.updates} updates; {size / MIB:.1f} MiB "
              f"in {seconds:.1f} s")
        ordered = "in pairs of neighbours, which become halves of a head" if self.rotary == INTERLEAVED else "in halves of a head, as here"
        print(f"names of {self.program}; rows of q and k are {ordered} (--rotary {self.rotary})")
        if moments and (lacking := [name for name in self.model.shapes if name not in moments]):
            print(f"no moments of {listed(lacking)}: they begin with moments of 0")
        if self.found.left_out:
            print(f"left out: {listed(self.found.left_out)}")
        if objects := [name for name in self.source.objects if not SETTINGS.search(name)]:
            print(f"no tensors, and left out: {listed(objects)}")
        print(f'start.first = {{ seed = "{out}" }} takes the parameters; {{ continue = "{out}" }} the moments too. The data begin again')


def import_checkpoint(options: argparse.Namespace) -> None:
    begun = time.monotonic()
    digest = xxh3_128()
    made = Import(options)
    with Folder(options.out) as folder:
        size = made.write(folder, digest)
        folder.finish()
    made.report(options.out, size, time.monotonic() - begun)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, metavar="SOURCE", help="a folder of DCP, or a file of torch.save; with --to dcp a checkpoint of shardc")
    parser.add_argument("-o", dest="out", required=True, type=pathlib.Path, metavar="DIR", help="the folder to make")
    parser.add_argument("--recipe", metavar="FILE", help="the recipe whose model the parameters are of")
    parser.add_argument("--names", type=pathlib.Path, metavar="FILE", help="lines of two columns: a name there and the name here, {} for the number of a block")
    parser.add_argument("--order", type=pathlib.Path, metavar="FILE", help="the names of the parameters in the order in which the optimizer was given them, "
                        "if its state has numbers in place of names")
    parser.add_argument("--rotary", choices=(INTERLEAVED, HALVES), help="how rows of q and k are ordered there; by default as the program has them")
    parser.add_argument("--unused", action="append", default=[], metavar="GLOB", help="tensors to leave out; repeatable")
    parser.add_argument("--step", type=int, help="the steps of the run; by default those that the trainer kept, or the number of updates")
    parser.add_argument("--shardc", default="shardc", metavar="PROGRAM", help="default: shardc on the PATH")
    parser.add_argument("--to", choices=("dcp",), help="write a folder of torch.distributed.checkpoint from a checkpoint of shardc")
    parser.add_argument("--names-of", choices=tuple(WRITTEN), help="with --to dcp: whose names to write")
    options = parser.parse_args()
    if options.to is None and options.recipe is None:
        parser.error("--recipe FILE is missing: it says which parameters there are")
    if (options.to is None) != (options.names_of is None):
        parser.error("--to dcp and --names-of belong together: the latter says whose names to write")
    if options.to is not None and (given := [word for word in ("recipe", "names", "order", "unused", "step") if getattr(options, word)]):
        parser.error(f"--{given[0]} does not go with --to dcp; take it out")
    options.out = pathlib.Path(os.path.normpath(options.out))
    return options


def run(options: argparse.Namespace) -> None:
    if options.to is None:
        import_checkpoint(options)
    else:
        from checkpoint_to_dcp import write_dcp
        write_dcp(options)


def main() -> None:
    options = parse()
    end_with(lambda: run(options), options.out, "stopped; nothing was kept, and the same command begins again")


if __name__ == "__main__":
    main()
