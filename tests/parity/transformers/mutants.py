"""Makes mutants of safetensors files, asks the package safetensors which of them it takes, and asks shardc's reader.

    tools/dev parity-transformers

Or by hand, after `tools/dev build`: .deps/bench-venv/bin/python tests/parity/transformers/mutants.py [COUNT] [SEED] [-o LIST]

Each mutant is a valid file with one to three changes: of bytes, of the length before the header, of bytes after the data, or of the
header as JSON (keys dropped, doubled, renamed, in another order; numbers, types and values changed; offsets with holes and overlaps;
deep, escaped and spaced text). The verdicts are written to a list that tests_checkpoint reads (Safetensors.TakesWhatItsPackageTakes);
-o writes a list without asking it. Prints how many mutants with each change the package takes, and what the reader makes of the list.
"""

import argparse
import collections
import copy
import json
import os
import pathlib
import random
import struct
import subprocess
import sys

from compare import ROOT, SCRATCH

DTYPES = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
          "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64,
          "U64": 64}
NUMBERS = [0, 1, 2, 3, 7, 8, 9, 255, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, -1, -0.0, 1.0, 0.5, 1e300]
OTHERS = [None, True, False, "", "0", "F32", "f32", "F31", [], [0], [[0]], {}, {"F32": None}, {"a": 1}, 5, -1, 1.5]


class Pairs(list):
    """The members of an object, of which a key may be there twice."""


