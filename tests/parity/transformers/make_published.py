"""Makes the small models of tests/parity/published, and what transformers computes of them.

    .deps/bench-venv/bin/python tests/parity/transformers/make_published.py     # after tools/dev parity-transformers

For each model: config.json and safetensors files as save_pretrained writes them, and expected.safetensors: the logits of given ids, the
first of which are a prompt and the ids that it chooses greedily, losses and norms of gradients of some steps by torch.optim.AdamW. All is
computed in fp32, of weights that are stored in the type named below. published_test.py compares shardc with it and needs no package.
"""

import shutil
import struct

from compare import ROOT, tokens_of, train_model

FOLDER = ROOT / "tests" / "parity" / "published"
PROMPT = [11, 48, 85, 122]
GREEDY, SEQ, VOCAB, BATCH, STEPS = 64, 74, 149, 4, 30
SIZES = dict(vocab_size=VOCAB, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=SEQ)
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
LINEAR_ROPE = dict(rope_type="linear", rope_theta=1e4, factor=2.0)
# Class, what its config has besides, type of the weights, and the size at which files are cut.
MODELS = {
    "llama": ("LlamaConfig", dict(hidden_size=36, head_dim=10, intermediate_size=54), "float32", "50KB"),
    "llama_tied": ("LlamaConfig", dict(hidden_size=60, num_attention_heads=6, intermediate_size=70, tie_word_embeddings=True), "bfloat16", "1GB"),
    "llama_llama3_rope": ("LlamaConfig", dict(hidden_size=44, head_dim=6, intermediate_size=30, rope_parameters=LLAMA3_ROPE), "float32", "1GB"),
    "llama_linear_rope": ("LlamaConfig", dict(hidden_size=36, num_attention_heads=6, intermediate_size=38, rope_parameters=LINEAR_ROPE), "float16", "1GB"),
    "qwen2": ("Qwen2Config", dict(hidden_size=36, num_attention_heads=6, intermediate_size=46), "float32", "1GB"),
    "qwen3": ("Qwen3Config", dict(hidden_size=26, head_dim=14, intermediate_size=34), "float32", "1GB"),
}


def main():
    import torch
    import transformers
    from safetensors.torch import save_file

    transformers.logging.disable_progress_bar()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    tokens = tokens_of(VOCAB, STEPS * BATCH * SEQ + 1)
    (FOLDER / "tokens.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
    for seed, (name, (config, sizes, dtype, max_file)) in enumerate(MODELS.items()):
        torch.manual_seed(seed)
        model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, config)(**{**SIZES, **sizes}))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.15)
        model.to(getattr(torch, dtype)).save_pretrained(FOLDER / name, max_shard_size=max_file)
        (FOLDER / name / "generation_config.json").unlink()
        model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER / name, dtype=torch.float32, attn_implementation="eager")
        with torch.no_grad():
            ids = model.generate(torch.tensor([PROMPT]), attention_mask=torch.ones(1, len(PROMPT)), do_sample=False, max_new_tokens=GREEDY,
                                 pad_token_id=0, eos_token_id=None)[0].tolist()
            # One whole sample, and a part of a second one.
            ids += tokens[:SEQ + 30 - len(ids)]
            logits = torch.cat([model(torch.tensor([ids[begin:begin + SEQ]])).logits[0] for begin in range(0, len(ids), SEQ)])
        losses, norms = train_model(model.train(), tokens, SEQ, BATCH, STEPS)
        save_file({"ids": torch.tensor(ids, dtype=torch.int32), "logits": logits, "losses": torch.tensor(losses, dtype=torch.float64),
                   "grad_norms": torch.tensor(norms, dtype=torch.float64)}, FOLDER / name / "expected.safetensors")


if __name__ == "__main__":
    main()
