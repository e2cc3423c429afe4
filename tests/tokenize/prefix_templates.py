"""Compares the texts that tools/chat_prefixes.py takes from one rendering with transformers' own of the same messages, for templates of
tests/tokenize/templates and for those below, most of which look at messages in a way that lets nothing be taken. tests/tokenize/chats.py runs it.
"""

import json
import pathlib
import sys

from chat_families import FAMILIES, TEMPLATES, Maker

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from chat_prefixes import PrefixFinder  # noqa: E402
from chat_template import COMPARED, ChatTemplate  # noqa: E402

CONVERSATIONS = 60
SAY = "{{ '<' + message.role + '>' + message.content }}"
PROMPT = "{% if add_generation_prompt %}<assistant>{% endif %}"
EACH = "{% for message in messages %}" + SAY + "{% endfor %}" + PROMPT
# Of these, most renderings of the first messages come from one rendering.
TAKEN = {
    "plain": EACH,
    "first message, index": "{{ messages[0].role }}{% for message in messages %}{{ loop.index0 }}" + SAY + "{% endfor %}." + PROMPT,
    "rest of messages": "{% set rest = messages[1:] %}{% for message in rest[0:] %}" + SAY + "{{ loop.first }}{% endfor %}" + PROMPT,
    "message before": "{% for message in messages %}{{ loop.previtem.role }}" + SAY + "{% endfor %}" + PROMPT,
    "state": "{% set n = namespace(n=0) %}{% for message in messages %}{% set n.n = n.n + 1 %}{{ n.n }}" + SAY + "{% endfor %}" + PROMPT,
    "look ahead after tools": "{% for message in messages %}" + SAY + "{% if message.role == 'tool' and loop.last %}!{% endif %}{% endfor %}" + PROMPT,
    "variable": EACH + "{{ eos_token }}{% if enable_thinking is defined %}?{% endif %}",
}
REFUSED = {
    "last": "{% for message in messages %}" + SAY + "{{ loop.last }}{% endfor %}" + PROMPT,
    "next": "{% for message in messages %}" + SAY + "{{ loop.nextitem.role }}{% endfor %}" + PROMPT,
    "length of the loop": "{% for message in messages %}" + SAY + "{{ loop.length }}{% endfor %}" + PROMPT,
    "from the end": "{% for message in messages %}{{ loop.revindex }}" + SAY + "{% endfor %}" + PROMPT,
    "length": "{{ messages | length }}" + EACH,
    "last message": "{{ messages[-1].content }}" + EACH,
    "last by filter": "{{ (messages | last).content }}" + EACH,
    "place": "{% for message in messages %}" + SAY + "{{ messages[loop.index0 + 1].role }}{% endfor %}" + PROMPT,
    "place that is not there": "{{ messages[2] is defined }}" + EACH,
    "all but the last": "{% for message in messages[:-1] %}" + SAY + "{% endfor %}" + PROMPT,
    "backward": "{% for message in messages[::-1] %}" + SAY + "{% endfor %}" + PROMPT,
    "reversed": "{% for message in messages | reverse %}" + SAY + "{% endfor %}" + PROMPT,
    "as a list": "{% set all = messages | list %}{% for message in all %}" + SAY + "{% endfor %}" + PROMPT,
    "longer list": "{% set all = [{'role': 'x', 'content': 'y'}] + messages %}{% for message in all %}" + SAY + "{% endfor %}" + PROMPT,
    "longer list after": "{% set all = messages + [{'role': 'x', 'content': 'y'}] %}{% for message in all %}" + SAY + "{% endfor %}" + PROMPT,
    "filtered loop": "{% for message in messages if message.role != 'system' %}" + SAY + "{% endfor %}" + PROMPT,
    "selected": "{% for message in messages | rejectattr('role', 'equalto', 'system') %}" + SAY + "{% endfor %}" + PROMPT,
    "in pairs": "{% for pair in messages | batch(2) %}{% for message in pair %}" + SAY + "{% endfor %};{% endfor %}" + PROMPT,
    "as JSON": "{{ messages | tojson }}" + EACH,
    "as a text": "{{ messages }}" + EACH,
    "equal": "{{ messages == messages[0:] }}{{ [] == messages }}{{ messages[0] in messages }}" + EACH,
    "joined": "{{ messages | map(attribute='content') | join('|') }}" + EACH,
    "read before": "{% for message in messages %}{{ message.role }}{% endfor %}" + EACH,
    "read in the loop": "{% for message in messages %}" + SAY + "{% for one in messages %}{{ one.role }}{% endfor %}{% endfor %}" + PROMPT,
    "loop that ends": "{% for message in messages %}" + SAY + "{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}" + PROMPT,
    "prompt in the loop": "{% for message in messages %}" + SAY + "{% if add_generation_prompt %}+{% endif %}{% endfor %}" + PROMPT,
    "prompt by another name": "{% set p = add_generation_prompt %}{% for message in messages %}" + SAY + "{{ p }}{% endfor %}" + PROMPT,
    "count after": "{% set n = namespace(n=0) %}{% for message in messages %}{% set n.n = n.n + 1 %}" + SAY + "{% endfor %}{{ n.n }}" + PROMPT,
    "message after": EACH + "{{ messages[0].content }}",
    "macro after": "{% macro m() %}{{ messages | length }}{% endmacro %}" + EACH + "{{ m() }}",
    "tools after": EACH + "{{ tools }}",
    "cycle after": "{% set c = cycler('a', 'b') %}{% for message in messages %}" + SAY + "{{ c.next() }}{% endfor %}{{ c.next() }}" + PROMPT,
    "set after": EACH + "{% set last = messages | length %}{{ last }}",
    "other loop last": EACH + "{% for x in [1, 2] %}{{ x }}{% endfor %}",
    "unknown list last": "{% set n = namespace(n=0) %}{% for message in messages %}{% set n.n = n.n + 1 %}" + SAY + "{% endfor %}{{ n.n }}"
                         "{% if false %}{% set rest = messages[1:] %}{% endif %}{% for message in rest %}" + SAY + "{% endfor %}" + PROMPT,
    "empty": "{% for message in messages[1:] %}" + SAY + "{% else %}nothing{% endfor %}" + PROMPT,
    "kept back": "{% set text %}{% for message in messages %}" + SAY + "{% endfor %}{% endset %}{{ text | trim }}" + PROMPT,
    "block": "{% block b %}" + EACH + "{% endblock %}",
    "failing": "{% for message in messages %}" + SAY + "{% if loop.index == 4 %}{{ raise_exception('four') }}{% endif %}{% endfor %}" + PROMPT,
}


