"""What Python's tomllib makes of many texts: reads "LENGTH\\n" and the text for each from the file argv[1], writes for each to
argv[2] "-\\n" where it is refused, else "DEPTH WIDE LENGTH\\n" and the tree in the form of tests/recipe/toml_grammar.cpp. DEPTH: how deep
tables and lists lie in each other. WIDE: 1 where a number does not fit 64 bits."""
import datetime
import math
import struct
import sys
import tomllib


class Tree:
    def __init__(self):
        self.parts = []
        self.depth = 0
        self.wide = False

    def text(self, value):
        data = value.encode()
        self.parts.append(b"%d:%s" % (len(data), data))

    def add(self, value, depth):
        self.depth = max(self.depth, depth)
        if isinstance(value, bool):
            self.parts.append(b"b%d;" % value)
        elif isinstance(value, int):
            self.wide |= not -(2**63) <= value < 2**63
            self.parts.append(b"i%d;" % value)
        elif isinstance(value, float):
            self.wide |= math.isinf(value)
            self.parts.append(b"f%s;" % (b"nan" if value != value else struct.pack(">d", value).hex().encode()))
        elif isinstance(value, str):
            self.parts.append(b"s")
            self.text(value)
        elif isinstance(value, (datetime.date, datetime.time)):
            self.parts.append(b"d;")
        elif isinstance(value, list):
            self.parts.append(b"a%d[" % len(value))
            for item in value:
                self.add(item, depth + 1)
        else:
            self.parts.append(b"t%d{" % len(value))
            for key in sorted(value, key=str.encode):
                self.text(key)
                self.add(value[key], depth + 1)


def judge(data):
    try:
        tree = Tree()
        tree.add(tomllib.loads(data.decode()), 0)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return b"-\n"
    text = b"".join(tree.parts)
    return b"%d %d %d\n%s" % (tree.depth, tree.wide, len(text), text)


def main():
    sys.setrecursionlimit(100000)
    with open(sys.argv[1], "rb") as texts, open(sys.argv[2], "wb") as verdicts:
        while line := texts.readline():
            verdicts.write(judge(texts.read(int(line))))


main()
