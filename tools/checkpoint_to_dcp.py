"""Writes a checkpoint of shardc as a folder of torch.distributed.checkpoint (DCP), which one process or many load.

Parameters have the names of the program that is to read them, and rows of q and k the order of its pairs; what AdamW keeps is
`optimizer.state.NAME.exp_avg`, `exp_avg_sq` and `step`. DCP writes: this gives it tensors without elements, and their elements one by
one when it asks for them.
"""

import argparse
import gc
import json
import os
import pathlib
import re
import subprocess
import time

from checkpoint_archives import ITEM_BYTES, read_into
from checkpoint_names import INTERLEAVED, MOMENTS, ROTARY, WRITTEN, Model, inverse, names_written, permute, rotary_of, row_order
from checkpoint_output import MANIFEST, Folder
from checkpoint_sources import SAFETENSORS_TYPES, safetensors_header
from failure import Failure

PIECE = re.compile(r"\[(\d+), (\d+)\) of (?:columns \[(\d+), (\d+)\) of )?\[([\d, ]*)\]")


class Checkpoint:
    """The tensors of a checkpoint of shardc: its parameters, and `NAME.exp_avg` and `NAME.exp_avg_sq`."""

    def __init__(self, folder: pathlib.Path, shardc: str):
        if not (folder / MANIFEST).is_file():
            raise Failure(f"{folder} has no {MANIFEST}, so it is no checkpoint; name the folder of one step, runs/x/checkpoints/step-00000100 for instance")
        try:
            done = subprocess.run([shardc, "checkpoint", "verify", folder], capture_output=True, text=True)
        except OSError as error:
            raise Failure(f"{shardc} cannot be started ({error.strerror}); put shardc on the PATH, or give --shardc PROGRAM") from None
        if done.returncode != 0:
            raise Failure(f"shardc checkpoint verify {folder} ended with {done.returncode}:\n{done.stdout}{done.stderr}".rstrip())
        self.folder = folder
        self.manifest = json.loads((folder / MANIFEST).read_text())
        if "base" in self.manifest:
            raise Failure(f"{folder} leaves the base of its adapters in {self.manifest['base']['path']}; write both as one model: "
                          f"shardc export {folder} -o merged --merge")
        self.shapes: dict[str, list[int]] = {}
        self.types: dict[str, str] = {}
        # The pieces of each tensor: file, first byte, elements [begin, end), columns.
        self.pieces: dict[str, list[tuple]] = {}
        for name in sorted(self.manifest["files"]):
            self.take_file(folder / name)

    def take_file(self, path: pathlib.Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        header, data = safetensors_header(path, descriptor)
        metadata = header.pop("__metadata__", {})
        for name, about in header.items():
            found = PIECE.fullmatch(metadata.get(f"elements of {name}", ""))
            if found is None:
                raise Failure(f"{path} does not say which elements of {name} it has; a newer shardc writes such files: resume the run, and save once more")
            begin, end, *columns = (None if group is None else int(group) for group in found.groups()[:4])
            self.shapes[name] = [int(word) for word in found.group(5).split(",") if word.strip()]
            self.types[name] = SAFETENSORS_TYPES[about["dtype"]]
            self.pieces.setdefault(name, []).append((descriptor, data + about["data_offsets"][0], begin, end, columns))

    def read(self, name: str) -> bytearray:
        """Returns the elements of a tensor, in order."""
        shape, item = self.shapes[name], ITEM_BYTES[self.types[name]]
        size = item
        for dim in shape:
            size *= dim
        data = bytearray(size)
        for descriptor, offset, begin, end, (first, last) in self.pieces[name]:
            if first is None:
                read_into(descriptor, memoryview(data)[begin * item:end * item], offset, f"{self.folder} ({name})")
                continue
            piece = bytearray((end - begin) * item)
            read_into(descriptor, memoryview(piece), offset, f"{self.folder} ({name})")
            width, at = last - first, begin
            while at < end:
                stop = min(end, (at // width + 1) * width)
                place = (at // width * shape[1] + first + at % width) * item
                data[place:place + (stop - at) * item] = memoryview(piece)[(at - begin) * item:(stop - begin) * item]
                at = stop
        return data


class Export:
    def __init__(self, options: argparse.Namespace):
        self.checkpoint = Checkpoint(options.source, options.shardc)
        manifest = self.checkpoint.manifest
        self.head_dim = int(manifest["model"]["head_dim"])
        table, _, self.is_flat = WRITTEN[options.names_of]
        self.rotary = rotary_of(table or options.names_of, options.rotary, Model(manifest["model"], {}))
        self.names = names_written(options.names_of)
        self.updates = int(manifest["state"].get("updates", 0))
        # The tensors here, by the name of DCP.
        self.sources: dict[str, str] = {}
        self.state: dict = {}
        self.steps: dict[str, float] = {}

    def name_of(self, parameter: str) -> str:
        if not self.names:
            return parameter
        for here, there in self.names.items():
            pattern = re.escape(here).replace(r"\{\}", r"(\d+)")
            if found := re.fullmatch(pattern, parameter):
                return there.format(*found.groups())
        raise Failure(f"{parameter} has no name there; --names-of hugging-face writes the names that it has here")

    def make_state(self, torch) -> None:
        checkpoint = self.checkpoint
        types = {name: getattr(torch, name) for name in ("float32", "bfloat16", "float16")}

        def empty(name: str):
            return torch.empty(checkpoint.shapes[name], dtype=types[checkpoint.types[name]], device="meta")

        optimizer: dict[str, dict] = {}
        model: dict = {}
        for parameter, about in checkpoint.manifest["tensors"].items():
            name = self.name_of(parameter)
            model[name] = empty(parameter)
            self.sources[name if self.is_flat else f"model.{name}"] = parameter
            if parameter == "model.embed_tokens.weight" and checkpoint.manifest["model"].get("tied") == "true":
                # Programs save a shared head under both names.
                head = self.name_of("lm_head.weight")
                model[head] = empty(parameter)
                self.sources[head if self.is_flat else f"model.{head}"] = parameter
            if all(f"{parameter}.{role}" in checkpoint.shapes for role in MOMENTS):
                optimizer[name] = {role: empty(f"{parameter}.{role}") for role in MOMENTS}
                optimizer[name]["step"] = torch.tensor(float(self.updates - about.get("first_update", 0)))
                self.sources |= {f"optimizer.state.{name}.{role}": f"{parameter}.{role}" for role in MOMENTS}
        self.state = model if self.is_flat else {"model": model}
        if optimizer:
            self.state["optimizer"] = {"state": optimizer}

    def tensor(self, name: str, torch, like):
        """Returns a tensor of DCP with its elements."""
        # torch.save leaves each tensor in a circle of objects.
        gc.collect()
        source = self.sources[name]
        data = self.checkpoint.read(source)
        parameter = next((source.removesuffix("." + role) for role in MOMENTS if source.endswith("." + role)), source)
        if self.rotary == INTERLEAVED and ROTARY.search(parameter):
            permute(data, like.shape[0], inverse(row_order(self.head_dim)))
        return torch.frombuffer(data, dtype=like.dtype).view(like.shape)

    def write(self, folder: Folder) -> None:
        try:
            import torch
            from torch.distributed import checkpoint as dcp
        except ImportError:
            raise Failure("--to dcp needs torch; type: pip install torch") from None
        import warnings

        export = self

        class Planner(dcp.DefaultSavePlanner):
            def lookup_object(self, index):
                found = super().lookup_object(index)
                return export.tensor(index.fqn, torch, found) if index.fqn in export.sources else found

        self.make_state(torch)
        # Objects of torch itself need no look.
        gc.freeze()
        with warnings.catch_warnings():
            # One process needs no group.
            warnings.simplefilter("ignore")
            # DCP keeps all tensors of a file until it is written, so each has a file of its own.
            writer = dcp.FileSystemWriter(folder.partial, single_file_per_rank=False)
            dcp.save(self.state, storage_writer=writer, planner=Planner(), no_dist=True)


def write_dcp(options: argparse.Namespace) -> None:
    begun = time.monotonic()
    made = Export(options)
    with Folder(options.out) as folder:
        made.write(folder)
        folder.finish()
    moments = len(made.state.get("optimizer", {}).get("state", {}))
    prefix = "" if made.is_flat else "model."
    print(f"{options.out}: {len(made.checkpoint.manifest['tensors'])} parameters as {prefix}NAME, moments of {moments} as optimizer.state.NAME, "
          f"{made.updates} updates; {time.monotonic() - begun:.1f} s")
    print(f"names of {options.names_of}; rows of q and k are {made.rotary} there (--rotary {made.rotary})")
    if (optimizer := made.checkpoint.manifest.get("optimizer", "adamw")) != "adamw":
        print(f"what {optimizer} keeps is left out: only moments of AdamW are written")
    print("learning rates and other settings of the optimizer are not in it; load the keys that are there")
