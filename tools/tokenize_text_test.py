"""Tests of tokenize_text.py with a double of the package tokenizers, whose ids are the places of characters in an alphabet. Run by ctest.

tests/tokenize/compare.py runs the tool with the package itself.
"""

import array
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

from script_test import ROOT, ScriptTest
from tokenizers_double import TOKENIZERS

ALPHABET = {letter: i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz \n\u00e9")}
LETTERS, EOD = len(ALPHABET), 500


class TokenizeTextTest(ScriptTest):
    def setUp(self):
        super().setUp()
        self.write("modules/tokenizers.py", TOKENIZERS)
        self.write("modules/pyarrow.py", 'raise ImportError("it is not here")')
        self.write_tokenizer({**ALPHABET, "<end>": EOD})
        self.write("model/tokenizer_config.json", '{"eos_token": {"content": "<end>"}}')

    def write_tokenizer(self, vocab: dict, first: int = 0, last: tuple[int, ...] = (), added: tuple[str, ...] = (),
                        **more):
        self.write("model/tokenizer.json", json.dumps({"vocab": vocab, "first": first, "last": last, "added": added, "model": {}} | more))

    def tool(self, *arguments, tokenizer="model") -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, ROOT / "tools/tokenize_text.py", "--tokenizer", tokenizer, *arguments], cwd=self.folder,
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(self.folder / "modules")})

    def succeed(self, *arguments) -> str:
        result = self.tool(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def refuse(self, message: str, *arguments, keeps=False, **options):
        """`keeps`: something is finished, or was before."""
        result = self.tool("--processes", "1", *arguments, **options)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertTrue(result.stderr.startswith(f"error: {message}"), result.stderr)
        self.assertEqual([path.name for path in self.folder.glob("out.*")], ["out.partial"] if keeps else [])

    def ids(self, code: str = "H") -> array.array:
        return array.array(code, (self.folder / "out.bin").read_bytes())

    def documents(self, code: str = "H") -> list[list[int]]:
        """Those that the index lists."""
        index = (self.folder / "out.idx").read_bytes()
        version, kind, sequences, entries = struct.unpack_from("<QBQQ", index, 9)
        self.assertEqual((index[:9], version, kind, entries), (b"MMIDIDX\0\0", 1, {"H": 8, "i": 4}[code], sequences + 1))
        lengths = array.array("i", index[34 : 34 + 4 * sequences])
        begins = array.array("q", index[34 + 4 * sequences : 34 + 12 * sequences])
        self.assertEqual(list(array.array("q", index[34 + 12 * sequences :])), list(range(entries)))
        ids, size = self.ids(code), array.array(code).itemsize
        self.assertEqual(sum(lengths), len(ids))
        return [list(ids[begin // size : begin // size + length]) for begin, length in zip(begins, lengths)]

    def expected(self, *texts: str) -> list[list[int]]:
        return [[*(ALPHABET[letter] for letter in text), EOD] for text in texts]

    def test_text_files_are_documents(self):
        self.write("a.txt", "one\ntwo\u00e9\n")
        self.write("b", "three")
        self.write("empty.txt", "")
        printed = self.succeed("a.txt", "empty.txt", "b", "-o", "out")
        self.assertEqual(self.documents(), self.expected("one\ntwo\u00e9\n", "three"))
        self.assertIn("out.bin, out.idx: 16 ids of 2 bytes in 2 documents, 1 without text left out; the vocabulary has 501; ", printed)
        sources = json.loads((self.folder / "out.sources.json").read_text())
        self.assertEqual(sources["tokenizer_sha256"], hashlib.sha256((self.folder / "model/tokenizer.json").read_bytes()).hexdigest())
        self.assertEqual((sources["tokenizers_version"], sources["end_of_document"], sources["ids"], sources["documents"]), ("1.2.3", EOD, 16, 2))
        digest = hashlib.sha256("one\ntwo\u00e9\n".encode()).hexdigest()
        self.assertEqual(sources["inputs"][0],
                         {"path": "a.txt", "bytes": 10, "sha256": digest, "documents": 1, "ids": 10, "empty_documents": 0,
                          "documents_with_special_strings": 0, "documents_with_lost_characters": 0})
        self.assertEqual(sorted(path.name for path in self.folder.glob("out.*")), ["out.bin", "out.idx", "out.sources.json"])

    def test_lines_are_documents(self):
        self.write("a.txt", "one\n\ntwo\r\n _\nthree")
        self.succeed("--document", "line", "a.txt", "-o", "out")
        self.assertEqual(self.documents(), self.expected("one", "two", " ", "three"))

    def test_byte_order_mark_is_left_out(self):
        self.write("a.txt", "\ufeffone")
        self.write("b.jsonl", '\ufeff{"text": "two"}\n{"text": "three"}\n')
        self.succeed("a.txt", "b.jsonl", "-o", "out")
        self.assertEqual(self.documents(), self.expected("one", "two", "three"))

    def test_json_lines(self):
        self.write("a.jsonl", '{"body": "one", "text": 1}\n\n{"body": ""}\n{"body": "\\u00e9"}')
        self.write("b.ndjson", '{"body": "two"}\n')
        self.succeed("--field", "body", "a.jsonl", "b.ndjson", "-o", "out")
        self.assertEqual(self.documents(), self.expected("one", "\u00e9", "two"))

    def test_end_of_document_and_special_tokens(self):
        self.write("a", "ab")
        for arguments, ids in {
            (): [0, 1, EOD],
            ("--eod", "c"): [0, 1, 2],
            ("--no-eod",): [0, 1],
            ("--no-eod", "--add-special-tokens"): [7, 0, 1],
        }.items():
            self.write_tokenizer({**ALPHABET, "<end>": EOD}, first=7)
            self.succeed("a", "-o", "out", *arguments)
            self.assertEqual(list(self.ids()), ids)
            for path in self.folder.glob("out.*"):
                path.unlink()

    def test_end_of_document_is_put_once(self):
        self.write("a.jsonl", '{"text": "ab"}\n{"text": "abc"}\n')
        self.write_tokenizer({**ALPHABET, "<end>": EOD}, first=7, last=(EOD,))
        self.succeed("a.jsonl", "--add-special-tokens", "-o", "out")
        self.assertEqual(self.documents(), [[7, 0, 1, EOD], [7, 0, 1, 2, EOD]])
        self.succeed("a.jsonl", "--eod", "c", "-o", "c")
        self.assertEqual(list(array.array("H", (self.folder / "c.bin").read_bytes())), [0, 1, 2, 0, 1, 2])

    def test_end_of_document_is_named(self):
        self.write("a", "ab")
        config = "each document ends with <end> (500), the eos_token of model/tokenizer_config.json; "
        also = {**ALPHABET, "<end>": EOD, "<|endoftext|>": EOD + 1}
        for vocab, arguments, line, source in (
            (None, (), config + "--eod names another", "the eos_token of model/tokenizer_config.json"),
            (None, ("--eod", "c"), "each document ends with c (2), named by --eod", "named by --eod"),
            (None, ("--no-eod",), "nothing is put after a document (--no-eod)", None),
            (also, (), config + "the vocabulary has <|endoftext|> too, with which base models end documents: --eod '<|endoftext|>' takes it",
             "the eos_token of model/tokenizer_config.json"),
            (also, ("--eod", "<|endoftext|>"), "each document ends with <|endoftext|> (501), named by --eod", "named by --eod"),
        ):
            self.write_tokenizer(vocab or {**ALPHABET, "<end>": EOD})
            self.assertEqual(self.succeed("a", "-o", "out", *arguments).splitlines()[1:], [line])
            sources = json.loads((self.folder / "out.sources.json").read_text())
            self.assertEqual(sources["end_of_document_source"], source)
            for path in self.folder.glob("out.*"):
                path.unlink()

    def test_special_strings(self):
        self.write("a.jsonl", '{"text": "a<end>b"}\n{"text": "ab"}\n{"text": "plain"}\n')
        vocab = {**ALPHABET, "<": LETTERS, ">": LETTERS + 1, "<end>": EOD, "plain": EOD + 1}
        self.write_tokenizer(vocab, first=EOD, added=("<end>", "plain"))
        printed = self.succeed("a.jsonl", "-o", "out", "--add-special-tokens")
        self.assertEqual(self.documents(), [[EOD, 0, EOD, 1, EOD], [EOD, 0, 1, EOD], [EOD, EOD + 1, EOD]])
        self.assertEqual(printed.splitlines()[2:], ["1 of them have special tokens in their text, which became control ids; "
                                                    "--special-strings-as-text takes them as text"])
        self.assertEqual(json.loads((self.folder / "out.sources.json").read_text())["documents_with_special_strings"], 1)
        printed = self.succeed("a.jsonl", "-o", "text", "--special-strings-as-text")
        self.assertEqual(len(printed.splitlines()), 2)
        ids = array.array("H", (self.folder / "text.bin").read_bytes())
        self.assertEqual(list(ids), [0, *(vocab[letter] for letter in "<end>"), 1, EOD, 0, 1, EOD, EOD + 1, EOD])

    def test_lost_characters(self):
        vocab = {**ALPHABET, "<end>": EOD}
        bpe = {"type": "BPE", "merges": [], "vocab": vocab, "unk_token": None}
        all_bytes = {f"<0x{byte:02X}>": 1000 + byte for byte in range(256)}
        self.write("a.txt", "ab\n" * 199 + "a_b\n")
        for model, more, counted in (
            (bpe, {}, True),
            (bpe | {"vocab": {"a": 0}}, {"pre_tokenizer": {"type": "ByteLevel"}}, True),
            (bpe, {"pre_tokenizer": {"type": "ByteLevel"}}, False),
            (bpe | {"byte_fallback": True}, {}, True),
            (bpe | {"byte_fallback": True, "vocab": all_bytes}, {}, False),
            (bpe | {"unk_token": "<end>", "vocab": vocab}, {}, False),
            ({"type": "WordLevel", "vocab": vocab}, {}, False),
        ):
            self.write_tokenizer(vocab, model=model, **more)
            printed = self.succeed("--document", "line", "a.txt", "--vocab", "501", "-o", "out", "--no-eod")
            self.assertEqual(printed.splitlines()[2:], ["1 of them lost characters that the tokenizer has neither tokens nor bytes for"] * counted)
            for path in self.folder.glob("out.*"):
                path.unlink()
        self.write("a.txt", "ab\n" * 98 + "a_b\n_\n")
        self.write_tokenizer(vocab, model=bpe)
        self.refuse("model/tokenizer.json loses characters of 2 of 100 documents: it has neither tokens nor bytes", "--document", "line", "a.txt",
                    "-o", "out")

    def test_large_vocabulary_takes_four_bytes(self):
        self.write("a", "ab")
        for greatest, code in (65498, "H"), (65499, "i"):
            self.write_tokenizer({**ALPHABET, "<end>": greatest})
            self.succeed("a", "-o", "out")
            self.assertEqual(self.documents(code), [[0, 1, greatest]])
            for path in self.folder.glob("out.*"):
                path.unlink()

    def write_tasks(self, *heads: str) -> list[str]:
        """JSON lines of which each fills a task of its own."""
        texts = [head + "abcdefgh \u00e9" * 27000 for head in heads]
        self.write("a.jsonl", "".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts))
        return texts

    def outputs(self) -> list[bytes]:
        return [(self.folder / f"out.{ending}").read_bytes() for ending in ("bin", "idx", "sources.json")]

    def test_processes_do_not_matter(self):
        texts = self.write_tasks(*"abcdefghijkl")
        self.write("b.txt", "text")
        outputs = []
        for processes in "1", "3":
            self.succeed("--processes", processes, "a.jsonl", "b.txt", "-o", "out")
            self.assertEqual(self.documents(), self.expected(*texts, "text"))
            outputs.append(self.outputs())
            for path in self.folder.glob("out.*"):
                path.unlink()
        self.assertEqual(*outputs)

    def test_goes_on_after_a_kill(self):
        heads = ["one ", "wait", "kill", "four"]
        texts = self.write_tasks(*heads)
        self.write("modules/kill", "")
        self.assertEqual(self.tool("--processes", "1", "a.jsonl", "-o", "out").returncode, -9)
        self.assertEqual([path.name for path in self.folder.glob("out.*")], ["out.partial"])
        # As if more had been written when it was killed.
        for name, data in ("ids", b"more"), ("journal", b'{"task": 2, "cou'):
            with open(self.folder / "out.partial" / name, "ab") as file:
                file.write(data)
        (self.folder / "modules/kill").unlink()
        result = self.tool("--processes", "2", "a.jsonl", "-o", "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"^going on from out\.partial: [0-9,]+ ids are there\n$")
        self.assertEqual(self.documents(), self.expected(*texts))
        self.assertEqual(sorted((self.folder / "modules/log").read_text().split()), ["four", "kill", "one", "wait"])
        self.assertFalse((self.folder / "out.partial").exists())

    def test_processes_have_no_named_semaphores(self):
        self.write("a", "maps")
        self.succeed("a", "-o", "out")
        self.assertEqual((self.folder / "modules/maps").read_text(), "")

    def test_killed_worker(self):
        self.write("a", "fall")
        self.refuse("a process was killed, perhaps for its memory; the same command goes on, and fewer --processes need less", "a", "-o", "out")

    def test_folders_of_others(self):
        self.write("a", "ab")
        self.write("other/ids", "theirs")
        (self.folder / "out.partial").symlink_to("other")
        self.refuse("out.partial is a link, and", "a", "-o", "out", keeps=True)
        (self.folder / "out.partial").unlink()
        (self.folder / "other").rename(self.folder / "out.partial")
        self.refuse("out.partial has ids and no journal, so", "a", "-o", "out", keeps=True)
        self.assertEqual((self.folder / "out.partial/ids").read_text(), "theirs")

    def killed(self):
        self.write_tasks("one ", "wait", "kill")
        self.write("modules/kill", "")
        self.assertEqual(self.tool("--processes", "1", "a.jsonl", "-o", "out").returncode, -9)

    def test_other_command_does_not_go_on(self):
        self.killed()
        self.write("b", "b")
        begin = "out.partial belongs to a command with another"
        self.refuse(f"{begin} inputs: there nothing, here b; give that command again, or remove out.partial", "a.jsonl", "b", "-o", "out", keeps=True)
        self.refuse(f"{begin} end_of_document: there {EOD}, here 0; ", "--eod", "a", "a.jsonl", "-o", "out", keeps=True)
        os.utime(self.folder / "a.jsonl")
        self.refuse(f"{begin} inputs: there a.jsonl, here that file with another size or time of writing; ", "a.jsonl", "-o", "out", keeps=True)
        self.write_tokenizer({**ALPHABET, "<end>": EOD, "more": LETTERS})
        self.refuse(f"{begin} tokenizer_sha256: ", "a.jsonl", "-o", "out", keeps=True)

    def test_outputs_are_not_replaced(self):
        self.write("a", "ab")
        self.succeed("a", "-o", "out")
        before = self.outputs()
        for name in "out.bin", "out.sources.json", "out.idx":
            result = self.tool("a", "-o", "out")
            self.assertEqual((result.returncode, result.stderr), (1, f"error: {name} exists; remove it, or name another -o\n"))
            (self.folder / name).rename(self.folder / "away")
        self.assertEqual(before[1], (self.folder / "away").read_bytes())
        self.refuse("none/out.partial: No such file or directory", "a", "-o", "none/out")

    def test_bad_text(self):
        remedy = "; convert the file (iconv "
        (self.folder / "latin").write_bytes(b"one\ntwo \xe9\n")
        self.refuse(f"latin, line 2 is not UTF-8: it has the byte 0xe9{remedy}", "latin", "-o", "out")
        self.refuse(f"latin, line 2 is not UTF-8: it has the byte 0xe9{remedy}", "--document", "line", "latin", "-o", "out")
        # The second task of the file.
        (self.folder / "late.txt").write_bytes(b"abcdefg\n" * 40000 + b"\xff\n")
        self.refuse(f"late.txt, line 40001 is not UTF-8: it has the byte 0xff{remedy}", "--document", "line", "late.txt", "-o", "out", keeps=True)
        shutil.rmtree(self.folder / "out.partial")
        self.write("long", "one\n" + "a" * 100)
        for where, arguments in {"long": (), "long, line 2": ("--document", "line"), "long, line 1": ("--format", "jsonl")}.items():
            if "jsonl" in arguments:
                self.write("long", '{"text": "' + "a" * 100 + '"}\n')
            self.refuse(f"{where} is longer than the 50 bytes that a document may have; cut it into documents",
                        "--most-document-bytes", "50", *arguments, "long", "-o", "out")
        self.write("empty", "")
        self.refuse("no document has text; name inputs that have some", "empty", "-o", "out")

    def test_bad_json(self):
        for line, message in {
            "{": "is not JSON: Expecting property name enclosed in double quotes at column 2; each line is an object",
            "[" * 100000: "is not JSON: maximum recursion depth exceeded",
            "[1]": "is not a JSON object; each line is one",
            '{"body": "a", "id": 1}': "has no field `text`; its fields are: `body`, `id`; mend it, or name the field of the text by --field",
            "{}": "has no field `text`; its fields are: none; ",
            '{"text": null}': "has a field `text` that is not a text; mend it, or",
            '{"text": "a\\ud800"}': "has half of a surrogate pair (\\ud800) in its field `text`; mend it",
        }.items():
            self.write("a.json", '{"text": "a"}\n' + line + "\n")
            self.refuse(f"a.json, line 2 {message}", "a.json", "-o", "out")

    def test_bad_inputs(self):
        self.write("a", "ab")
        self.refuse("missing: No such file or directory", "missing", "-o", "out")
        self.refuse("model is a folder; name its files, model/* for instance", "model", "-o", "out")
        os.mkfifo(self.folder / "fifo")
        self.refuse("fifo is not a regular file", "fifo", "-o", "out")
        (self.folder / "a.txt.gz").write_bytes(b"\x1f\x8b\x08rest")
        self.refuse("a.txt.gz is packed by gzip; unpack it first", "a.txt.gz", "-o", "out")
        self.write("a.parquet", "PAR1")
        self.refuse("the package pyarrow cannot be loaded (it is not here): pip install pyarrow, or write", "a.parquet", "-o", "out")

    def test_bad_tokenizers(self):
        self.write("a", "ab")
        self.refuse("nowhere: No such file or directory", "a", "-o", "out", tokenizer="nowhere")
        self.write("other/tokenizer.model", "")
        self.refuse("other has no tokenizer.json, the one file that tokenizers reads; transformers makes it", "a", "-o", "out", tokenizer="other")
        self.write("bad.json", "{")
        self.refuse("bad.json is not read by tokenizers 1.2.3: expected value", "a", "-o", "out", tokenizer="bad.json")
        self.write("b", "unknown")
        self.refuse("model/tokenizer.json cannot encode a text: WordLevel error: Missing [UNK] token; mend", "b", "-o", "none")
        self.refuse("model/tokenizer.json has ids up to 500, and --vocab is 500; set `model.vocab` to at least 501",
                    "a", "--vocab", "500", "-o", "out")
        self.refuse("the end-of-document token <none> is no token of model/tokenizer.json; give", "a", "--eod", "<none>", "-o", "out")
        for config in "{}", '{"eos_token": null}':
            self.write("model/tokenizer_config.json", config)
            self.refuse("no eos_token in model/tokenizer_config.json, so it is not known what ends a document; give --eod TOKEN",
                        "a", "-o", "out")
        self.write("model/tokenizer_config.json", "[]")
        self.refuse("model/tokenizer_config.json is not a JSON object", "a", "-o", "out")
        self.write_tokenizer({"a": 0, "z": 1, "c": 1})
        self.refuse("model/tokenizer.json gives the id 1 to two tokens, c and z; number its tokens again", "a", "--no-eod", "-o", "out")
        self.write_tokenizer({"a": 1 << 31})
        self.refuse("model/tokenizer.json has the id 2147483648, and the format takes ids below 2147483648", "a", "--no-eod", "-o", "out")
        self.write_tokenizer(ALPHABET, first=LETTERS)
        self.refuse(f"model/tokenizer.json gives the id {LETTERS}, and its vocabulary ends at {LETTERS - 1}: its post-processor",
                    "a", "--no-eod", "--add-special-tokens", "-o", "out")
        pathlib.Path(self.folder / "modules/tokenizers.py").write_text('raise ImportError("it is not here")')
        self.refuse("the package tokenizers cannot be loaded (it is not here): pip install tokenizers, or shardc[tokenize]", "a", "-o", "out")

    def test_bad_arguments(self):
        for arguments, message in {
            ("--processes", "0"): "0 is not a whole number from 1 to 4096",
            ("--vocab", "many"): "many is not a whole number from 1 to 2147483648",
            ("--eod", "a", "--no-eod"): "--eod and --no-eod exclude each other",
        }.items():
            result = self.tool("a", "-o", "out", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
