"""Makes the adapters of tests/support/peft as the package peft writes them, and what it makes of their configurations.

    .deps/bench-venv/bin/python tests/parity/transformers/make_adapters.py     # after tools/dev parity-transformers

Each folder is an adapter of the model of tests/recipe/minimal.toml, with values other than 0 in B. configs.json has configurations as peft
saves them, or as people write them, and for some modules of a model of 12 layers the rank and the scale that peft gives them; null for
a module without an adapter. tests/checkpoint/peft.cpp compares shardc with it.
"""

import json
import pathlib
import shutil
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "tests" / "support" / "peft"
SIZES = dict(vocab_size=32, hidden_size=8, intermediate_size=16, num_attention_heads=2, num_key_value_heads=2)
ALL = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj".split()
ADAPTERS = {
    "all": dict(r=4, lora_alpha=8, target_modules=ALL),
    "patterns": dict(r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "v_proj", "down_proj"], rank_pattern={"down_proj": 2},
                     alpha_pattern={r"layers\.1\.self_attn\..*": 3}),
    "dora": dict(r=4, lora_alpha=8, target_modules=["q_proj"], use_dora=True),
    "embedding": dict(r=4, lora_alpha=8, target_modules=["q_proj", "embed_tokens"]),
}
UNSLOTH = (r"(?:.*?(?:language|text).*?(?:self_attn|mlp).*?(?:q_proj|down_proj).*?)|"
           r"(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn|mlp)\.(?:(?:q_proj|down_proj)))")
CONFIGS = [
    dict(r=4, lora_alpha=16, target_modules=["q_proj", "k_proj"], rank_pattern={"q_proj": 2}, alpha_pattern={"layers.1.self_attn.k_proj": 32}),
    dict(r=4, lora_alpha=16, target_modules=ALL, rank_pattern={"1.self_attn.q_proj": 2, "q_proj": 1, "proj": 3}, use_rslora=True),
    dict(r=4, lora_alpha=6, target_modules="all-linear", alpha_pattern={"^model.layers.1.mlp.up_proj": 5, r"mlp\..*": 7}),
    dict(r=4, lora_alpha=6, target_modules=UNSLOTH),
    dict(r=4, lora_alpha=6, target_modules=r".*\.(0|11)\..*(q|k)_proj", exclude_modules=["11.self_attn.k_proj"]),
    dict(r=4, lora_alpha=6, target_modules=ALL, exclude_modules=r".*\.mlp\..*"),
    dict(r=4, lora_alpha=6, target_modules=["q_proj", "model.layers.11.mlp.up_proj"], layers_to_transform=[1, 11]),
    dict(r=4, lora_alpha=6, target_modules=["q_proj"], layers_to_transform=11, layers_pattern="layers"),
    dict(r=4, lora_alpha=6, target_modules=["q_proj"], rank_pattern={"z.*": 3, ".*self_attn.q_proj": 2, "(model|x).layers.1[.]self_attn.q_proj": 1}),
    dict(r=3, lora_alpha=0.5, target_modules=["down_proj"], alpha_pattern={"11.mlp.down_proj|1.mlp.down_proj": 1.5}),
    dict(r=4, target_modules=["self_attn.o_proj", "o_proj_", "p_proj"], init_lora_weights="gaussian", lora_dropout=0.1),
]


def model_of(layers):
    import torch
    import transformers

    torch.manual_seed(layers)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, num_hidden_layers=layers))


def modules_of(config):
    """What peft makes of a configuration: rank and scale of modules of the first two layers and the last one."""
    import peft

    model = peft.get_peft_model(model_of(12), config)
    layers = {name.removeprefix("base_model.model."): module for name, module in model.named_modules() if hasattr(module, "lora_A")}
    modules = {}
    for layer in [0, 1, 11]:
        for projection in ALL:
            name = f"model.layers.{layer}.{'mlp' if projection in ALL[4:] else 'self_attn'}.{projection}"
            modules[name] = [layers[name].r["default"], layers[name].scaling["default"]] if name in layers else None
    return modules


def main():
    import peft
    import torch

    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name, config in ADAPTERS.items():
        model = peft.get_peft_model(model_of(2), peft.LoraConfig(**config, task_type="CAUSAL_LM"))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(torch.randn_like(parameter), alpha=0.1)
        model.save_pretrained(FOLDER / name)
        (FOLDER / name / "README.md").unlink()

    cases = []
    for config in CONFIGS:
        with tempfile.TemporaryDirectory() as folder:
            peft.get_peft_model(model_of(12), peft.LoraConfig(**config)).save_pretrained(folder)
            saved = json.loads((pathlib.Path(folder) / "adapter_config.json").read_text())
            opened = peft.LoraConfig.from_pretrained(folder)
        # As people write it, and as it is saved: keys are sorted there, which changes which pattern is the first.
        cases.append(dict(config=dict(config, peft_type="LORA"), modules=modules_of(peft.LoraConfig(**config))))
        cases.append(dict(config=saved, modules=modules_of(opened)))
    lines = [json.dumps(case, sort_keys=False) for case in cases]
    (FOLDER / "configs.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
