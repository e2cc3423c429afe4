"""Tests of import_checkpoint.py without torch: files come from torch_double.py, and from ranks of PyTorch in tests/parity/torch/saved.

Usage: import_checkpoint_test.py SHARDC     Run by ctest. tests/parity/torch/imports.py compares with PyTorch itself.
"""

import argparse
import json
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import checkpoint_archives  # noqa: E402
import checkpoint_names  # noqa: E402
import checkpoint_output  # noqa: E402
import torch_double  # noqa: E402
from script_test import ROOT, ScriptTest  # noqa: E402

SAVED = ROOT / "tests/parity/torch/saved"
SHARDC = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else str(ROOT / "build/shardc")
RECIPE = """[model]
family = "llama"
layers = 1
hidden = 8
heads = 2
kv_heads = 1
ffn = 6
vocab = 5
seq = 4
{more}
[init]
scheme = "torchtitan-llama"
[optimizer]
lr = 0
[data]
synthetic = "uniform"
[batch]
global = 1
micro = 1
[train]
steps = 1
[run]
threads = 1
"""
SHAPES = {"tok_embeddings.weight": (5, 8), "layers.0.attention_norm.weight": (8,), "layers.0.attention.wq.weight": (8, 8),
          "layers.0.attention.wk.weight": (4, 8), "layers.0.attention.wv.weight": (4, 8), "layers.0.attention.wo.weight": (8, 8),
          "layers.0.ffn_norm.weight": (8,), "layers.0.feed_forward.w1.weight": (6, 8), "layers.0.feed_forward.w3.weight": (6, 8),
          "layers.0.feed_forward.w2.weight": (8, 6), "norm.weight": (8,), "output.weight": (5, 8)}
# Makes a file if it is loaded.
TOUCH = b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x0ctouch called\x94\x85\x94R\x94."


def values_of(shape, first: int) -> list[float]:
    size = 1
    for dim in shape:
        size *= dim
    return [float(first + i) for i in range(size)]


def state_of(steps=3, moments=True, by_number=False) -> dict:
    """Returns what torchtitan saves, as shapes and values."""
    tensors = {name: (shape, values_of(shape, 1000 * i)) for i, (name, shape) in enumerate(SHAPES.items())}
    for i, (name, shape) in enumerate(SHAPES.items() if moments else ()):
        key = f"optimizer.state.{i if by_number else name}"
        tensors |= {f"{key}.exp_avg": (shape, values_of(shape, 1000 * i + 100)), f"{key}.exp_avg_sq": (shape, values_of(shape, 1000 * i + 200)),
                    f"{key}.step": ((), [float(steps)])}
    return tensors


def tensors_of(folder: pathlib.Path) -> dict[str, list[float]]:
    data = (folder / checkpoint_output.TENSORS).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__")
    return {name: list(struct.unpack_from(f"<{about['shape'][0]}f", data, begin + about["data_offsets"][0])) for name, about in header.items()}


class Harmless:
    """Counts how often it was made."""
    made = 0

    def __reduce__(self):
        return Harmless.make, ()

    @staticmethod
    def make():
        Harmless.made += 1


