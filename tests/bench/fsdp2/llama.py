"""The Llama that a user of PyTorch would write, with the names that its parameters have in a checkpoint of ours, shortened."""

import torch
import torch.nn.functional as F
from torch import nn


def rope_table(seq, head_dim, theta=10000.0, device=None):
    """Cosines and sines of each position and pair. Their type is the one in which the rotation is computed."""
    frequencies = 1.0 / theta ** (torch.arange(0, head_dim, 2, device=device).float() / head_dim)
    angles = torch.outer(torch.arange(seq, device=device).float(), frequencies)
    return angles.cos(), angles.sin()


class Block(nn.Module):
    """Pre-norm attention with grouped kv heads and rotary positions, then SwiGLU."""

    def __init__(self, c):
        super().__init__()
        self.head_dim = c.hidden // c.heads
        # Attention that takes no grouped heads gets each as often as there are query heads of it.
        self.repeat = c.heads // c.kv_heads if getattr(c, "repeat_kv", False) else 1
        self.grouped = c.heads != c.kv_heads and self.repeat == 1
        kv = c.kv_heads * self.head_dim
        self.input_layernorm = nn.RMSNorm(c.hidden, eps=1e-5)
        self.q_proj = nn.Linear(c.hidden, c.hidden, bias=False)
        self.k_proj = nn.Linear(c.hidden, kv, bias=False)
        self.v_proj = nn.Linear(c.hidden, kv, bias=False)
        self.o_proj = nn.Linear(c.hidden, c.hidden, bias=False)
        self.post_attention_layernorm = nn.RMSNorm(c.hidden, eps=1e-5)
        self.gate_proj = nn.Linear(c.hidden, c.ffn, bias=False)
        self.up_proj = nn.Linear(c.hidden, c.ffn, bias=False)
        self.down_proj = nn.Linear(c.ffn, c.hidden, bias=False)

    def heads(self, x, table):
        x = x.view(*x.shape[:2], -1, self.head_dim)
        if table is not None:
            first, second = x.chunk(2, dim=-1)
            cos, sin = (part.unsqueeze(1) for part in table)
            x = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)
        return x.transpose(1, 2)

    def forward(self, x, table):
        a = self.input_layernorm(x)
        k, v = self.heads(self.k_proj(a), table), self.heads(self.v_proj(a), None)
        if self.repeat > 1:
            k, v = k.repeat_interleave(self.repeat, dim=1), v.repeat_interleave(self.repeat, dim=1)
        y = F.scaled_dot_product_attention(self.heads(self.q_proj(a), table), k, v, is_causal=True, enable_gqa=self.grouped)
        x = x + self.o_proj(y.transpose(1, 2).flatten(2))
        b = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(b)) * self.up_proj(b))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab, c.hidden)
        self.layers = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = nn.RMSNorm(c.hidden, eps=1e-5)
        self.lm_head = nn.Linear(c.hidden, c.vocab, bias=False)

    def forward(self, tokens, table):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, table)
        return self.lm_head(self.norm(x))