def text_or_error(render) -> str:
    try:
        return render()[0]
    except Exception as error:  # A template raises what it likes.
        return f"{type(error).__name__}: {error}"


def compare_prefixes(folder: pathlib.Path, words: list[str]) -> int:
    """Differences. `folder`: that of any tokenizer."""
    templates = {f"{name}.jinja": ((TEMPLATES / f"{name}.jinja").read_text(), name) for name in FAMILIES}
    templates |= {name: (text, "qwen2_5") for name, text in (TAKEN | REFUSED).items()}
    wrong = texts = all_taken = 0
    for name, (text, family) in templates.items():
        template, maker = ChatTemplate(folder, text, {"bos_token": "<b>"}, "2026-07-31", uses_marks=False), Maker(1, words)
        # Each text as it is taken, and none by the library instead.
        template.compared = COMPARED
        taken = 0
        for _ in range(CONVERSATIONS):
            # As a line of JSON has them.
            messages, tools = json.loads(json.dumps(maker.conversation(FAMILIES[family])))
            render = template.renderer_of(messages, tools, True)
            finder, calls = template.finders.get(text), []
            for length in range(1, len(messages) + 1):
                for prompt in (False, True):
                    theirs = text_or_error(lambda: template.render(messages[:length], tools, prompt))
                    calls.clear()
                    if finder:
                        finder.run = lambda *arguments: calls.append(1) or PrefixFinder.run(finder, *arguments)
                    ours = text_or_error(lambda: render(length, prompt))
                    texts += 1
                    taken += finder is not None and not calls
                    if ours != theirs:
                        wrong += 1
                        print(f"template {name!r}, {length} of {len(messages)} messages, prompt {prompt}: {ours[-80:]!r}, and transformers has {theirs[-80:]!r}")
        if name in TAKEN and taken == 0:
            print(f"template {name!r}: nothing is taken from one rendering")
            wrong += 1
        all_taken += taken
    print(f"{texts:,} texts of the first messages by {len(templates)} templates, {all_taken:,} of them taken from one rendering; {wrong} differ", flush=True)
    return wrong