class ImportTest(ScriptTest):
    def setUp(self):
        super().setUp()
        self.write("recipe.toml", RECIPE.format(more=""))

    def tool(self, *arguments) -> subprocess.CompletedProcess:
        command = [sys.executable, ROOT / "tools/import_checkpoint.py", *arguments, "-o", "out", "--shardc", SHARDC, "--recipe", "recipe.toml"]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)

    def succeed(self, *arguments) -> str:
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        result = self.tool(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def refuse(self, message: str, *arguments) -> None:
        result = self.tool(*arguments)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertTrue(result.stderr.startswith("error: "), result.stderr)
        self.assertIn(message, result.stderr)
        self.assertEqual(list(self.folder.glob("out*")), [])

    def shardc(self, *arguments) -> subprocess.CompletedProcess:
        return subprocess.run([SHARDC, *arguments], cwd=self.folder, capture_output=True, text=True)

    def save(self, tensors=None, objects=None, ranks=3) -> None:
        shutil.rmtree(self.folder / "dcp", ignore_errors=True)
        torch_double.save_dcp(self.folder / "dcp", state_of() if tensors is None else tensors, {} if objects is None else objects, ranks)

    def test_saved_by_pytorch(self):
        with tarfile.open(SAVED / "dcp.tar.xz") as archive:
            archive.extractall(self.folder)
        for name in ("recipe.toml", "tokens.bin"):
            shutil.copy(SAVED / name, self.folder)
        result = subprocess.run([sys.executable, ROOT / "tools/import_checkpoint.py", "dcp", "-o", "imported", "--recipe", "recipe.toml", "--shardc", SHARDC],
                                cwd=self.folder, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for path in sorted((SAVED / "imported").iterdir()):
            self.assertEqual((self.folder / "imported" / path.name).read_bytes(), path.read_bytes(), path.name)
        result = self.shardc("run", "recipe.toml", "--run-dir", "next")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("moments of 3 updates go on", result.stdout + result.stderr)
        lines = [json.loads(line) for line in (self.folder / "next/metrics.jsonl").read_text().splitlines()]
        losses, wanted = [line["loss"] for line in lines if "grad_norm" in line], json.loads((SAVED / "next.json").read_text())
        self.assertEqual(len(losses), len(wanted))
        for own, other in zip(losses, wanted):
            self.assertLess(abs(own - other), 1e-5 * other)
        # Keeping the data is not possible: which samples were taken is not known.
        result = self.shardc("check", "recipe.toml", "--set", 'start.first={ continue = "imported", reset = ["schedule"] }')
        self.assertEqual(result.returncode, 3)
        self.assertIn('add "data" to `reset`', result.stderr + result.stdout)

    def test_every_element(self):
        self.save(objects={"train_state.step": 7, "lr_scheduler.name": "linear", "optimizer.param_groups.0.lr": 0.1})
        text = self.succeed("dcp")
        self.assertIn("out: step 7, 12 parameters, moments of 12 with 3 updates", text)
        self.assertIn("no tensors, and left out: train_state.step, lr_scheduler.name\n", text)
        tensors = tensors_of(self.folder / "out")
        self.assertEqual(len(tensors), 36)
        self.assertEqual(tensors["model.embed_tokens.weight"], values_of((5, 8), 0))
        self.assertEqual(tensors["model.layers.0.mlp.up_proj.weight.exp_avg_sq"], values_of((6, 8), 8200))
        # Heads of 4 rows: 0 2 1 3.
        for name, first in {"q_proj.weight": 2000, "q_proj.weight.exp_avg": 2100, "q_proj.weight.exp_avg_sq": 2200}.items():
            rows = [values_of((8,), first + 8 * row) for row in (0, 2, 1, 3, 4, 6, 5, 7)]
            self.assertEqual(tensors[f"model.layers.0.self_attn.{name}"], sum(rows, []))
        self.assertEqual(self.shardc("checkpoint", "verify", "out").returncode, 0)
        manifest = json.loads((self.folder / "out/manifest.json").read_text())
        self.assertEqual((manifest["step"], manifest["state"]), (7, {"step": 7, "updates": 3}))
        self.succeed("dcp", "--rotary", "halves", "--step", "9")
        self.assertEqual(tensors_of(self.folder / "out")["model.layers.0.self_attn.q_proj.weight"], values_of((8, 8), 2000))

    def test_loads_without_moments(self):
        self.save(state_of(moments=False))
        self.assertIn("moments of 0 with 0 updates", self.succeed("dcp"))
        for first in ('{ seed = "out" }', '{ continue = "out" }'):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            result = self.shardc("run", "recipe.toml", "--run-dir", "run", "--set", f"start.first={first}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("12 parameters loaded", result.stdout + result.stderr)

    def test_numbers_in_place_of_names(self):
        self.save()
        self.succeed("dcp")
        wanted = tensors_of(self.folder / "out")
        self.save(state_of(by_number=True), {"optimizer.param_groups.0.params": list(range(12))})
        self.succeed("dcp")
        self.assertEqual(tensors_of(self.folder / "out"), wanted)
        shutil.rmtree(self.folder / "out")
        self.save(state_of(by_number=True), {"optimizer.param_groups.0.lr": 0.1, "optimizer.param_groups.1.lr": 0.1})
        self.refuse("2 groups, so that it is not known which parameter has which number; give --order FILE", "dcp")
        self.write("order", "\n".join(SHAPES))
        self.succeed("dcp", "--order", "order")
        self.assertEqual(tensors_of(self.folder / "out"), wanted)

    def test_views_in_a_file(self):
        storage = torch_double.floats(range(4000))
        tensors, offset = {}, 0
        for name, shape in SHAPES.items():
            size = len(values_of(shape, 0))
            tensors[name] = torch_double.Tensor("float32", shape, storage, offset)
            offset += size
        tensors["output.weight"] = torch_double.Tensor("float32", (5, 8), storage, 3, (1, 5))
        (self.folder / "x.pt").write_bytes(torch_double.save({"model": tensors, "epoch": 3}))
        self.assertIn("no tensors, and left out: epoch", self.succeed("x.pt"))
        found = tensors_of(self.folder / "out")
        self.assertEqual(found["model.layers.0.input_layernorm.weight"], values_of((8,), 40))
        self.assertEqual(found["lm_head.weight"], [float(3 + row + 5 * column) for row in range(5) for column in range(8)])

    def test_moments_in_bf16_are_widened(self):
        tensors = {name: torch_double.Tensor("bfloat16", shape, b"\x80\x3f" * len(values_of(shape, 0))) for name, shape in SHAPES.items()}
        step = torch_double.Tensor("float32", (), torch_double.floats([2]))
        state = {name: {"exp_avg": tensor, "exp_avg_sq": tensor, "step": step} for name, tensor in tensors.items()}
        (self.folder / "x.pt").write_bytes(torch_double.save({"model": tensors, "optimizer": {"state": state}}))
        self.succeed("x.pt")
        manifest = json.loads((self.folder / "out/manifest.json").read_text())
        self.assertEqual(manifest["tensors"]["lm_head.weight"]["dtype"], "bf16")
        data = (self.folder / "out" / checkpoint_output.TENSORS).read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        about = json.loads(data[8:begin])["lm_head.weight.exp_avg"]
        self.assertEqual(data[begin + about["data_offsets"][0]:][:8], struct.pack("<2f", 1, 1))
        self.assertEqual(self.shardc("checkpoint", "verify", "out").returncode, 0)

    def test_foreign_class_is_not_made(self):
        Harmless.made = 0
        data = pickle.dumps(Harmless())
        pickle.loads(data)
        self.assertEqual(Harmless.made, 1)
        for known in (checkpoint_archives.IN_METADATA, checkpoint_archives.IN_ARCHIVE):
            with self.assertRaisesRegex(checkpoint_archives.Failure, f"x has an object of {__name__}.Harmless.make, which is not read"):
                checkpoint_archives.unpickle(data, "x", known, "")
        self.assertEqual(Harmless.made, 1)
        self.save()
        (self.folder / "dcp/.metadata").write_bytes(TOUCH)
        self.refuse("dcp/.metadata has an object of posix.system, which is not read, as that could run code", "dcp")
        (self.folder / "x.pt").write_bytes(torch_double.save({"args": argparse.Namespace(a=1)}))
        self.refuse("x.pt has an object of argparse.Namespace, which is not read, as that could run code; save tensors, numbers and texts alone", "x.pt")
        self.assertFalse((self.folder / "called").exists())

    def test_objects_are_not_run(self):
        self.save(objects={"train_state.step": torch_double.Raw(TOUCH), "loader": torch_double.Raw(TOUCH)})
        self.assertIn("no tensors, and left out: train_state.step, loader\n", self.succeed("dcp"))
        self.assertFalse((self.folder / "called").exists())

    def test_folders_that_are_not_whole(self):
        self.save()
        os.rename(self.folder / "dcp/.metadata", self.folder / "kept")
        self.refuse("dcp has no .metadata, which DCP writes last: its save did not finish; take the checkpoint before", "dcp")
        self.write("dcp/__0.metadata", "")
        self.refuse("dcp has a .metadata of each rank (use_collectives=False), and none of all, which is not read; save it with collectives", "dcp")
        (self.folder / "dcp/__0.metadata").unlink()
        os.rename(self.folder / "kept", self.folder / "dcp/.metadata")
        self.refuse("is one file of a checkpoint; name its folder", "dcp/__0_0.distcp")
        data = (self.folder / "dcp/__1_0.distcp").read_bytes()
        at = data.index(torch_double.floats([1004.0])) + 2
        (self.folder / "dcp/__1_0.distcp").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        self.refuse("is damaged: its bytes have another CRC-32 than torch.save wrote; take another copy of it", "dcp")
        (self.folder / "dcp/__1_0.distcp").write_bytes(data[:len(data) // 2])
        self.refuse("the file is cut short; copy it again, or take the checkpoint before", "dcp")
        (self.folder / "dcp/__1_0.distcp").unlink()
        self.refuse("dcp/__1_0.distcp, which has tok_embeddings.weight, is missing; copy it from the machine of the rank that wrote it", "dcp")
        self.write("empty/x", "")
        self.refuse("so it is no folder of torch.distributed.checkpoint; name the folder of one step", "empty")
        self.refuse("nothing does not exist", "nothing")

    def test_shards_of_hugging_face(self):
        def shard(number: int, offset: int, rows: int, metadata: bool):
            header = {"norm.weight": {"dtype": "F32", "shape": [rows], "data_offsets": [0, 4 * rows]}}
            if metadata:
                header["__metadata__"] = {"DCP_SHARDING_INFO": json.dumps({"norm.weight": {"saved_offsets": [offset]}})}
            text = json.dumps(header).encode()
            (self.folder / "hf").mkdir(exist_ok=True)
            path = self.folder / f"hf/shard-0000{number}-model-00001-of-00001.safetensors"
            path.write_bytes(len(text).to_bytes(8, "little") + text + torch_double.floats(range(offset, offset + rows)))

        shard(2, 5, 3, True)
        self.refuse("the files of hf have parts of norm.weight alone; copy the files of all ranks there", "hf")
        shard(1, 0, 5, True)
        self.refuse("no tensor has a name of", "hf")
        self.write("names", "norm.weight model.norm.weight")
        self.refuse("no tensor is model.embed_tokens.weight", "hf", "--names", "names")
        shard(1, 0, 5, False)
        shard(2, 0, 3, False)
        self.refuse("hf has whole safetensors, which shardc reads itself: shardc new RECIPE --from hf", "hf")

    def test_tensors_that_do_not_fit(self):
        state = state_of()
        self.save({**state, "tok_embeddings.weight": ((6, 8), values_of((6, 8), 0))})
        self.refuse("tok_embeddings.weight has the shape [6, 8], and model.embed_tokens.weight of the recipe [5, 8]; change the sizes in [model]", "dcp")
        self.save({"layers.0._flat_param": ((9,), values_of((9,), 0))})
        self.refuse("has layers.0._flat_param: its tensors are those of FSDP1's flat parameters", "dcp")
        self.save({**state, "ema.norm.weight": ((8,), values_of((8,), 0))})
        self.refuse("the recipe's model has no parameter for ema.norm.weight; leave them out with --unused GLOB", "dcp")
        self.assertIn("left out: ema.norm.weight", self.succeed("dcp", "--unused", "ema.*"))
        shutil.rmtree(self.folder / "out")
        self.refuse("--unused x* matches no tensor", "dcp", "--unused", "ema.*", "--unused", "x*")
        del state["norm.weight"]
        self.save(state)
        self.refuse("no tensor is model.norm.weight of the recipe's model; change [model], or give --names FILE", "dcp")
        state["model.norm.weight"] = state["ema"] = ((8,), values_of((8,), 0))
        self.write("names", "ema model.norm.weight\n")
        self.save(state)
        self.refuse("model.norm.weight and ema are both model.norm.weight; leave one out with --unused", "dcp", "--names", "names")

    def test_moments_that_do_not_fit(self):
        state = state_of()
        key = "optimizer.state.norm.weight"
        self.save({**state, f"{key}.step": ((), [1.0])})
        self.refuse(f"the moments of model.norm.weight have seen 1 updates, and those of the others 3; a checkpoint here has one count. Leave the former out, "
                    f"with --unused '{key}.*'", "dcp")
        self.assertIn("no moments of model.norm.weight: they begin with moments of 0", self.succeed("dcp", "--unused", f"{key}.*"))
        result = self.shardc("run", "recipe.toml", "--run-dir", "run", "--set", 'start.first={ continue = "out" }')
        self.assertIn("moments of 3 updates go on, 1 parameter begins with moments of 0", result.stdout + result.stderr)
        shutil.rmtree(self.folder / "out")
        self.refuse("the moments have seen 3 updates, and the step is 2; give --step 3", "dcp", "--unused", f"{key}.*", "--step", "2")
        self.save({name: value for name, value in state.items() if name != f"{key}.exp_avg"})
        self.refuse("there is exp_avg_sq and no exp_avg of model.norm.weight", "dcp")
        self.save({**state, f"{key}.momentum_buffer": ((8,), values_of((8,), 0))})
        self.refuse("is of an optimizer that shardc does not have", "dcp")

    def test_tied_head(self):
        self.write("recipe.toml", RECIPE.format(more="tied = true"))
        state = {name: value for name, value in state_of().items() if not name.startswith("optimizer.state.output")}
        self.save(state)
        self.refuse("output.weight is not the embedding, and the recipe's model shares both; set model.tied = false", "dcp")
        state["output.weight"] = state["tok_embeddings.weight"]
        self.save(state)
        self.assertIn("11 parameters, moments of 11", self.succeed("dcp"))

    def test_names(self):
        model = checkpoint_names.Model({"family": "llama"}, {})
        for table in checkpoint_names.TABLES.values():
            self.assertLessEqual({name for name in table.values() if "{}" in name}, {checkpoint_names.BLOCK + name.removeprefix(checkpoint_names.BLOCK)
                                                                                    for name in table.values() if "{}" in name})
        self.assertEqual(checkpoint_names.with_block(checkpoint_names.TORCHTITAN, "layers.12.attention.qkv_linear.wk.weight"),
                         "model.layers.12.self_attn.k_proj.weight")
        self.assertEqual(checkpoint_names.with_block(checkpoint_names.KEMPNERFORGE, "layers.3.mlp_norm.weight"), "model.layers.3.post_attention_layernorm.weight")
        self.assertIsNone(checkpoint_names.with_block(checkpoint_names.TORCHTITAN, "layers.x.ffn_norm.weight"))
        self.assertEqual(checkpoint_names.plain("module.model._orig_mod.norm.weight"), ["module.model.norm.weight", "model.norm.weight", "norm.weight"])
        self.assertEqual(checkpoint_names.rotary_of("torchtitan", None, model), "interleaved")
        self.assertEqual(checkpoint_names.rotary_of("torchtitan", None, checkpoint_names.Model({"family": "qwen3"}, {})), "halves")
        with self.assertRaisesRegex(checkpoint_archives.Failure, "give --rotary interleaved if"):
            checkpoint_names.rotary_of("KempnerForge", None, model)
        order = checkpoint_names.row_order(6)
        self.assertEqual(order, [0, 2, 4, 1, 3, 5])
        self.assertEqual([order[i] for i in checkpoint_names.inverse(order)], list(range(6)))

    def test_names_of_others(self):
        self.save({f"net/{name}": value for name, value in state_of(moments=False).items()})
        self.refuse("no tensor has a name of torchtitan, KempnerForge or Hugging Face", "dcp")
        self.write("names", "".join(f"net/{there} {here}  # a row\n" for there, here in checkpoint_names.TORCHTITAN.items()))
        self.refuse("give --rotary interleaved if neighbours of a head are rotated together", "dcp", "--names", "names")
        self.assertIn("names of --names; rows of q and k are in pairs", self.succeed("dcp", "--names", "names", "--rotary", "interleaved"))
        shutil.rmtree(self.folder / "out")
        self.write("names", "a b c\n")
        self.refuse("names:1: not two columns, or a name twice; write the name there and the name here", "dcp", "--names", "names")

    def test_digests(self):
        digest = checkpoint_output.xxh3_128()
        # The digest of nothing is in xxHash's own tests.
        self.assertEqual(digest(b"").hex(), "99aa06d3014798d86001c324468d497f")
        text = checkpoint_output.manifest_text({"a": 1}, digest)
        line, rest = text.split(b"\n", 1)
        self.assertEqual(line, b'{"digest":"' + digest(rest).hex().encode() + b'",')
        self.assertEqual(json.loads(text), {"a": 1, "digest": digest(rest).hex()})

    def test_what_is_there_stays(self):
        self.save()
        self.write("out/x", "")
        result = self.tool("dcp")
        self.assertEqual((result.returncode, result.stderr), (1, "error: out exists; remove it, or name another -o\n"))
        shutil.rmtree(self.folder / "out")
        self.write(f"out.partial/{checkpoint_output.TENSORS}", "what a killed import left")
        self.succeed("dcp")
        shutil.rmtree(self.folder / "out")
        self.write("out.partial/x", "")
        result = self.tool("dcp")
        self.assertEqual((result.returncode, result.stderr), (1, "error: out.partial has x, so this program did not make it; remove it, or name another -o\n"))


if __name__ == "__main__":
    unittest.main()
