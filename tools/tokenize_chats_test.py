"""Tests of tokenize_text.py --chat with doubles of the packages that it needs. Run by ctest.

tests/tokenize/chats.py runs the tool with the packages themselves.
"""

import array
import json
import os
import pathlib
import subprocess
import sys
import unittest

from script_test import ROOT, ScriptTest
from tokenizers_double import CHAT_TEMPLATE_UTILS, TOKENIZERS, TRANSFORMERS

ALPHABET = {letter: i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz \n.{}\":,")}
SPECIAL = {token: 100 + i for i, token in enumerate(("<u>", "<a>", "<e>", "<y>", "<t>", "<more>"))}
VOCAB = ALPHABET | SPECIAL
NONE = 65535
PLAIN = """
def render(messages, tools, prompt, eos_token, **more):
    for message in messages:
        yield {"user": "<u>", "assistant": "<a>", "system": "<y>", "developer": "<y>", "tool": "<t>"}[message["role"]]
        yield message["content"] + eos_token + "\\n"
    if prompt:
        yield "<a>"
"""
# Earlier answers are short. What the last one has thought is in its text.
REWRITING = """
def render(messages, tools, prompt, eos_token, **more):
    for message in messages:
        thought = message.get("reasoning_content", "") if message is messages[-1] else ""
        yield ("<u>" if message["role"] == "user" else "<a>") + thought + message["content"] + "<e>"
    if prompt:
        yield "<a>"
"""
MARKED = """
# {% generation %}
def render(messages, tools, prompt, eos_token, **more):
    for message in messages:
        if message["role"] == "assistant":
            yield from ANSWER
        else:
            yield "<u>" + message["content"] + "<e>"
    if prompt:
        yield "<a>"
"""


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def answer(text: str, **more) -> dict:
    return {"role": "assistant", "content": text, **more}


