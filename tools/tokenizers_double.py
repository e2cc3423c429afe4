"""Texts of modules that take the places of the packages tokenizers, transformers and jinja2 in tests of the tools.

Ids are the places of characters in an alphabet. A chat template is a function in Python, `render`, that gives pieces of text; a piece
that is a list is marked, as {% generation %} does.
"""

# It logs what it is given. It kills the tool, or takes its time, if a text asks for it and a file is there.
TOKENIZERS = """
import json, os, pathlib, re, signal, time, types
__version__ = "1.2.3"

class ByteLevel:
    @staticmethod
    def alphabet():
        return ["a", "b"]

pre_tokenizers = types.SimpleNamespace(ByteLevel=ByteLevel)

class Encoding:
    def __init__(self, ids, spans=()):
        self.ids, self.spans = ids, spans

    def char_to_token(self, at):
        return next((i for i, (begin, end) in enumerate(self.spans) if begin <= at < end), None)

    def token_to_chars(self, token):
        return self.spans[token]

class Tokenizer:
    @classmethod
    def from_file(cls, path):
        self = cls()
        self.truncation = self.padding = None
        try:
            self.__dict__.update(json.loads(pathlib.Path(path).read_text()))
        except ValueError as error:
            raise Exception(f"expected value ({error})")
        self.calls = []
        self.encode_special_tokens = False
        return self

    @classmethod
    def from_str(cls, text):
        (pathlib.Path(__file__).parent / "changed").write_text(text)
        return cls.from_file(pathlib.Path(__file__).parent / "changed")

    def get_added_tokens_decoder(self):
        return {self.vocab[token]: types.SimpleNamespace(content=token, special=token.startswith("<")) for token in self.added}

    def spans_of(self, text):
        added = [token for token in self.added if not token.startswith("<") or not self.encode_special_tokens]
        return [found.span() for found in re.finditer("|".join([*map(re.escape, added), "."]), text, re.DOTALL)]

    def tokens_of(self, text):
        return [text[begin:end] for begin, end in self.spans_of(text)]

    def id_to_token(self, i):
        return next((token for token, number in self.vocab.items() if number == i), None)

    def encode_batch(self, texts, add_special_tokens):
        assert self.post_processor is None and not add_special_tokens
        self.look_at(texts)
        # This letter has no token in chats.
        spans = [[span for span in self.spans_of(text) if text[slice(*span)] != "\u00e9"] for text in texts]
        return [Encoding([self.vocab[text[slice(*span)]] for span in one], one) for text, one in zip(texts, spans)]

    def no_truncation(self):
        self.calls.append("truncation")

    def no_padding(self):
        self.calls.append("padding")

    def get_vocab(self, with_added_tokens):
        assert with_added_tokens
        return self.vocab

    def token_to_id(self, token):
        return self.vocab.get(token)

    def look_at(self, texts):
        assert self.calls == ["truncation", "padding"] and os.environ["TOKENIZERS_PARALLELISM"] == "false"
        here = pathlib.Path(__file__).parent
        for text in texts:
            text = text.removeprefix("<u>")
            if text == "unknown":
                raise Exception("WordLevel error: Missing [UNK] token")
            if text.startswith("wait"):
                time.sleep(1.2)
            if text.startswith("kill") and (here / "kill").exists():
                # The text before this one is finished by then.
                while b'"task": 1,' not in pathlib.Path("out.partial/journal").read_bytes():
                    time.sleep(0.01)
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(60)
            if text.startswith("fall"):
                os.kill(os.getpid(), signal.SIGKILL)
            if text.startswith("maps"):
                maps = [pathlib.Path(f"/proc/{process}/maps").read_text() for process in (os.getpid(), os.getppid())]
                (here / "maps").write_text("\\n".join(line for line in "".join(maps).splitlines() if "/dev/shm/" in line))
            with open(here / "log", "a") as log:
                log.write(text[:4] + "\\n")

    def encode(self, text, add_special_tokens):
        assert self.calls == ["truncation", "padding"] and not add_special_tokens
        return Encoding([self.vocab[token] for token in self.tokens_of(text)])

    def decode(self, ids):
        return "".join(token for i in ids for token, number in self.vocab.items() if number == i)

    def encode_batch_fast(self, texts, add_special_tokens):
        self.look_at(texts)
        first, last = ([self.first], self.last) if add_special_tokens else ([], [])
        # "_" has no token.
        lost = [self.model["vocab"][self.model["unk_token"]]] if self.model.get("unk_token") else []
        ids = lambda token: lost if token == "_" else [self.vocab[token]]
        return [Encoding(first + [i for token in self.tokens_of(text) for i in ids(token)] + last) for text in texts]
"""

TRANSFORMERS = """
import json, pathlib, tokenizers
__version__ = "5.6.7"

class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, folder, local_files_only):
        assert local_files_only
        self = cls()
        config = json.loads(pathlib.Path(folder, "tokenizer_config.json").read_text())
        self.chat_template, self.eos_token = config.get("chat_template"), config.get("eos_token")
        self.special_tokens_map = {"eos_token": self.eos_token}
        self.has_others = config.get("others", False)
        self.tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
        return self

    def get_chat_template(self, chat_template, tools):
        assert chat_template is None
        return self.chat_template

    def __call__(self, text, add_special_tokens):
        ids = [self.tokenizer.vocab[token] for token in self.tokenizer.tokens_of(text) if token != "\u00e9"]
        return {"input_ids": ids + [0] * self.has_others}
"""
CHAT_TEMPLATE_UTILS = """
from datetime import datetime

def render_jinja_template(conversations, tools, chat_template, return_assistant_tokens_mask, add_generation_prompt, **variables):
    there = {"strftime_now": lambda form: datetime.now().strftime(form)}
    exec(chat_template, there)
    texts, marks = [], []
    for messages in conversations:
        text, marked = "", []
        for piece in there["render"](messages, tools, add_generation_prompt, **variables):
            if isinstance(piece, list):
                marked.append((len(text), len(text + piece[0])))
            text += piece[0] if isinstance(piece, list) else piece
        texts.append(text)
        marks.append(marked)
    return texts, marks if return_assistant_tokens_mask else []
"""
