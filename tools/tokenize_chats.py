"""What tokenize_text.py --chat does in its worker processes: writes the ids of conversations, and beside them what is trained.

A place of the targets file has the id at the same place if the token before it is to predict it, and else NO_TARGET. Ids come of one
text, and characters say which of them the assistant says: a token that begins before them belongs to the prompt.
"""

import array
import contextlib
import re
from collections.abc import Iterator

from chat_messages import BadConversation, conversation_of, texts_of, tools_of
from chat_template import ChatTemplate, Rendering, TemplateFault, Turn, import_libraries, shown
from failure import Failure
from tokenize_inputs import Job, Task, chats_of, is_longer
from tokenize_tasks import Worker

# The greatest number of the type without a sign.
NO_TARGET = {"H": (1 << 16) - 1, "i": -1}


def template_of(job: Job) -> ChatTemplate:
    chat = job.chat
    return ChatTemplate(job.folder(), chat.template, chat.template_arguments, chat.date, chat.generation_marks == "use")


def first_token(encoding, begin: int, end: int) -> int | None:
    """The token that has the first of these characters that one has."""
    return next((token for at in range(begin, end) if (token := encoding.char_to_token(at)) is not None), None)


class ChatWorker(Worker):
    FILES = ("ids", "lengths", "targets")

    @staticmethod
    def warm_up() -> None:
        # The other process reports what is missing. The class is loaded when it is named.
        with contextlib.suppress(Exception):
            import_libraries()[0].AutoTokenizer

    def __init__(self, job: Job, folder: str):
        super().__init__(job, folder)
        # Ids have no tokens around them, and spaces belong to the tokens that have them.
        self.tokenizer.post_processor = None
        self.template = template_of(job)
        self.stops = set((job.chat.end_of_turn or {}).values())
        self.special_strings = re.compile("|".join(re.escape(text) for text in self.special.values() if text) or "(?!)")
        self.skipped = ""

    def run(self, task: Task) -> dict:
        self.skipped, self.has_compared = "", False
        return super().run(task) | ({"skipped": self.skipped} if self.skipped else {})

    def skip(self, i: int, at, error: BadConversation) -> None:
        """Counts a conversation that is left out, or refuses it."""
        if not self.job.chat.skip_bad or isinstance(error, TemplateFault):
            raise at(str(error)) from None
        self.counts[i]["skipped_conversations"] += 1
        self.skipped = self.skipped or str(at(str(error)))

    def pieces_of(self, task: Task) -> Iterator[tuple[int, object]]:
        chat = self.job.chat
        for i, at, value, tools in chats_of(task, self.job):
            try:
                messages, tools = conversation_of(value, chat.reasoning == "keep", f"field `{self.job.field}`"), tools_of(tools)
                renderings = self.template.renderings(messages, tools, chat.train_on == "all", self.job.inputs[i][1] == "jsonl")
                size = sum(len(one.text) for one in renderings)
                if max(len(one.text) for one in renderings) > self.job.most_document_bytes:
                    raise BadConversation(is_longer(self.job.most_document_bytes))
            except BadConversation as error:
                self.skip(i, at, error)
                continue
            count = self.counts[i]
            count["conversations_without_last_answer"] += messages[-1]["role"] != "assistant"
            count["documents_with_special_strings"] += self.special_strings.search(texts_of([messages, tools])) is not None
            yield size, (i, at, renderings)

    def encode(self, texts: list[str]) -> list:
        try:
            encodings = self.tokenizer.encode_batch(texts, add_special_tokens=False)
        except Exception as error:  # The library raises this class.
            raise Failure(f"{self.job.tokenizer} cannot encode a text: {error}; mend the tokenizer") from None
        if encodings and not self.has_compared:
            self.has_compared = True
            self.compare(texts[0], encodings[0].ids)
        return encodings

    def compare(self, text: str, ids: list[int]) -> None:
        """Refuses a tokenizer.json that is another tokenizer to transformers. Compared with the first text of each task."""
        theirs = self.template.tokenizer(text, add_special_tokens=False)["input_ids"]
        if theirs != ids:
            raise Failure(f"{self.job.tokenizer} makes {len(ids)} ids of a text of which transformers {self.template.version} makes {len(theirs)}, or "
                          f'others; AutoTokenizer.from_pretrained("{self.job.folder()}").save_pretrained(DIR) writes what it reads: take that one')

    def end_of(self, encoding, ids: list[int], rendering: Rendering, turn: Turn, tokens: list[range]) -> int:
        """The token after the last that is trained: that after the end-of-turn token."""
        chat = self.job.chat
        if chat.end_of_turn is None:
            return tokens[-1].stop
        last = next((i for part in reversed(tokens) for i in reversed(part) if ids[i] in self.stops), None)
        if last is not None and not rendering.text[encoding.token_to_chars(last)[1]: turn.end].strip():
            return last + 1
        said = rendering.text[turn.begin: turn.end]
        ending = max(self.special.values(), key=said.rfind, default=None)
        known = ", ".join(chat.end_of_turn) or "none is known"
        if ending is not None and ending in said and said.endswith(ending):
            if ending in chat.end_of_turn:
                raise TemplateFault(f"has a turn whose {{% generation %}} leaves its end-of-turn token {ending} out, so a model would never learn to "
                                    "stop; mend the template, or --generation-marks ignore")
            raise TemplateFault(f"has a turn that ends with {ending}, which is no end-of-turn token (these are: {known}), so a model would never learn "
                                f"to stop; --end-of-turn '{ending}' names it as one")
        raise TemplateFault(f"has a turn that ends with {shown(said[-20:])} and no end-of-turn token (these are: {known}), so a model would never learn "
                            "to stop; take a template that ends turns, name the token by --end-of-turn, or --no-end-of-turn if that is meant")

    def tokens_in(self, encoding, ids: list[int], text: str, span: tuple[int, int]) -> tuple[range, int]:
        """Those that begin and end in these characters, and how many more reach into them."""
        begin, end = span
        first, over = first_token(encoding, begin, end), 0
        if first is None:
            return range(0), 0
        while first < len(ids) and encoding.token_to_chars(first)[0] < begin:
            first, over = first + 1, over + 1
        last = first_token(encoding, end, len(text))
        last = len(ids) if last is None else last
        # An end-of-turn token may take the spaces after it.
        if last < len(ids) and encoding.token_to_chars(last)[0] < end:
            last, over = (last + 1, over) if ids[last] in self.stops else (last, over + 1)
        return range(first, max(first, last)), over

    def targets_of(self, encoding, ids: list[int], rendering: Rendering, count: dict) -> array.array:
        kind = self.job.id_type()
        targets = array.array(kind, [NO_TARGET[kind]]) * len(ids)
        for turn in rendering.turns:
            tokens = []
            for span in turn.spans:
                part, over = self.tokens_in(encoding, ids, rendering.text, span)
                tokens.append(part)
                count["tokens_over_borders"] += over
            end = self.end_of(encoding, ids, rendering, turn, tokens or [range(0)])
            for part in tokens:
                # No token predicts the first one.
                part = range(max(part.start, 1), min(part.stop, end))
                targets[part.start: max(part.stop, part.start)] = array.array(kind, ids[part.start: part.stop])
                count["targets"] += len(part)
            # A mark whose border is in no token breaks the masks of transformers.
            count["turns_with_wrong_marks"] += turn.has_fault or any(
                encoding.char_to_token(first) is None or encoding.char_to_token(last - 1) is None for first, last in turn.marks)
        count["turns"] += len(rendering.turns)
        return targets

    def write(self, batch: list) -> None:
        texts = [one.text for _, _, renderings in batch for one in renderings]
        encodings, are_lossy = iter(self.encode(texts)), iter(self.are_lossy(texts))
        for i, at, renderings in batch:
            count = self.counts[i]
            made = dict.fromkeys(count, 0)
            rows, is_lossy = [], False
            for rendering in renderings:
                encoding = next(encodings)
                is_lossy |= next(are_lossy)
                ids = encoding.ids
                try:
                    rows.append((ids, self.targets_of(encoding, ids, rendering, made)))
                except TemplateFault as error:
                    raise at(str(error)) from None
            trained = made["targets"]
            if trained == 0:
                self.skip(i, at, BadConversation("has no token that begins in what the assistant says; leave it out"))
                continue
            for name in ("turns", "tokens_over_borders", "turns_with_wrong_marks"):
                count[name] += made[name]
            count["documents_with_lost_characters"] += is_lossy
            count["conversations"] += 1
            count["conversations_of_more_documents"] += len(rows) > 1
            count["targets"] += trained
            count["least_targets"] = min(count["least_targets"], trained) or trained
            count["most_targets"] = max(count["most_targets"], trained)
            for ids, targets in rows:
                self.write_document(i, ids)
                self.files["targets"].write(targets)
