"""Renders conversations by a tokenizer's own chat template, through transformers, and finds what the assistant says in each text.

What a turn says is what its rendering has more than the generation prompt before it. If the text of a turn stands in the rendering of the
whole conversation as it was when it was the last one, one rendering has both. A template that writes earlier turns in another way, as
those do that leave their reasoning out, gives each such turn a rendering of its own: the text that a model sees when it has to say it.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import re

from chat_messages import REASONING, BadConversation
from chat_prefixes import Prefixes, PrefixFinder
from failure import Failure
from tokenize_inputs import import_or_fail

INSTALL = "pip install 'transformers>=5.23,<6' 'jinja2>=3.1.6', or shardc[tokenize,chat]"
MARK = re.compile(r"\{%[-+]?\s*generation\b")
DATE = "strftime_now"
ROLE_IN_HEADER = re.compile(r"\b(assistant|model)\b", re.IGNORECASE)
THINK = re.compile("</?think>")
MOST_SHOWN = 40
# The texts of so many renderings of our own are compared with those of transformers.
COMPARED = 100


class TemplateFault(BadConversation):
    """What a template does to each conversation, so that none can be left out for it."""


@dataclasses.dataclass
class Turn:
    """The characters `begin` to before `end` of a rendering, and those of them that are trained. `has_fault`: a mark of the template
    reaches over the turn."""

    begin: int
    end: int
    spans: list[tuple[int, int]]
    marks: list[tuple[int, int]]
    has_fault: bool


@dataclasses.dataclass
class Rendering:
    text: str
    turns: list[Turn]


def import_libraries():
    """Transformers, and its module that renders."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    library = import_or_fail("transformers", INSTALL)
    import_or_fail("jinja2", INSTALL)
    return library, import_or_fail("transformers.utils.chat_template_utils", INSTALL)


def load_tokenizer(folder: pathlib.Path):
    """The tokenizer of transformers, and the module that renders."""
    library, renderer = import_libraries()
    try:
        return library.AutoTokenizer.from_pretrained(str(folder), local_files_only=True), renderer, library.__version__
    except Exception as error:  # Whatever the library raises.
        raise Failure(f"{folder} is not read by transformers {library.__version__}: {error}; --chat needs what save_pretrained of the "
                      "model's tokenizer writes") from None


def stop_tokens(tokenizer, folder: pathlib.Path, eos: str | None, named: list[str]) -> dict[str, int]:
    """The tokens that end a turn, with their ids: those that end what the model generates, and those that are named."""
    found = {}
    config = folder / "generation_config.json"
    try:
        ids = json.loads(config.read_text()).get("eos_token_id") if config.exists() else None
    except (ValueError, AttributeError) as error:
        raise Failure(f"{config} is not a JSON object ({error}); mend it, or remove it and give --end-of-turn") from None
    for i in ids if isinstance(ids, list) else [ids]:
        if isinstance(i, int) and (token := tokenizer.id_to_token(i)) is not None:
            found[token] = i
    for token in [*([eos] if eos else []), *named]:
        if (i := tokenizer.token_to_id(token)) is None:
            raise Failure(f"the end-of-turn token {token} is no token of {folder}; name one of its tokens by --end-of-turn")
        found[token] = i
    return found


def shown(text: str) -> str:
    return repr(text[:MOST_SHOWN] + ("..." if len(text) > MOST_SHOWN else ""))


def differ_at(one: str, other: str) -> int:
    return len(os.path.commonprefix([one, other]))