class TokenizeChatsTest(ScriptTest):
    def setUp(self):
        super().setUp()
        for name, text in {"tokenizers.py": TOKENIZERS, "transformers/__init__.py": TRANSFORMERS, "transformers/utils/__init__.py": "",
                           "transformers/utils/chat_template_utils.py": CHAT_TEMPLATE_UTILS, "jinja2.py": '__version__ = "3.1.6"'}.items():
            self.write(f"modules/{name}", text)
        self.write_model()

    def write_model(self, template: str | None = PLAIN, added: tuple[str, ...] = (), eos: str | None = "<e>", others: bool = False, **more):
        vocab = VOCAB | {token: 200 + i for i, token in enumerate(added)}
        model = {"vocab": vocab, "first": 0, "last": (), "added": [*added, *SPECIAL], "model": {}, "post_processor": 1}
        self.write("model/tokenizer.json", json.dumps(model | more))
        self.write("model/tokenizer_config.json", json.dumps({"eos_token": eos, "chat_template": template, "others": others}))

    def write_chats(self, *chats, name: str = "a.jsonl", **more):
        self.write(name, "".join(json.dumps({"messages": chat} | more) + "\n" for chat in chats))

    def tool(self, *arguments) -> subprocess.CompletedProcess:
        for path in self.folder.glob("out*.*"):
            if path.is_file():
                path.unlink()
        command = [sys.executable, ROOT / "tools/tokenize_text.py", "--chat", "--tokenizer", "model", "--processes", "1", "-o", "out", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(self.folder / "modules")})

    def succeed(self, *arguments) -> list[str]:
        """The lines that are printed."""
        result = self.tool(*(arguments or ["a.jsonl"]))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.splitlines()

    def refuse(self, message: str, *arguments):
        result = self.tool(*(arguments or ["a.jsonl"]))
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertTrue(result.stderr.startswith(f"error: {message}"), result.stderr)
        self.assertEqual(list(self.folder.glob("out.*")), [])

    def numbers(self, name: str) -> list[int]:
        return list(array.array("H", (self.folder / name).read_bytes()))

    def expect(self, *documents: str):
        """The written ids and targets, for texts in which [...] is around what is trained."""
        tokens, targets, lengths = [], [], []
        for document in documents:
            begin, trained = len(tokens), False
            while document:
                token = next(token for token in (*SPECIAL, "[", "]", document[0]) if document.startswith(token))
                document = document.removeprefix(token)
                if token in "[]":
                    trained = token == "["
                    continue
                tokens.append(VOCAB[token])
                targets.append(VOCAB[token] if trained else NONE)
            lengths.append(len(tokens) - begin)
        self.assertEqual((self.numbers("out.bin"), self.numbers("out.targets.bin")), (tokens, targets))
        index = (self.folder / "out.idx").read_bytes()
        self.assertEqual(list(array.array("i", index[34: 34 + 4 * len(lengths)])), lengths)
        self.assertEqual((self.folder / "out.targets.idx").read_bytes(), index)

    def sources(self) -> dict:
        return json.loads((self.folder / "out.sources.json").read_text())

    def test_answers_are_targets(self):
        self.write_chats([{"role": "system", "content": "s"}, user("ab"), answer("cd"), user("e"), answer("f")], [user("g"), answer("hij")])
        lines = self.succeed()
        self.expect("<y>s<e>\n<u>ab<e>\n<a>[cd<e>]\n<u>e<e>\n<a>[f<e>]\n", "<u>g<e>\n<a>[hij<e>]\n")
        self.assertIn("out.bin, out.idx, out.targets.bin, out.targets.idx: 32 ids of 2 bytes in 2 documents; ", lines[0])
        self.assertEqual(lines[1:], ["2 conversations, 3 trained turns (--train-on all), each ends with <e> (102); 9 targets, 28.1% of the ids; of a "
                                     "conversation 4 at least, 4.5 in the mean, 5 at most; no conversation was cut"])
        sources = self.sources()
        for key, value in {"conversations": 2, "turns": 3, "targets": 9, "least_targets": 4, "most_targets": 5, "truncated_conversations": 0,
                           "skipped_conversations": 0, "documents": 2, "field": "messages"}.items():
            self.assertEqual((key, sources[key]), (key, value))
        self.assertEqual(sources["chat"]["end_of_turn"], {"<e>": 102})
        self.assertEqual(sources["chat"]["transformers_version"], "5.6.7 with jinja2 3.1.6")

    def test_last_turn_alone(self):
        self.write_chats([user("ab"), answer("cd"), user("e"), answer("f"), user("g")])
        lines = self.succeed("--train-on", "last", "a.jsonl")
        self.expect("<u>ab<e>\n<a>cd<e>\n<u>e<e>\n<a>[f<e>]\n")
        self.assertEqual(lines[1], "1 conversation end with messages that nobody answers, which are left out")

    def test_weight_zero_is_not_trained(self):
        self.write_chats([user("ab"), answer("cd", weight=0), user("e"), answer("f", weight=1)])
        self.succeed()
        self.expect("<u>ab<e>\n<a>cd<e>\n<u>e<e>\n<a>[f<e>]\n")

    def test_rewritten_turns_have_texts_of_their_own(self):
        self.write_model(REWRITING)
        self.write_chats([user("ab"), answer("c", reasoning_content="xy"), user("d"), answer("e", reasoning_content="z"), user("f"), answer("g")])
        lines = self.succeed()
        self.expect("<u>ab<e><a>[xyc<e>]", "<u>ab<e><a>c<e><u>d<e><a>[ze<e>]", "<u>ab<e><a>c<e><u>d<e><a>e<e><u>f<e><a>[g<e>]")
        self.assertIn("1 conversation became more than one document each: the chat template writes earlier turns in another way", lines[1])
        self.assertEqual((self.sources()["conversations"], self.sources()["documents"], self.sources()["turns"]), (1, 3, 3))
        self.succeed("--reasoning", "drop", "a.jsonl")
        self.expect("<u>ab<e><a>[c<e>]<u>d<e><a>[e<e>]<u>f<e><a>[g<e>]")

    def test_thoughts_in_content(self):
        self.write_chats([user("ab"), answer("<think>hm</think>cd")])
        self.succeed("--reasoning", "drop", "a.jsonl")
        self.expect("<u>ab<e>\n<a>[cd<e>]\n")

    def test_forms_of_messages(self):
        for chat in (
            [{"from": "human", "value": "ab"}, {"from": "gpt", "value": "cd"}],
            json.dumps([user("ab"), answer("cd")]),
            [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), answer("cd", tool_calls=None)],
        ):
            self.write_chats(chat, tools=None)
            self.succeed()
            self.expect("<u>ab<e>\n<a>[cd<e>]\n")
        self.write("a.jsonl", json.dumps({"conversations": [user("a"), answer("b")]}))
        self.succeed("--field", "conversations", "a.jsonl")
        self.expect("<u>a<e>\n<a>[b<e>]\n")

    def test_calls_and_tools(self):
        self.write_model(PLAIN.replace('yield message["content"]', 'yield message["content"] + "".join(c["function"]["arguments"]["of"] for c in '
                                       'message.get("tool_calls", [])) + (tools[0]["name"] if tools else "")'))
        call = {"function": {"name": "f", "arguments": json.dumps({"of": "xy"})}}
        self.write_chats([user("ab"), answer(None, tool_calls=[call]), {"role": "tool", "content": ""}, answer("d")], tools=[{"name": "n"}])
        self.succeed()
        self.expect("<u>abn<e>\n<a>[xyn<e>]\n<t>n<e>\n<a>[dn<e>]\n")

    def test_marks(self):
        over, cut, exact = '"<a>", ["cd<e>"]', '"<a>", ["cd"], "<e>"', '["<a>cd<e>"], "\\n"'
        self.write_chats([user("ab"), answer("cd")])
        for marks, wrong in {over: 0, exact: 1, '"<a>", ["\\u00e9cd<e>"]': 1}.items():
            self.write_model(MARKED.replace("ANSWER", f"[{marks}]"))
            lines = self.succeed()
            self.assertEqual(self.numbers("out.targets.bin")[:7], [NONE] * 5 + [VOCAB["c"], VOCAB["d"]])
            self.assertEqual(self.numbers("out.targets.bin")[7:8], [VOCAB["<e>"]])
            self.assertEqual(self.sources()["turns_with_wrong_marks"], wrong)
            self.assertEqual(sum("marks by {% generation %} reaches over" in line for line in lines), wrong)
        # The mark has a part of the answer.
        self.write_model(MARKED.replace("ANSWER", '["<a>c", ["d<e>"]]'))
        self.succeed()
        self.expect("<u>ab<e><a>c[d<e>]")
        self.write_model(MARKED.replace("ANSWER", f"[{cut}]"))
        self.refuse("a.jsonl, line 1 has a turn whose {% generation %} leaves its end-of-turn token <e> out, so a model would never learn to stop; ")
        self.succeed("--generation-marks", "ignore", "a.jsonl")
        self.expect("<u>ab<e><a>[cd<e>]")

    def test_end_of_turn(self):
        self.write_chats([user("ab"), answer("cd")])
        self.write_model(PLAIN.replace("eos_token +", '"<more>" +'))
        self.refuse("a.jsonl, line 1 has a turn that ends with <more>, which is no end-of-turn token (these are: <e>), so a model would never learn to stop; "
                    "--end-of-turn '<more>' names it as one")
        self.succeed("--end-of-turn", "<more>", "a.jsonl")
        self.expect("<u>ab<more>\n<a>[cd<more>]\n")
        for ids in "105", "[102, 105]":
            self.write("model/generation_config.json", f'{{"eos_token_id": {ids}}}')
            self.succeed()
            self.expect("<u>ab<more>\n<a>[cd<more>]\n")
        (self.folder / "model/generation_config.json").unlink()
        self.write_model(PLAIN.replace("eos_token +", '"." +'), eos=None)
        self.refuse("a.jsonl, line 1 has a turn that ends with 'cd.' and no end-of-turn token (these are: none is known), so a model")
        lines = self.succeed("--no-end-of-turn", "a.jsonl")
        self.expect("<u>ab.\n<a>[cd.]\n")
        self.assertIn("each ends with any token; ", lines[-1])
        self.refuse("the end-of-turn token <none> is no token of model; ", "--end-of-turn", "<none>", "a.jsonl")

    def test_token_over_border_is_of_prompt(self):
        self.write_model(PLAIN.replace('"<a>"', '"<a>x"'), added=("xc",))
        self.write_chats([user("ab"), answer("cd")])
        lines = self.succeed()
        self.assertEqual(self.numbers("out.bin")[5:], [101, 200, VOCAB["d"], 102, VOCAB["\n"]])
        self.assertEqual(self.numbers("out.targets.bin")[5:], [NONE, NONE, VOCAB["d"], 102, NONE])
        self.assertEqual(lines[1], "1 token reach over the border of prompt and answer; they belong to the prompt, and are not trained")

    def test_date_is_of_the_job(self):
        self.write_model('def render(messages, tools, prompt, **more):\n    yield strftime_now("%B").lower()\n' + PLAIN[PLAIN.index("    for"):].replace(
            "eos_token", '"<e>"'))
        self.write_chats([user("ab"), answer("cd")])
        lines = self.succeed("--date", "2026-05-31", "a.jsonl")
        self.expect("may<u>ab<e>\n<a>[cd<e>]\n")
        self.assertEqual(lines[1], "the chat template asks for the date, and was given 2026-05-31; --date names another")

    def test_template_of_a_file_with_arguments(self):
        self.write("other", PLAIN.replace("eos_token +", 'more["last"] + str(more["n"]) +').replace("str(", "'.' * ("))
        self.write_chats([user("ab"), answer("cd")])
        self.succeed("--chat-template", "other", "--template-argument", "last=<e>", "--template-argument", "n=2", "--no-end-of-turn", "a.jsonl")
        self.expect("<u>ab<e>..\n<a>[cd<e>..]\n")
        self.assertEqual(self.sources()["chat"]["template_arguments"], {"last": "<e>", "n": 2})

    def test_switched_off(self):
        self.write_model(truncation={"max_length": 4}, padding={"strategy": "BatchLongest"})
        self.write_chats([user("ab"), answer("cd")])
        self.assertEqual(self.succeed()[1], "model/tokenizer.json asks for truncation and padding, which is switched off")

    def test_special_strings_are_counted(self):
        self.write_chats([user("a<e>b"), answer("cd")], [user("ab"), answer("cd")])
        self.assertIn("1 of them have special tokens in their messages, which became control ids", self.succeed()[1])

    def test_goes_on_after_a_kill(self):
        self.write_chats(*([user(head + "abcdefgh " * 30000), answer("z")] for head in ("one ", "wait", "kill", "four")))
        self.write("modules/kill", "")
        self.assertEqual(self.tool("a.jsonl").returncode, -9)
        with open(self.folder / "out.partial/targets", "ab") as file:
            file.write(b"more")
        (self.folder / "modules/kill").unlink()
        result = self.tool("--train-on", "last", "a.jsonl")
        self.assertTrue(result.stderr.startswith("error: out.partial belongs to a command with another train_on: there all, here last; "), result.stderr)
        result = self.tool("a.jsonl")
        self.assertRegex(result.stderr, r"^going on from out\.partial: [0-9,]+ ids are there\n$")
        there = self.numbers("out.bin"), self.numbers("out.targets.bin"), self.sources()
        self.succeed("--processes", "2", "a.jsonl")
        self.assertEqual((self.numbers("out.bin"), self.numbers("out.targets.bin"), self.sources()), there)
        self.assertEqual(there[2]["targets"], 8)

    def test_bad_conversations(self):
        first = user("a"), answer("b")
        call = {"function": {"arguments": {}}}
        for chat, message in {
            "[]": "has a field `messages` that is no list of messages; ",
            '"x"': "has a text for field `messages` that is not JSON (Expecting value",
            '[{"role": "user", "content": "a"}]': "has no message of the assistant, so nothing of it would be trained; leave it out",
            '[{"role": "bot", "content": "a"}]': "has a message 1 of the role 'bot'; name it as one of system, developer, user, assistant, tool",
            '["a"]': "has a message 1 that is not a JSON object",
            json.dumps([answer("b"), user("a")]): "has a message 1 of the role assistant before any of the user; the system's come first",
            json.dumps([*first, answer("b")]): "has a message 3 of the role assistant after one of the role assistant; ",
            json.dumps([*first, {"role": "system", "content": "s"}]): "has a message 3 of the role system after one of the role assistant; ",
            json.dumps([user("a"), {"role": "tool", "content": "s"}]): "has a message 2 of the role tool after one of the role user; ",
            json.dumps([user(" "), answer("b")]): "has a message 1 (user) with nothing in its content; leave the conversation out",
            json.dumps([user("a"), answer(None)]): "has a message 2 (assistant) with nothing in its content; leave the conversation out",
            json.dumps([{"role": "system", "content": ""}, *first]): "has a message 1 (system) with nothing in its content; leave that message out",
            json.dumps([user(7), answer("b")]): "has a message 1 whose content is no text; ",
            json.dumps([user([{"type": "image"}]), answer("b")]): "has in message 1 a part of type 'image'; ",
            json.dumps([user("a"), answer("b", tool_calls=[call])]): "has in message 2 a call without a name; ",
            json.dumps([user("a"), answer("b", weight=0)]): "has weight 0 in each message of the assistant",
            json.dumps([user("a"), answer("b", reasoning="x")]): "has reasoning in message 2, which the chat template leaves out; --reasoning drop",
            json.dumps([user("a\ud800"), answer("b")]): "has half of a surrogate pair (\\ud800) in its field `messages`; mend it",
        }.items():
            self.write("a.jsonl", json.dumps({"messages": first}) + "\n\n" + f'{{"messages": {chat}}}\n')
            self.refuse(f"a.jsonl, line 3 {message}")
        self.write_chats(first, tools="no")
        self.refuse("a.jsonl, line 1 has a text for `tools` that is not JSON")
        self.write("a.jsonl", '{"chat": []}\n')
        self.refuse("a.jsonl, line 1 has no field `messages`; its fields are: `chat`; mend it, or name the field of the messages by --field")

    def test_bad_templates(self):
        self.write_chats([user("ab"), answer("cd")])
        for template, message in {
            'def render(*all, **more):\n    raise ValueError("roles must alternate")': "makes the chat template fail: roles must alternate; change the",
            PLAIN.replace('message["content"] +', '"x" +'): "has a message 2 whose text is not in its rendering: the chat template changes it, ",
            PLAIN.replace('yield "<a>"', 'yield "<a>x"'): "is rendered so that the prompt of message 2 does not begin the text with that message: it "
                                                          "goes on with 'x', and the text with 'cd<e>\\n'; ",
            PLAIN.replace("    if prompt", "    if False").replace('"<a>"', '"assistant."'): "is rendered with 'assistant.' before what message 2 says, and not "
                                                                                              "as its prompt: the template has no generation prompt",
        }.items():
            self.write_model(template)
            self.refuse(f"a.jsonl, line 1 {message}")
        self.write_model(None)
        self.refuse("the tokenizer in model has no chat template; take the model's instructed variant, or give --chat-template FILE")
        self.write_model(others=True)
        self.refuse("model/tokenizer.json makes 10 ids of a text of which transformers 5.6.7 makes 11, or others; AutoTokenizer.from_pretrained")
        self.write("modules/transformers/__init__.py", 'raise ImportError("it is not here")')
        self.refuse("the package transformers cannot be loaded (it is not here): pip install 'transformers")

    def test_bad_conversations_are_left_out(self):
        good, bad = [user("ab"), answer("cd")], [user("ab")]
        self.write_chats(*[good] * 50, bad, *[good] * 49)
        lines = self.succeed("--skip-bad", "a.jsonl")
        self.expect(*["<u>ab<e>\n<a>[cd<e>]\n"] * 99)
        self.assertEqual(lines[1], "1 conversation were left out (--skip-bad); the first: a.jsonl, line 51 has no message of the assistant, so nothing of it "
                         "would be trained; leave it out")
        self.assertEqual(self.sources()["skipped_conversations"], 1)
        self.write_chats(*[good] * 97, bad, bad, good)
        self.refuse("2 of 100 conversations are not sound, and --skip-bad leaves out 1 % at most; mend them. The first: a.jsonl, line 98 has no", "--skip-bad", "a.jsonl")
        # A template that never ends a turn is no fault of one conversation.
        self.write_model(PLAIN.replace("eos_token +", ""))
        self.refuse("a.jsonl, line 1 has a turn that ends with 'cd' and no end-of-turn token", "--skip-bad", "a.jsonl")

    def test_bad_arguments(self):
        self.write("a.txt", "a")
        self.refuse("a.txt is taken as text, which has no messages; name it .jsonl or .parquet, or say what it is by --format", "a.txt")
        for arguments, message in {
            ("--eod", "<e>"): "--eod and --chat exclude each other: ",
            ("--date", "May"): "May is not a date, such as 2026-07-31",
            ("--template-argument", "x"): "x is not NAME=VALUE",
            ("--no-end-of-turn", "--end-of-turn", "<e>"): "--end-of-turn and --no-end-of-turn exclude each other",
        }.items():
            result = self.tool("a.jsonl", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(message, result.stderr)
        command = [sys.executable, ROOT / "tools/tokenize_text.py", "--tokenizer", "model", "a", "-o", "out", "--train-on", "last"]
        self.assertIn("--train-on needs --chat", subprocess.run(command, capture_output=True, text=True).stderr)


if __name__ == "__main__":
    unittest.main()
