"""Takes the renderings of the first messages of a conversation from one rendering of all, for templates of which that can be proved.

A template is a program: two runs of it give the same output until they read what differs. Here the conversation is a list that notes what
is read of it, and how long the output was then. If the first reading beyond k messages is made by the template's last loop at the top, which
asks for the next message, a run on k messages ends that loop there, with that output. What comes after the loop is a constant if it uses
none of messages, tools and the names that the template sets.
"""

import sys

from tokenize_inputs import import_or_fail

PROMPT = "add_generation_prompt"
# What the last loop gives its list to.
LOOP = "shardc_loop"
NOT_CONSTANT = {"messages", "tools", "documents", "self", "loop", "caller", "varargs", "kwargs"}


class Unproved(Exception):
    """A template of another form."""


class Reads:
    """What is read of a number of messages."""

    def __init__(self, length: int, loops: tuple):
        """`loops`: the code of what asks for the next message of a loop."""
        self.length, self.loops = length, loops
        self.written = 0
        # Whatever differs from a run on so many messages, or fewer, was read.
        self.known = 0
        # For each number of messages the output at the first reading beyond them, if the last loop read.
        self.ends: list[int | None] = [None] * (length + 1)

    def read(self, at: int, is_loop: bool = False) -> None:
        if at > self.known:
            self.known = at
            self.ends[at] = self.written if is_loop else None

    def read_all(self) -> None:
        self.known = self.length


class Iterator:
    def __init__(self, messages: "Messages"):
        self.messages, self.at, self.reads = messages.all, messages.first, messages.reads
        self.is_loop = messages.is_loop

    def __iter__(self):
        return self

    def __next__(self):
        at, reads = self.at, self.reads
        # `loop.last` looks at the next message in the middle of a turn.
        reads.read(at, self.is_loop and sys._getframe(1).f_code in reads.loops)
        if at == reads.length:
            raise StopIteration
        self.at = at + 1
        return self.messages[at]


class Messages(list):
    """The messages from `first` on. `is_loop`: the list is that of the last loop."""

    def __init__(self, messages: list, first: int, reads: Reads, is_loop: bool = False):
        super().__init__(messages[first:])
        self.all, self.first, self.reads, self.is_loop = messages, first, reads, is_loop

    def __iter__(self):
        return Iterator(self)

    def __getitem__(self, at):
        length = len(self.all) - self.first
        begin = (at.start or 0) if isinstance(at, slice) else at
        is_from_front = isinstance(begin, int) and 0 <= begin <= length
        if isinstance(at, slice) and is_from_front and at.stop is None and at.step is None:
            self.reads.read(self.first + begin - 1)
            return Messages(self.all, self.first + begin, self.reads)
        if is_from_front and begin < length and not isinstance(at, slice):
            self.reads.read(self.first + begin)
        else:
            self.reads.read_all()
        return super().__getitem__(at)

    def __radd__(self, other):
        self.reads.read_all()
        return NotImplemented


def reading_all(method):
    def read(self, *arguments, **named):
        self.reads.read_all()
        return method(self, *arguments, **named)
    return read


# Whatever else a list does may depend on all that is in it. These make it, or look its methods up.
UNREAD = ("__class__", "__class_getitem__", "__delattr__", "__getattribute__", "__getstate__", "__init_subclass__", "__new__", "__setattr__",
          "__subclasshook__")
for name in dir(list):
    if callable(getattr(list, name)) and name not in Messages.__dict__ and name not in UNREAD:
        setattr(Messages, name, reading_all(getattr(list, name)))


def mark_last_loop(tree, nodes, global_names) -> None:
    """Makes the last loop at the top give its list to LOOP."""
    places = [at for at, node in enumerate(tree.body) if isinstance(node, nodes.For)]
    others = (nodes.Block, nodes.Extends, nodes.FromImport, nodes.Import, nodes.Include)
    if not places or next(tree.find_all(others), None):
        raise Unproved
    loop, after = tree.body[places[-1]], tree.body[places[-1] + 1:]

    def names_in(parts) -> set[str]:
        return {name.name for part in parts for name in part.find_all(nodes.Name)}

    set_here = {name.name for name in tree.find_all(nodes.Name) if name.ctx != "load"} | {macro.name for macro in tree.find_all(nodes.Macro)}
    if names_in(after) & (NOT_CONSTANT | set_here | set(global_names)) or PROMPT in set_here | names_in(tree.body[: places[-1] + 1]):
        raise Unproved
    if loop.recursive or loop.else_ or LOOP in names_in([tree]):
        raise Unproved
    loop.iter = nodes.Call(nodes.Name(LOOP, "load"), [loop.iter], [], None, None).set_lineno(loop.lineno)


def list_of_loop(messages):
    """What the last loop goes through."""
    return Messages(messages.all, messages.first, messages.reads, True) if isinstance(messages, Messages) else messages


def quick_getattr(environment):
    """Jinja's, which looks among the keys of an object after its attributes, and raises an error inside for each key."""
    slow, undefined, attributes = environment.getattr, environment.undefined, frozenset(dir(dict))

    def get(value, name: str):
        if type(value) is not dict or name in attributes:
            return slow(value, name)
        return value[name] if name in value else undefined(obj=value, name=name)
    return get


class PrefixFinder:
    """Renders by one template. `renderer`: transformers' module that renders, whose own steps these are."""

    def __init__(self, renderer, template: str, variables: dict):
        self.plain, self.with_aliases = renderer._plain_template_data, renderer._alias_reasoning_fields
        self.variables = {**self.plain(variables), LOOP: list_of_loop}
        environment = renderer._compile_jinja_template(template).environment.overlay()
        environment.getattr = quick_getattr(environment)
        tree = environment.parse(template)
        mark_last_loop(tree, import_or_fail("jinja2", "").nodes, environment.globals)
        self.compiled = environment.from_string(tree)
        self.loops = (self.compiled.root_render_func.__code__, import_or_fail("jinja2.runtime", "").LoopContext.__next__.__code__)
        # What comes after the last loop, with the generation prompt.
        self.prompt_tail: str | None = None

    def run(self, messages: list[dict], tools: list | None, prompt: bool) -> tuple[str, list[int | None]]:
        """The text, and its characters before the end of each number of messages."""
        reads = Reads(len(messages), self.loops)
        pieces = []
        variables = {"messages": Messages(messages, 0, reads), "tools": tools, "documents": None, PROMPT: prompt, **self.variables}
        for piece in self.compiled.generate(variables):
            pieces.append(piece)
            reads.written += len(piece)
        return "".join(pieces), reads.ends


class Prefixes:
    """The renderings of the first messages of a conversation. `is_json`: all values come from JSON, of which `plain` only makes a copy."""

    def __init__(self, finder: PrefixFinder, messages: list[dict], tools: list | None, is_json: bool):
        if not is_json:
            messages, tools = finder.plain(messages), finder.plain(tools)
        self.finder, self.messages, self.tools = finder, finder.with_aliases(messages), tools
        self.text, self.ends = finder.run(self.messages, self.tools, False)
        # Null if what comes after the last loop is not known.
        self.last = self.ends[-1]
        if finder.prompt_tail is None and self.last is not None:
            prompt, ends = finder.run(self.messages, self.tools, True)
            finder.prompt_tail = prompt[ends[-1]:]

    def render(self, length: int, prompt: bool) -> str:
        """With `prompt` the generation prompt too."""
        end = self.ends[length]
        if self.last is None or end is None:
            return self.finder.run(self.messages[:length], self.tools, prompt)[0]
        return self.text[:end] + (self.finder.prompt_tail if prompt else self.text[self.last:])