class ChatTemplate:
    def __init__(self, folder: pathlib.Path, text: str | None, arguments: dict, date: str | None, uses_marks: bool = True):
        """`text`: a template that takes the place of the tokenizer's own."""
        self.tokenizer, self.renderer, self.version = load_tokenizer(folder)
        self.own = text if text is not None else self.tokenizer.chat_template
        if not self.own:
            raise Failure(f"the tokenizer in {folder} has no chat template; take the model's instructed variant, or give --chat-template FILE")
        self.text = text
        self.variables = {**self.tokenizer.special_tokens_map, **arguments}
        self.uses_marks = uses_marks
        self.compared = 0
        # Of each template; null if each text is rendered by itself.
        self.finders: dict[str, PrefixFinder | None] = {}
        if date is not None:
            self.renderer.datetime = type("Day", (datetime.datetime,), {"now": classmethod(lambda day: day.fromisoformat(date))})

    def all_text(self) -> str:
        """The template, or all of several."""
        return self.own if isinstance(self.own, str) else json.dumps(self.own, sort_keys=True)

    def reads_date(self) -> bool:
        return DATE in self.all_text()

    def template_for(self, tools: list | None) -> tuple[str, bool]:
        """The template's text, and whether its marks are used."""
        template = self.text if self.text is not None else self.tokenizer.get_chat_template(None, tools)
        return template, self.uses_marks and MARK.search(template) is not None

    def render(self, messages: list[dict], tools: list | None, prompt: bool = False) -> tuple[str, list[tuple[int, int]]]:
        """The text, with `prompt` the header of an answer too, and the characters that the template marks by {% generation %}."""
        try:
            template, is_marked = self.template_for(tools)
            is_marked = is_marked and not prompt
            texts, marks = self.renderer.render_jinja_template(
                conversations=[messages], tools=tools, chat_template=template, return_assistant_tokens_mask=is_marked,
                add_generation_prompt=prompt, **self.variables)
        except Exception as error:  # A template raises what it likes.
            raise BadConversation(f"makes the chat template fail: {error or type(error).__name__}; change the conversation as the template says, "
                                  "or take another template by --chat-template") from None
        return texts[0], marks[0] if is_marked else None

    def finder_for(self, tools: list | None) -> PrefixFinder | None:
        template, is_marked = self.template_for(tools)
        if template not in self.finders:
            self.finders[template] = None
            if not is_marked:
                self.finders[template] = PrefixFinder(self.renderer, template, self.variables)
        return self.finders[template]

    def renderer_of(self, messages: list[dict], tools: list | None, is_json: bool):
        """What renders the first messages, as many as it is asked for."""
        try:
            finder = self.finder_for(tools)
            prefixes = finder and Prefixes(finder, messages, tools, is_json)
        except Exception:  # A template raises what it likes, and again below. Another version of transformers may have other steps.
            prefixes = None

        def render(length: int, prompt: bool = False) -> tuple[str, list | None]:
            try:
                text = prefixes and prefixes.render(length, prompt)
            except Exception:
                text = None
            if text is None or self.compared < COMPARED:
                other, marks = self.render(messages[:length], tools, prompt)
                self.compared += text is not None
                if text not in (None, other):
                    self.finders = dict.fromkeys(self.finders)
                return other, marks
            return text, None
        return render

    def judge(self, message: dict, number: int, text: str, prompt: str) -> None:
        """Refuses a rendering that does not have all that a message says, or more than it says."""
        if not text.startswith(prompt):
            at = differ_at(text, prompt)
            raise BadConversation(
                f"is rendered so that the prompt of message {number} does not begin the text with that message: it goes on with "
                f"{shown(prompt[at:])}, and the text with {shown(text[at:])}; give the message the reasoning that the prompt begins, leave "
                "reasoning out by --reasoning drop, or take another template, or another prompt (--template-argument enable_thinking=false)")
        answer = text[len(prompt):]
        thought = next((message[key] for key in REASONING if isinstance(message.get(key), str)), "").strip()
        if thought and thought not in answer:
            raise BadConversation(f"has reasoning in message {number}, which the chat template leaves out; --reasoning drop leaves it out too, or take "
                                  "another template")
        content = message["content"].strip()
        pieces = [piece for part in THINK.split(content) if (piece := part.strip())]
        if any(piece not in answer for piece in pieces):
            raise BadConversation(f"has a message {number} whose text is not in its rendering: the chat template changes it, or leaves reasoning out; "
                                  "--reasoning drop leaves <think>...</think> out, or take another template")
        first = thought or (pieces[0] if pieces else "")
        header = answer[: answer.index(first)] if first else ""
        if ROLE_IN_HEADER.search(header):
            raise TemplateFault(f"is rendered with {shown(header)} before what message {number} says, and not as its prompt: the template has no "
                                "generation prompt (add_generation_prompt); mend it, or take another by --chat-template")

    def turn_in(self, text: str, marks: list | None, begin: int, end: int) -> Turn:
        if marks is None:
            return Turn(begin, end, [(begin, end)], [], False)
        near = [(first, last) for first, last in marks if first < end and last > begin]
        over = any(text[first:begin].strip() or text[end:last].strip() for first, last in near)
        return Turn(begin, end, [(max(first, begin), min(last, end)) for first, last in near], near, over)

    def renderings(self, messages: list[dict], tools: list | None, trains_all: bool, is_json: bool) -> list[Rendering]:
        """One text with all trained turns, or as many as it takes, in the order of their last turns. `is_json`: all values come from JSON."""
        numbers = [i for i, message in enumerate(messages) if message["role"] == "assistant" and message.get("weight") != 0]
        if not numbers:
            raise BadConversation("has weight 0 in each message of the assistant, so nothing of it would be trained; leave it out")
        # In the first rendering that takes it each turn has a place.
        found: list[tuple[Rendering, list | None]] = []
        render = self.renderer_of(messages[: numbers[-1] + 1], tools, is_json)
        for i in reversed(numbers if trains_all else numbers[-1:]):
            text, marks = render(i + 1)
            prompt = render(i, prompt=True)[0]
            self.judge(messages[i], i + 1, text, prompt)
            said = text.rstrip()
            for other, its_marks in found:
                if other.text.startswith(said):
                    rendering, marks = other, its_marks
                    break
            else:
                rendering = Rendering(text, [])
                found.append((rendering, marks))
            rendering.turns.insert(0, self.turn_in(rendering.text, marks, len(prompt), len(said)))
        return [rendering for rendering, _ in reversed(found)]
