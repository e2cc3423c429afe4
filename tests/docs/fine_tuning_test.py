"""Runs the commands of docs/fine_tuning.md, from a model's directory and a file of conversations to a merged model.

Usage: fine_tuning_test.py FOLDER [--transformers]    shardc and shardc-run are in FOLDER.

Run by ctest without packages: doubles take the places of tokenizers and transformers (tools/tokenizers_double.py), the model is one of
tests/parity/published, and the one command that opens the merged model by transformers is left out, which is printed. With
--transformers, as `tools/dev test-hf` runs it, every command runs with the packages themselves, on a model that transformers wrote, and
the merged model has to know the conversations better than the base.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

from commands_test import ROOT, environment_with, run_commands

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/tokenize"), str(ROOT / "tests/bench/fsdp2")]
PAGE = ROOT / "docs" / "fine_tuning.md"
PROGRAMS = pathlib.Path()
FAMILY = "qwen2_5"
ANSWERS = ["a cat sat", "on a mat", "by the sea", "in the sun", "so it goes"]
CHATS = [[{"role": "user", "content": f"what {word}"}, {"role": "assistant", "content": ANSWERS[i % len(ANSWERS)]}]
         for i, word in enumerate(["now", "then", "here", "there", "next"] * 40)]


def needs_transformers(command: str) -> bool:
    if "transformers" not in command:
        return False
    print(f"left to tools/dev test-hf: {command}", file=sys.stderr)
    return True


class FineTuningTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="fine_tuning.")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.model = self.folder / "models/base"
        (self.folder / "chats.jsonl").write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in CHATS))
        # The command of the wheel, as a checkout has it.
        (self.folder / "bin").mkdir()
        command = self.folder / "bin/shardc-tokenize"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tools/tokenize_text.py" "$@"\n')
        command.chmod(0o755)

    def run_page(self, left_out, **more) -> int:
        path = f"{self.folder / 'bin'}:{PROGRAMS}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        return run_commands(self, PAGE, self.folder, environment_with(PROGRAMS) | more | {"PATH": path}, left_out)

    def test_without_packages(self):
        from tokenize_chats_test import PLAIN, SPECIAL, VOCAB
        from tokenizers_double import CHAT_TEMPLATE_UTILS, TOKENIZERS, TRANSFORMERS

        modules = {"tokenizers.py": TOKENIZERS, "transformers/__init__.py": TRANSFORMERS, "transformers/utils/__init__.py": "",
                   "transformers/utils/chat_template_utils.py": CHAT_TEMPLATE_UTILS, "jinja2.py": '__version__ = "3.1.6"'}
        for name, text in modules.items():
            path = self.folder / "modules" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        shutil.copytree(ROOT / "tests/parity/published/llama", self.model)
        tokenizer = {"vocab": VOCAB, "first": 0, "last": (), "added": [*SPECIAL], "model": {}, "post_processor": 1}
        (self.model / "tokenizer.json").write_text(json.dumps(tokenizer))
        (self.model / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<e>", "chat_template": PLAIN}))
        self.assertGreater(self.run_page(needs_transformers, PYTHONPATH=str(self.folder / "modules")), 8)
        merged = json.loads((self.folder / "merged/config.json").read_text())
        self.assertEqual((merged["model_type"], merged["hidden_size"]), ("llama", 36))
        self.assertTrue((self.folder / "merged/tokenizer.json").exists())
        self.assertTrue((self.folder / "adapter/adapter_model.safetensors").exists())


class WithTransformersTest(FineTuningTest):
    test_without_packages = None

    def losses(self) -> list[float]:
        """What the base and the merged model make of the conversations."""
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(str(self.model))
        losses = []
        for path in (self.model, self.folder / "merged"):
            model, information = AutoModelForCausalLM.from_pretrained(str(path), dtype=torch.float32, output_loading_info=True)
            self.assertFalse(information["missing_keys"] or information["unexpected_keys"], path)
            with torch.no_grad():
                texts = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in CHATS[:5]]
                ids = [torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]]) for text in texts]
                losses.append(sum(model(each, labels=each).loss.item() for each in ids) / len(ids))
        return losses

    def test_with_packages(self):
        import torch
        from chat_families import write_folder
        from chats import tokenizer_of_bytes
        from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

        write_folder(self.model, FAMILY, tokenizer_of_bytes())
        size = len(AutoTokenizer.from_pretrained(str(self.model)))
        torch.manual_seed(1)
        config = LlamaConfig(vocab_size=size, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=False)
        LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(str(self.model))
        self.assertGreater(self.run_page(lambda command: False), 9)
        base, merged = self.losses()
        print(f"loss on the conversations: {base:.4f} of the base, {merged:.4f} of the merged model")
        self.assertLess(merged, base - 0.01)


def main() -> None:
    global PROGRAMS
    has_packages = "--transformers" in sys.argv
    if has_packages:
        import pytorch

        pytorch.install(pytorch.TRANSFORMERS)
        pytorch.enter()
        sys.argv.remove("--transformers")
        os.environ["HF_HUB_OFFLINE"] = "1"
    PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(defaultTest="WithTransformersTest" if has_packages else "FineTuningTest")


if __name__ == "__main__":
    main()