def random_file(r: random.Random) -> tuple[Pairs, bytes]:
    """A valid header as a tree, and its data."""
    members, end = Pairs(), 0
    for i in range(r.choice([0, 1, 1, 2, 2, 3, 4])):
        dtype = r.choice(list(DTYPES) if r.random() < 0.5 else ["F32", "F16", "BF16"])
        shape = [r.choice([0, 1, 1, 2, 2, 3, 4]) for _ in range(r.choice([0, 1, 2, 2, 3]))]
        if DTYPES[dtype] % 8:
            shape.append(4)
        bits = DTYPES[dtype]
        for size in shape:
            bits *= size
        members.append((r.choice(["w{}", "model.layers.{}.mlp.up_proj.weight", "é{}", "a\"\\{}"]).format(i),
                        Pairs([("dtype", dtype), ("shape", shape), ("data_offsets", [end, end + bits // 8])])))
        end += bits // 8
    if r.random() < 0.3:
        r.shuffle(members)
    if r.random() < 0.4:
        members.insert(0, ("__metadata__", Pairs([("format", "pt"), ("of", "a test")][:r.randrange(3)])))
    return members, bytes(r.randrange(256) for _ in range(end))


def at(place):
    holder, i = place
    return holder[i][1] if isinstance(holder, Pairs) else holder[i]


def put(place, value):
    holder, i = place
    holder[i] = (holder[i][0], value) if isinstance(holder, Pairs) else value


def places(tree, of=lambda value: True):
    """All places of a tree whose value is such, as list and index."""
    found = []
    for i in range(len(tree)):
        value = at((tree, i))
        if of(value):
            found.append((tree, i))
        if isinstance(value, list):
            found += places(value, of)
    return found


def objects(tree):
    return [tree] + [at(place) for place in places(tree, lambda value: isinstance(value, Pairs))]


def lists_of(tree, key):
    """The lists that are members with this key."""
    return [value for of in objects(tree) for name, value in of if name == key and type(value) is list]


def other(r):
    return copy.deepcopy(r.choice(OTHERS))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def change_number(r, tree):
    found = places(tree, is_number)
    if found:
        place = r.choice(found)
        put(place, r.choice(NUMBERS) if r.random() < 0.5 else at(place) + r.choice([-1, 1, 4]))


def change_value(r, tree):
    if found := places(tree):
        put(r.choice(found), other(r))


def change_dtype(r, tree):
    if found := places(tree, lambda value: isinstance(value, str)):
        put(r.choice(found), r.choice([*DTYPES, "F128", "f32", "F8_E3M4", "", "F32 "]))


def change_shape(r, tree):
    """Sizes that multiply to as much as before, or to nothing."""
    if shapes := lists_of(tree, "shape"):
        shape = r.choice(shapes)
        for _ in range(r.choice([1, 2, 9])):
            shape.insert(r.randrange(len(shape) + 1), r.choice([1, 1, 1, 0, 2**62, 2**40, 2]))
        if r.random() < 0.3:
            shape.reverse()


def change_offsets(r, tree):
    """Holes, overlaps, and exchanged places."""
    if offsets := [pair for pair in lists_of(tree, "data_offsets") if len(pair) == 2 and all(map(is_number, pair))]:
        pair, another = r.choice(offsets), r.choice(offsets)
        shift = r.choice([-8, -1, 1, 4, 2**63])
        begin, end = r.choice([(shift, shift), (shift, 0), (0, shift), (0, 0)])
        pair[0], pair[1] = pair[0] + begin, pair[1] + end
        if r.random() < 0.4:
            pair[:], another[:] = another[:], pair[:]


def drop_key(r, tree):
    if found := [o for o in objects(tree) if o]:
        of = r.choice(found)
        of.pop(r.randrange(len(of)))


def double_key(r, tree):
    if found := [o for o in objects(tree) if o]:
        of = r.choice(found)
        key, value = r.choice(of)
        of.insert(r.randrange(len(of) + 1), (key, r.choice([value, value, r.choice(of)[1], other(r)])))


def add_key(r, tree):
    of = r.choice(objects(tree))
    of.insert(r.randrange(len(of) + 1), (r.choice(["extra", "__metadata__", "dtype", "Shape", "", "\0"]),
                                         r.choice([other(r), Pairs([("k", "v")]), Pairs([("dtype", "U8"), ("shape", [0]), ("data_offsets", [0, 0])])])))


def rename_key(r, tree):
    if found := [o for o in objects(tree) if o]:
        of = r.choice(found)
        i = r.randrange(len(of))
        of[i] = (r.choice([r.choice(of)[0], "x", "__metadata__", of[i][0] + " ", of[i][0].upper()]), of[i][1])


def reorder_keys(r, tree):
    r.shuffle(r.choice(objects(tree)))


def nest(r, tree):
    """A value of so many lists, as a member that nobody reads or in place of one."""
    value = r.choice([0, "x"])
    for _ in range(r.choice([1, 3, 30, 31, 32, 33, 120, 124, 125, 126, 127, 128, 200])):
        value = [value] if r.random() < 0.7 else Pairs([("n", value)])
    of = r.choice(objects(tree))
    of.append((r.choice(["extra", "shape"]) if of is not tree else "extra", value))


def as_list(r, tree):
    """A tensor as the list of its values, which serde takes for an object."""
    if found := places(tree, lambda value: isinstance(value, Pairs)):
        place = r.choice(found)
        put(place, [of for _, of in at(place)])


TREE_CHANGES = [change_number, change_value, change_dtype, change_shape, change_offsets, drop_key, double_key, add_key, rename_key,
                reorder_keys, nest, as_list]


def string(r, text):
    """A string with some of its characters escaped."""
    if r.random() < 0.97:
        return json.dumps(text, ensure_ascii=r.random() < 0.5)
    return '"' + "".join(r.choice([f"\\u{ord(c):04x}", f"\\u{ord(c):04X}"]) if ord(c) < 0x10000 else c for c in text) + '"'


def text_of(r, tree, space):
    blank = lambda: r.choice(["", " ", "\n", "\t", "\r"]) if space else ""
    if isinstance(tree, Pairs):
        return "{" + ",".join(blank() + string(r, key) + blank() + ":" + blank() + text_of(r, value, space) + blank() for key, value in tree) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(blank() + text_of(r, value, space) + blank() for value in tree) + "]"
    return string(r, tree) if isinstance(tree, str) else json.dumps(tree)


TEXT_PARTS = [b"\0", b" ", b"\n", b"\xff", b"\xc3\xa9", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"\\u00",
              b"\\x41", b"\\/", b"\x01", b"\x7f", b"//c\n", b"/**/", b",", b"{", b"}", b"[", b"]", b'"', b":", b"0", b"-", b"1e5", b"e", b".0", b"+1", b"NaN",
              b"Infinity", b"null", b"true", b"\xef\xbb\xbf", b"\x0b", b"\xc2\xa0", b"1e400", b"00"]


def flip_bit(r, text):
    i = r.randrange(len(text))
    return text[:i] + bytes([text[i] ^ 1 << r.randrange(8)]) + text[i + 1:]


def put_byte(r, text):
    i = r.randrange(len(text))
    return text[:i] + bytes([r.randrange(256)]) + text[i + 1:]


def insert_text(r, text):
    i = r.choice([0, len(text), r.randrange(len(text) + 1)])
    return text[:i] + r.choice(TEXT_PARTS) + text[i:]


def cut_text(r, text):
    i = r.randrange(len(text))
    return text[:i] + text[i + r.choice([1, 1, 2, 8]):]


def copy_text(r, text):
    i, begin = r.randrange(len(text)), r.randrange(len(text))
    return text[:i] + text[begin:begin + r.randrange(1, 40)] + text[i:]


def pad(r, text):
    return r.choice([text + b" " * r.randrange(1, 9), b" " + text, b"\n" + text, text + b"\0" * r.randrange(1, 9), text + b"\n", b"\xef\xbb\xbf" + text])


TEXT_CHANGES = [flip_bit, put_byte, insert_text, cut_text, copy_text, pad]
FILE_CHANGES = ["other length", "bytes after the data", "data cut off", "byte of the file", "file cut off"]


def mutant(r: random.Random) -> tuple[list[str], bytes]:
    """The names of its changes, and the file."""
    tree, data = random_file(r)
    changes = r.choices([*TREE_CHANGES, *TEXT_CHANGES, *FILE_CHANGES], k=r.choice([1, 1, 1, 2, 3]))
    for change in changes:
        if change in TREE_CHANGES:
            change(r, tree)
    text = text_of(r, tree, r.random() < 0.2).encode("utf-8", "surrogatepass")
    for change in changes:
        if change in TEXT_CHANGES and text:
            text = change(r, text)
    length = len(text)
    if "other length" in changes:
        length = max(0, r.choice([length + r.choice([-9, -8, -1, 1, 8]), 0, 1, 2**31, 100_000_001, 2**62, 2**63, 2**64 - 1, 2**64 - 8]))
    if "bytes after the data" in changes:
        data += bytes(r.choice([1, 2, 4, 8]))
    if "data cut off" in changes:
        data = data[:-r.choice([1, 2, 8])]
    file = struct.pack("<Q", length) + text + data
    if "byte of the file" in changes:
        file = put_byte(r, file)
    if "file cut off" in changes:
        file = file[:r.randrange(len(file))]
    return [change if isinstance(change, str) else change.__name__.replace("_", " ") for change in changes], file


def is_taken(file: bytes) -> bool:
    import safetensors

    try:
        safetensors.deserialize(file)
        return True
    except safetensors.SafetensorError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=50_000)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("-o", dest="out", type=pathlib.Path, help="write the list there, and ask nobody")
    options = parser.parse_args()
    r = random.Random(options.seed)
    all_with, taken_with = collections.Counter(), collections.Counter()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    path = options.out or SCRATCH / "headers.bin"
    with path.open("wb") as out:
        for _ in range(options.count):
            changes, file = mutant(r)
            taken = is_taken(file)
            all_with.update(set(changes))
            taken_with.update(set(changes) if taken else ())
            out.write(b"01"[taken:taken + 1] + struct.pack("<Q", len(file)) + file)
    if options.out:
        return
    print("| change | mutants with it | that the package safetensors takes |")
    print("|---|---|---|")
    for change, count in sorted(all_with.items()):
        print(f"| {change} | {count} | {taken_with[change]} |")
    sys.stdout.flush()
    reader = ROOT / "build" / "tests" / "tests_checkpoint"
    sys.exit(subprocess.run([reader, "--gtest_brief=1", "--gtest_filter=Safetensors.TakesWhatItsPackageTakes"],
                            env=dict(os.environ, SHARDC_HEADERS=str(path))).returncode)


main()
