"""Which tensor of another program is which parameter here, and how its rows are ordered there.

Names are rows of tables, `{}` being the number of a block. shardc's names are those of Hugging Face. A tensor of the source is a
parameter, or what AdamW keeps of one: `...state.NAME.exp_avg`, `exp_avg_sq` and `step`, with a name or the number of a parameter.
"""

import dataclasses
import fnmatch
import re

from failure import Failure

BLOCK = "model.layers.{}."
TORCHTITAN = {
    "tok_embeddings.weight": "model.embed_tokens.weight",
    "layers.{}.attention_norm.weight": BLOCK + "input_layernorm.weight",
    "layers.{}.ffn_norm.weight": BLOCK + "post_attention_layernorm.weight",
    "layers.{}.attention.wo.weight": BLOCK + "self_attn.o_proj.weight",
    "layers.{}.attention.q_norm.weight": BLOCK + "self_attn.q_norm.weight",
    "layers.{}.attention.k_norm.weight": BLOCK + "self_attn.k_norm.weight",
    "layers.{}.feed_forward.w1.weight": BLOCK + "mlp.gate_proj.weight",
    "layers.{}.feed_forward.w3.weight": BLOCK + "mlp.up_proj.weight",
    "layers.{}.feed_forward.w2.weight": BLOCK + "mlp.down_proj.weight",
    "norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    # torchtitan 0.3.
    "lm_head.weight": "lm_head.weight",
    **{f"layers.{{}}.attention.{linear}w{letter}.weight": f"{BLOCK}self_attn.{letter}_proj.weight"
       for letter in "qkv" for linear in ("", "qkv_linear.")},
}
KEMPNERFORGE = {
    "token_embedding.embedding.weight": "model.embed_tokens.weight",
    "layers.{}.attention_norm.weight": BLOCK + "input_layernorm.weight",
    "layers.{}.mlp_norm.weight": BLOCK + "post_attention_layernorm.weight",
    **{f"layers.{{}}.attention.{own}.weight": f"{BLOCK}self_attn.{own}.weight" for own in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")},
    **{f"layers.{{}}.mlp.{own}.weight": f"{BLOCK}mlp.{own}.weight" for own in ("gate_proj", "up_proj", "down_proj")},
    "norm.weight": "model.norm.weight",
    "output_head.proj.weight": "lm_head.weight",
}
TABLES = {"torchtitan": TORCHTITAN, "KempnerForge": KEMPNERFORGE}
# A name that only one program has.
MARKS = {"torchtitan": "tok_embeddings.weight", "KempnerForge": "token_embedding.embedding.weight"}
HUGGING_FACE, OWN = "Hugging Face", "--names"
# What --to dcp writes: the table, names of it that another version has, and whether the model's names are at the top.
WRITTEN = {
    "torchtitan-0.3": ("torchtitan", re.compile(r"^output\.|attention\.w[qkv]\."), True),
    "torchtitan-0.2": ("torchtitan", re.compile(r"^lm_head\.|qkv_linear"), True),
    "KempnerForge": ("KempnerForge", None, False),
    "hugging-face": (None, None, False),
}
# Keys that programs put around the names of a model, and what wrappers of modules put between them.
AROUND = ("model", "module", "state_dict", "model_state_dict", "app")
WRAPPERS = ("_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")
MOMENTS = ("exp_avg", "exp_avg_sq")
STATE = re.compile(r"^(?:.*?\.)?state\.(.+)\.(exp_avg|exp_avg_sq|max_exp_avg_sq|momentum_buffer|step)$")
# State of a trainer that has no counterpart here.
TRAINER = re.compile(r"^(?:train_state|lr_scheduler|dataloader|scheduler|rng_state|step|epoch|iteration)(?:\.|$)|(?:^|\.)param_groups\.")
# The recipe has its own.
SETTINGS = re.compile(r"(?:^|\.)param_groups\.")
ROTARY = re.compile(r"\.self_attn\.[qk]_(?:proj\.(?:weight|bias)|norm\.weight)$")
INTERLEAVED, HALVES = "interleaved", "halves"


@dataclasses.dataclass
class Model:
    """What the recipe computes: its sizes, and the shapes of its parameters."""
    sizes: dict[str, str]
    shapes: dict[str, tuple[int, ...]]

    def is_tied(self) -> bool:
        return self.sizes.get("tied") == "true"


def with_block(table: dict[str, str], name: str) -> str | None:
    """Returns the name that a table has for this one."""
    if found := table.get(name):
        return found
    number = re.search(r"(?<=\.)\d+(?=\.)", "." + name)
    if number and (found := table.get(name[:number.start() - 1] + "{}" + name[number.end() - 1:])):
        return found.format(number.group())
    return None


def plain(name: str) -> list[str]:
    """Returns the names that this may be: without wrappers, and with fewer and fewer keys around it."""
    for wrapper in WRAPPERS:
        name = name.replace(wrapper, "")
    names = [name]
    while (head := names[-1].partition("."))[0] in AROUND and head[2]:
        names.append(head[2])
    return names


def table_of(names, model: Model, has_own: bool) -> str:
    """Returns the program whose names these are; `has_own`: --names has names of others."""
    found = [program for program, mark in MARKS.items() if any(mark in plain(name) for name in names)]
    if found:
        return found[0]
    if any(own in model.shapes for name in names for own in plain(name)):
        return HUGGING_FACE
    if has_own:
        return OWN
    raise Failure(f"no tensor has a name of {', '.join(TABLES)} or {HUGGING_FACE} ({', '.join(sorted(names)[:4])}, ...); give --names FILE with "
                  "lines of two columns, the name there and the name in `shardc plan --emit=model RECIPE`")


def read_names(path) -> dict[str, str]:
    table: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.partition("#")[0].split()
        if len(words) not in (0, 2) or words and words[0] in table:
            raise Failure(f"{path}:{number}: not two columns, or a name twice; write the name there and the name here, `{{}}` for the number of a block")
        table.update([words] if words else [])
    return table


@dataclasses.dataclass
class Found:
    """The tensors of a source, by the parameters that they are or belong to."""
    program: str
    parameters: dict[str, str]
    # By role, by parameter.
    moments: dict[str, dict[str, str]]
    steps: dict[str, str]
    # What has no counterpart here.
    left_out: list[str]


def names_written(program: str) -> dict[str, str]:
    """Returns the name there of each name here."""
    table, others, _ = WRITTEN[program]
    return {here: there for there, here in TABLES.get(table, {}).items() if not (others and others.search(there))}


class Matcher:
    def __init__(self, names: list[str], model: Model, program: str, table: dict[str, str], order: list[str], unused: list[str]):
        self.model, self.table, self.order = model, table, order
        self.known = frozenset(model.shapes) | ({"lm_head.weight"} if model.is_tied() else set())
        self.found = Found(program, {}, {role: {} for role in MOMENTS}, {}, [])
        self.unknown: list[str] = []
        matched: set[str] = set()
        left = []
        for name in names:
            globs = [glob for glob in unused if fnmatch.fnmatchcase(name, glob)]
            matched.update(globs)
            if globs or TRAINER.search(name):
                self.found.left_out.append(name)
            else:
                left.append(name)
        if idle := [glob for glob in unused if glob not in matched]:
            raise Failure(f"--unused {idle[0]} matches no tensor; take it out, or look at the names: {', '.join(sorted(names)[:6])}, ...")
        for name in left:
            if STATE.match(name):
                self.put_state(name)
            else:
                self.put(self.found.parameters, self.target(name), name)
        self.refuse_unknown()

    def target(self, name: str) -> str | None:
        for own in plain(name):
            target = with_block(self.table, own) if self.table else None
            if target is None and own in self.known:
                target = own
            if target in self.known:
                return target
        return None

    def put(self, there: dict[str, str], target: str | None, name: str) -> None:
        if target is None:
            self.unknown.append(name)
        elif target in there:
            raise Failure(f"{there[target]} and {name} are both {target}; leave one out with --unused")
        else:
            there[target] = name

    def put_state(self, name: str) -> None:
        of, role = STATE.match(name).groups()
        target = self.by_number(int(of), name) if of.isdecimal() else self.target(of)
        if target == "lm_head.weight" and self.model.is_tied():
            target = "model.embed_tokens.weight"
        if role == "step":
            self.put(self.found.steps, target, name)
        elif role in MOMENTS:
            self.put(self.found.moments[role], target, name)
        else:
            raise Failure(f"{name} is of an optimizer that shardc does not have (AdamW with amsgrad, SGD, Muon or Lion); leave the optimizer's state out "
                          "with --unused '*state.*', and begin with moments of 0")

    def by_number(self, number: int, name: str) -> str | None:
        """Returns the parameter of a number, which counts the parameters that the optimizer was given."""
        if number >= len(self.order):
            raise Failure(f"{name} is of parameter {number}, and there are {len(self.order)}; give --order FILE, with the names of the parameters in the order "
                          "in which the optimizer has them, one a line: " + ORDER_HELP)
        return self.target(self.order[number])

    def refuse_unknown(self) -> None:
        if self.unknown:
            raise Failure(f"the recipe's model has no parameter for {listed(self.unknown)}; leave them out with --unused GLOB, name them with --names "
                          "FILE, or change [model]")
        if missing := [name for name in self.model.shapes if name not in self.found.parameters]:
            raise Failure(f"no tensor is {listed(missing)} of the recipe's model; change [model], or give --names FILE")
        for role, other in (MOMENTS, MOMENTS[::-1]):
            if lacking := [name for name in self.found.moments[role] if name not in self.found.moments[other]]:
                raise Failure(f"there is {role} and no {other} of {listed(lacking)}; leave the former out too with --unused")
        if lacking := [name for name in self.found.moments["exp_avg"] if name not in self.found.steps]:
            raise Failure(f"there is no step count of the moments of {listed(lacking)}; leave these moments out with --unused")


ORDER_HELP = "[names[p] for g in optimizer.param_groups for p in g['params']] with names = {p: n for n, p in model.named_parameters()}"


def listed(names: list[str]) -> str:
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


def rotary_of(program: str, given: str | None, model: Model) -> str:
    """Returns how rows of q and k are ordered there."""
    if given:
        return given
    if program == OWN:
        raise Failure("names alone do not say how rows of q and k are ordered; give --rotary interleaved if neighbours of a head are rotated together, as "
                      "in Meta's Llama, --rotary halves if row i and row i + head_dim / 2 are, as in Hugging Face's")
    if program == "KempnerForge":
        raise Failure("versions of KempnerForge rotate other pairs of rows of q and k, and a checkpoint does not say which; give --rotary interleaved if "
                      "its apply_rope makes pairs of neighbours (reshape(..., -1, 2)), --rotary halves if it pairs the halves of a head")
    return INTERLEAVED if program == "torchtitan" and model.sizes["family"] == "llama" else HALVES


def row_order(head_dim: int) -> list[int]:
    """Returns which row of interleaved pairs each row of a head in halves is: row i of the first half is row 2 i there."""
    half = head_dim // 2
    return [2 * (row % half) + row // half for row in range(head_dim)]


def inverse(order: list[int]) -> list[int]:
    """Returns the order that undoes one."""
    return sorted(range(len(order)), key=order.__getitem__)


def permute(data: bytearray, rows: int, order: list[int]) -> None:
    """Puts the rows of each head into an order."""
    row_bytes = len(data) // rows
    for head in range(0, len(data), len(order) * row_bytes):
        old = bytes(memoryview(data)[head:head + len(order) * row_bytes])
        data[head:head + len(old)] = b"".join(old[row * row_bytes:(row + 1) * row_bytes] for row in order)
