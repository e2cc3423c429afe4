"""What tokenize_text.py says at its end: what it has made, what it counted, and what it refuses for its counts."""

from failure import Failure
from tokenize_inputs import MIB, Job
from tokenize_job import END_OF_TEXT, NAMED
from tokenize_output import Output

# Of the documents, or of the conversations.
MOST_LOSSY = MOST_SKIPPED = 0.01


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def refuse_loss(output: Output) -> None:
    """Refuses a tokenizer that is made for another kind of text, and chats of which too many are not sound."""
    lossy = output.total("documents_with_lost_characters")
    documents = output.total("conversations") if output.job.chat else output.total("documents") + output.total("empty_documents")
    if lossy > MOST_LOSSY * documents:
        output.remove()
        raise Failure(f"{output.job.tokenizer} loses characters of {lossy:,} of {documents:,} documents: it has neither tokens nor "
                      "bytes for them, and no unknown token; take the model's own tokenizer, or mend this one")
    if not output.job.chat:
        return
    skipped = output.total("skipped_conversations")
    if skipped > MOST_SKIPPED * (documents + skipped):
        output.remove()
        raise Failure(f"{skipped:,} of {documents + skipped:,} conversations are not sound, and --skip-bad leaves out 1 % at most; mend them. The "
                      f"first: {output.first_skipped}")


def about_ends(job: Job) -> str:
    """A line about what ends each document."""
    if job.end_of_document is None:
        return "nothing is put after a document (--no-eod)"
    line = f"each document ends with {job.end_of_document_token} ({job.end_of_document}), {job.end_of_document_source}"
    if job.end_of_document_source == NAMED:
        return line
    # Chat models name the end of a turn.
    if job.has_end_of_text and job.end_of_document_token != END_OF_TEXT:
        return f"{line}; the vocabulary has {END_OF_TEXT} too, with which base models end documents: --eod '{END_OF_TEXT}' takes it"
    return f"{line}; --eod names another"


def about_loss(output: Output) -> list[str]:
    lossy = output.total("documents_with_lost_characters")
    return [f"{lossy:,} of them lost characters that the tokenizer has neither tokens nor bytes for"] if lossy else []


def about_texts(output: Output) -> list[str]:
    lines = [about_ends(output.job)]
    if special := output.total("documents_with_special_strings"):
        lines.append(f"{special:,} of them have special tokens in their text, which became control ids; --special-strings-as-text takes them as text")
    return lines + about_loss(output)


def about_chats(output: Output) -> list[str]:
    """The last line says what is trained."""
    chat, total, lines = output.job.chat, output.total, about_loss(output)
    conversations = total("conversations")
    if chat.date:
        lines.append(f"the chat template asks for the date, and was given {chat.date}; --date names another")
    if special := total("documents_with_special_strings"):
        lines.append(f"{special:,} of them have special tokens in their messages, which became control ids; take such texts out if they are not meant")
    if more := total("conversations_of_more_documents"):
        lines.append(f"{plural(more, 'conversation')} became more than one document each: the chat template writes earlier turns in another way than the "
                     "last one, so a turn is trained in the text that ends with it; --train-on last makes one document")
    if unanswered := total("conversations_without_last_answer"):
        lines.append(f"{plural(unanswered, 'conversation')} end with messages that nobody answers, which are left out")
    if over := total("tokens_over_borders"):
        lines.append(f"{plural(over, 'token')} reach over the border of prompt and answer; they belong to the prompt, and are not trained")
    if wrong := total("turns_with_wrong_marks"):
        lines.append(f"in {plural(wrong, 'turn')} what the template marks by {{% generation %}} reaches over what the assistant says, or a border of it is "
                     "in no token; what is said and marked is trained, and nothing else (masks of transformers are wrong there)")
    if skipped := total("skipped_conversations"):
        lines.append(f"{plural(skipped, 'conversation')} were left out (--skip-bad); the first: {output.first_skipped}")
    ends = "any token" if chat.end_of_turn is None else " or ".join(f"{token} ({i})" for token, i in chat.end_of_turn.items())
    lines.append(f"{plural(conversations, 'conversation')}, {plural(total('turns'), 'trained turn')} (--train-on {chat.train_on}), each ends with {ends}; "
                 f"{plural(total('targets'), 'target')}, {total('targets') / output.total('ids'):.1%} of the ids; of a conversation {total('least_targets'):,} at "
                 f"least, {total('targets') / conversations:,.1f} in the mean, {total('most_targets'):,} at most; no conversation was cut")
    return lines


def report(output: Output, out: str, seconds: float) -> None:
    job, size = output.job, sum(size for _, _, size, _ in output.job.inputs)
    empty = f", {output.total('empty_documents'):,} without text left out" if output.total("empty_documents") else ""
    files = f"{out}.bin, {out}.idx" + (f", {out}.targets.bin, {out}.targets.idx" if job.chat else "")
    print(f"{files}: {output.total('ids'):,} ids of {job.id_bytes()} bytes in {plural(output.total('documents'), 'document')}{empty}; the vocabulary has "
          f"{job.vocab:,}; {size / MIB:.1f} MiB in {seconds:.1f} s")
    if job.switched_off:
        print(f"{job.tokenizer} asks for {' and '.join(job.switched_off)}, which is switched off")
    print("\n".join(about_chats(output) if job.chat else about_texts(output)))
