"""The options about a chat template that tools share."""

import argparse
import datetime
import json
import pathlib


def template_argument(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def date(text: str) -> str:
    try:
        return str(datetime.date.fromisoformat(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a date, such as 2026-07-31") from None


def add_template_options(parser) -> list:
    """Adds them to a parser or a group of one."""
    return [
        parser.add_argument("--end-of-turn", action="append", default=[], metavar="TOKEN", help="one more token that ends turns, beside the "
                            "eos_token and those of generation_config.json"),
        parser.add_argument("--chat-template", type=pathlib.Path, metavar="FILE", help="takes the place of the tokenizer's own"),
        parser.add_argument("--template-argument", action="append", default=[], type=template_argument, metavar="NAME=VALUE", help="a variable of "
                            "the template, such as enable_thinking=false; a value is JSON or a text"),
        parser.add_argument("--date", type=date, metavar="YYYY-MM-DD", help="what a template that asks for the date is given (default: today)"),
    ]
