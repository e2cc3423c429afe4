"""Tokenizers with the chat templates of tests/tokenize/templates, and random conversations that each of them takes.

The templates are of our own making: they have the structure and the special tokens of published ones, and no line of them.
"""

import dataclasses
import json
import pathlib
import random

TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"
CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
SPICES = ["\n\n", "  ", "\t", " \u00e9t\u00e9 ", "\u4f60\u597d", "\U0001f600", "e\u0301", "1234567", "</div>", "`x = {}`", "don't", "\u00a0", "...", "\n- ", "<think", "A\u200bB"]


@dataclasses.dataclass(frozen=True)
class Family:
    special: tuple[str, ...]
    bos: str | None
    eos: str
    # What --end-of-turn has to name beside it.
    ends: tuple[str, ...] = ()
    takes_tools: bool = False
    takes_reasoning: bool = False
    # That of a call stays in the text when the answer is there.
    calls_with_reasoning: bool = False
    # Whether earlier turns may be written in another way.
    rewrites: bool = False


FAMILIES = {
    "llama3": Family(("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"), "<|begin_of_text|>", "<|eot_id|>",
                     takes_tools=True),
    "qwen2_5": Family(CHATML, None, "<|im_end|>", takes_tools=True),
    "qwen3": Family(CHATML, None, "<|im_end|>", takes_tools=True, takes_reasoning=True, calls_with_reasoning=True, rewrites=True),
    "mistral": Family(("<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
                      "<s>", "</s>", takes_tools=True, rewrites=True),
    "gemma3": Family(("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"), "<bos>", "<eos>", ends=("<end_of_turn>",)),
    "smollm3": Family(CHATML, None, "<|im_end|>"),
    "gpt_oss": Family(("<|startoftext|>", "<|endoftext|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>"), None, "<|return|>",
                      ends=("<|call|>",), takes_tools=True, takes_reasoning=True, rewrites=True),
    "marked": Family(CHATML, None, "<|im_end|>"),
}


def write_folder(folder: pathlib.Path, name: str, tokenizer) -> None:
    """What save_pretrained writes of a tokenizer, which gets the family's tokens. It puts the BOS before each text by itself too, and asks
    for truncation and padding."""
    import tokenizers

    family = FAMILIES[name]
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, special=True, normalized=False) for token in family.special])
    if family.bos:
        bos = (family.bos, tokenizer.token_to_id(family.bos))
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(f"{family.bos}:0 $A:0", f"{family.bos}:0 $A:0 $B:1", [bos])
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding(length=64, pad_token=family.eos, pad_id=tokenizer.token_to_id(family.eos))
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": family.bos, "eos_token": family.eos, "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text((TEMPLATES / f"{name}.jinja").read_text())


class Maker:
    """Draws conversations. `words` are what texts are made of."""

    def __init__(self, seed: int, words: list[str]):
        self.random, self.words = random.Random(seed), words

    def text(self, least: int, most: int) -> str:
        chosen = self.random.choices(self.words, k=self.random.randint(least, most))
        for _ in range(self.random.randint(0, 3)):
            chosen.insert(self.random.randint(0, len(chosen)), self.random.choice(SPICES))
        text = " ".join(chosen)
        # Spaces around a text, which templates trim, or which tokens of the prompt may take.
        around = self.random.choice(["", "", "", "", "\n", " ", "\n\n"])
        return self.random.choice(["", around]) + text + self.random.choice(["", around])

    def call(self) -> dict:
        return {"function": {"name": self.random.choice(["look_up", "add"]), "arguments": {"of": self.text(1, 3), "n": self.random.randint(0, 99)}}}

    def conversation(self, family: Family) -> tuple[list[dict], list | None]:
        draw, messages, tools = self.random.random, [], None
        if draw() < 0.4:
            messages.append({"role": "system", "content": self.text(3, 20)})
        if family.takes_tools and draw() < 0.3:
            tools = [{"type": "function", "function": {"name": name, "description": self.text(2, 8),
                                                       "parameters": {"type": "object", "properties": {"of": {"type": "string"}}}}} for name in ("look_up", "add")]
        for _ in range(self.random.choice([1, 1, 1, 2, 2, 3, 5])):
            messages.append({"role": "user", "content": self.text(2, 60)})
            while tools and draw() < 0.4:
                messages += [{"role": "assistant", "content": "", "tool_calls": [self.call()]}, {"role": "tool", "content": self.text(1, 20)}]
                if family.calls_with_reasoning and draw() < 0.5:
                    messages[-2]["reasoning_content"] = self.text(3, 30).strip()
            messages.append({"role": "assistant", "content": self.text(1, 120)})
            if family.takes_reasoning and draw() < 0.5:
                messages[-1]["reasoning_content"] = self.text(3, 40).strip()
        return messages, tools

    def spelled(self, messages: list[dict], tools: list | None) -> dict:
        """A line that means the conversation, in one of the forms that are read."""
        way = self.random.choice(["plain", "plain", "parts", "sharegpt", "texts"])
        found = []
        for message in messages:
            message = dict(message)
            if way == "parts" and message["content"]:
                thought = message.pop("reasoning_content", None)
                parts = [{"type": "text", "text": message["content"]}]
                message["content"] = ([{"type": "thinking", "thinking": thought}] if thought else []) + parts
            elif way == "sharegpt":
                names = {"user": "human", "assistant": "gpt"}
                message = {"from": names.get(message["role"], message["role"]), "value": message["content"],
                           **{key: value for key, value in message.items() if key not in ("role", "content")}}
            elif way == "texts" and "tool_calls" in message:
                calls = [call["function"] | {"arguments": json.dumps(call["function"]["arguments"])} for call in message["tool_calls"]]
                message["tool_calls"] = [{"type": "function", "function": call} for call in calls]
            found.append(message)
        line = {"id": self.random.randint(0, 9), "messages": json.dumps(found) if way == "texts" and self.random.random() < 0.3 else found}
        return line | ({"tools": json.dumps(tools) if way == "texts" else tools} if tools else {})
