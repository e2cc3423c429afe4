#include "compiler/plan/line_parser.h"

#include "compiler/base/text/split.h"

namespace shardc {

static constexpr size_t MaxFields = 256;

auto LineParser::Shortened(std::string_view text) -> std::string {
  constexpr size_t Longest = 60;
  const std::string quoted = Quote(text.substr(0, Longest));
  return quoted.substr(1, quoted.size() - 2) + (text.size() > Longest ? "..." : "");
}

auto LineParser::TakeWord(std::string_view what) -> std::optional<Word> {
  if (line_.AtEnd()) {
    Reject(line_.column(), "{} is missing", what);
    return std::nullopt;
  }
  const int at = line_.column();
  auto word = line_.TakeWord();
  if (!word) {
    Reject(at, "quotes do not hold a whole word, lack their end, or have an unknown escape");
  }
  return word;
}

auto LineParser::TakeLiteral(std::string_view token) -> bool {
  const auto word = TakeWord(token);
  return word &&
         (word->text == token || Reject(word->column, "`{}` stands where `{}` belongs", Shortened(word->text), token));
}

auto LineParser::TakeTypeAndShape(DType& dtype, Dims& shape, bool is_of_seed) -> bool {
  const int at = column();
  const auto text = line_.TakeThrough(']');
  const size_t bracket = text ? text->find('[') : std::string_view::npos;
  if (bracket == std::string_view::npos || !fields_.Read(text->substr(0, bracket), dtype).empty() ||
      !ReadDims(text->substr(bracket), shape)) {
    return Reject(at, "a type and shape such as f32[512, 128] belongs here");
  }
  return dtype != DType::F16 || is_of_seed || Reject(at, "f16 is a type of `seed_tensor` alone");
}

auto LineParser::TakeView(BufferId& buffer, RankExpr& offset) -> bool {
  const auto word = TakeWord("buffer and offset");
  if (!word) {
    return false;
  }
  const std::string_view text = word->text;
  const size_t bracket = text.rfind('[');
  if (bracket == std::string_view::npos || !text.ends_with(']')) {
    return Reject(word->column, "`{}` stands where a buffer and an offset belong, such as $logits[1024]",
                  Shortened(text));
  }
  const Word of_buffer{.text = {}, .key_length = 0, .quoted = false, .column = word->column};
  const Word of_offset{
      .text = {}, .key_length = 0, .quoted = false, .column = word->column + static_cast<int>(bracket) + 1};
  return ReadText(of_buffer, text.substr(0, bracket), buffer) &&
         ReadText(of_offset, text.substr(bracket + 1, text.size() - bracket - 2), offset);
}

auto LineParser::TakePlacement(Placements& placement) -> bool {
  if (line_.Peek() != '{') {
    return true;
  }
  const int at = column();
  const auto braces = line_.TakeThrough('}');
  const auto read = braces ? PlacementsFromText(*braces) : ErrorOr<Placements>(Error{});
  if (!read) {
    return Reject(at, "a placement such as {{dp: shard(0)}} belongs here");
  }
  placement = *read;
  return true;
}

auto LineParser::ReadMesh(const Word& word, Mesh& mesh) -> bool {
  if (word.value() == "1") {
    return true;
  }
  AxisSet seen;
  bool has_hosts = false;
  for (const std::string_view part : SplitAt(word.value(), ",")) {
    const size_t colon = part.find(':');
    const auto axis = FromText<Axis>(part.substr(0, colon));
    const bool is_hosts = part.substr(0, colon) == "hosts";
    int64_t size = 0;
    if ((is_hosts ? has_hosts : !axis || seen.Has(*axis)) || colon == std::string_view::npos ||
        !fields_.Read(part.substr(colon + 1), size).empty() || size < 1) {
      return Reject(word.column, "`{}` stands where a mesh such as 1 or dp:2,tp:4 belongs", Shortened(word.value()));
    }
    if (is_hosts) {
      has_hosts = true;
      mesh.hosts = size;
    } else {
      seen = seen | AxisSet::Of(*axis);
      mesh.set_size(*axis, size);
    }
  }
  return true;
}

auto LineParser::TakeFields(LineFields& fields, bool opens) -> bool {
  while (!line_.AtEnd()) {
    const auto word = TakeWord("field");
    if (!word) {
      return false;
    }
    if (opens && word->text == "{" && line_.AtEnd()) {
      opens = false;
      break;
    }
    if (word->key_length == 0) {
      return Reject(word->column, "`{}` stands where `name=value` belongs", Shortened(word->text));
    }
    if (fields.words.size() == MaxFields) {
      return Reject(word->column, "more than {} fields", MaxFields);
    }
    fields.words.push_back(*word);
  }
  fields.used.assign(fields.words.size(), false);
  return !opens || Reject(line_.column(), "`{{` is missing");
}

auto LineParser::ExpectAllUsed(const LineFields& fields) -> bool {
  for (size_t i = 0; i < fields.words.size(); ++i) {
    if (!fields.used[i]) {
      return Reject(fields.words[i].column, "field `{}` is unknown or stands twice; fields here: {}",
                    Shortened(fields.words[i].key()), fmt::join(fields.names, ", "));
    }
  }
  return !error_;
}

auto LineParser::TakeOrigin(Origin& origin, PassKind* made_by) -> void {
  const std::string_view comment = line_.AtEnd() ? line_.Comment() : std::string_view{};
  Origin read;
  PassKind pass{};
  std::string_view pass_text = comment;
  if (comment.starts_with("recipe")) {
    const size_t comma = made_by == nullptr ? std::string_view::npos : comment.rfind(", ");
    pass_text = comma == std::string_view::npos ? std::string_view{} : comment.substr(comma + 2);
    LineReader words(comment.substr(0, comma));
    const auto origin = words.TakeWord();
    const std::string_view text = origin ? origin->text : std::string_view{};
    if (text != "recipe" && !(text.starts_with("recipe:") && fields_.Read(text.substr(7), read.line).empty())) {
      return;
    }
    if (!words.AtEnd()) {
      const auto key = words.TakeWord();
      if (!key || !words.AtEnd()) {
        return;
      }
      const auto known = OriginKey::Find(key->text);
      if (!known) {
        return;
      }
      read.key = *known;
    }
  }
  if (made_by != nullptr) {
    if (!fields_.Read(pass_text, pass).empty()) {
      return;
    }
    *made_by = pass;
  }
  origin = read;
}

}  // namespace shardc
