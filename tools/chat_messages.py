"""Conversations as JSON lines and Parquet have them, judged, and brought into the one form that chat templates read."""

import json
import re

from failure import Failure

ROLES = ("system", "developer", "user", "assistant", "tool")
FIRST_ROLES = ("system", "developer")
# What may come before a message of a role, after the system's.
BEFORE = {"user": ("assistant",), "assistant": ("user", "tool"), "tool": ("assistant", "tool")}
# The names of ShareGPT, whose messages have `from` and `value`.
SHAREGPT = {"human": "user", "gpt": "assistant"}
# The fields under which transformers takes reasoning.
REASONING = ("reasoning_content", "thinking", "reasoning")
THOUGHT = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


class BadConversation(Failure):
    """What is wrong with one conversation, and what to do. The place comes before it."""


def parsed(value, name: str):
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BadConversation(f"has a text for {name} that is not JSON ({error}); write the list itself, or mend the text") from None


def without_null(value):
    """A value of Parquet without the fields that a row does not have. A column has the fields of all rows."""
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


def tools_of(value) -> list | None:
    tools = parsed(value, "`tools`")
    if tools is None or tools == []:
        return None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise BadConversation("has `tools` that are no list of JSON objects; write each tool as the schema of a function")
    return tools


def add_parts(message: dict, parts: list, where: str) -> None:
    """Makes one text of the parts of a content, and another of its reasoning."""
    texts, thoughts = [], []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "output_text", "input_text") and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in ("reasoning", "thinking") and isinstance(thought := part.get(kind) or part.get("text"), str):
            thoughts.append(thought)
        else:
            raise BadConversation(f"has in {where} a part of type {kind!r}; parts are texts and reasoning: leave out such conversations")
    message["content"] = "".join(texts)
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)


def call_of(call, where: str) -> dict:
    """A call of a tool with its arguments as an object: OpenAI's API has them as a text, which templates would put into quotes."""
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadConversation(f'has in {where} a call without a name; write {{"function": {{"name": ..., "arguments": {{...}}}}}}')
    if isinstance(function.get("arguments"), str):
        function = function | {"arguments": parsed(function["arguments"], f"the arguments in {where}")}
    return call | {"function": function} if "function" in call else function


def message_of(value, number: int, keeps_reasoning: bool) -> dict:
    where = f"message {number}"
    if not isinstance(value, dict):
        raise BadConversation(f"has a {where} that is not a JSON object; write its role and content")
    message = {key: item for key, item in value.items() if item is not None}
    if "role" not in message and "from" in message:
        name = message.pop("from")
        message = {"role": SHAREGPT.get(name, name) if isinstance(name, str) else name, "content": message.pop("value", "")} | message
    role = message.get("role")
    if role not in ROLES:
        raise BadConversation(f"has a {where} of the role {role!r}; name it as one of {', '.join(ROLES)}")
    if isinstance(message.get("content"), list):
        add_parts(message, message["content"], where)
    content = message.setdefault("content", "")
    if not isinstance(content, str):
        raise BadConversation(f"has a {where} whose content is no text; write a text, or a list of parts")
    if role == "assistant" and not keeps_reasoning:
        message = {key: item for key, item in message.items() if key not in REASONING}
        message["content"] = content = THOUGHT.sub("", content, count=1) if THOUGHT.match(content) else content
    if "tool_calls" in message:
        calls = parsed(message.pop("tool_calls"), f"the calls in {where}")
        if not isinstance(calls, list):
            raise BadConversation(f"has in {where} `tool_calls` that are no list; write a list of calls")
        message |= {"tool_calls": [call_of(call, where) for call in calls]} if calls else {}
    if role != "tool" and not content.strip() and "tool_calls" not in message:
        remedy = "leave that message out" if role in FIRST_ROLES else "leave the conversation out, or end it before that message"
        raise BadConversation(f"has a {where} ({role}) with nothing in its content; {remedy}")
    return message


def judge_order(messages: list[dict]) -> None:
    before = None
    for number, message in enumerate(messages, 1):
        role = message["role"]
        if role in FIRST_ROLES and before is None:
            continue
        if (before is None and role != "user") or (before is not None and before not in BEFORE.get(role, ())):
            after = f"after one of the role {before}" if before else "before any of the user"
            raise BadConversation(f"has a message {number} of the role {role} {after}; the system's come first, then user and assistant by "
                                  "turns, and a tool's after its call: put them in this order, or join neighbours")
        before = role


def conversation_of(value, keeps_reasoning: bool, name: str) -> list[dict]:
    """The messages, of which the last that can be trained is the assistant's."""
    messages = parsed(value, name)
    if not isinstance(messages, list) or not messages:
        raise BadConversation(f"has a {name} that is no list of messages; name the field that has them by --field")
    messages = [message_of(one, number, keeps_reasoning) for number, one in enumerate(messages, 1)]
    judge_order(messages)
    if all(message["role"] != "assistant" for message in messages):
        raise BadConversation("has no message of the assistant, so nothing of it would be trained; leave it out")
    return messages


def texts_of(value) -> str:
    """All texts in a value."""
    left, texts = [value], []
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, list)):
            left.extend(value.values() if isinstance(value, dict) else value)
    return "\n".join(texts)
