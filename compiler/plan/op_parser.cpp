#include "compiler/plan/op_parser.h"

#include <array>

#include "compiler/plan/loops.h"

namespace shardc {

static auto EmptyBody(OpKind kind) -> OpBody {
  static const std::array<OpBody, NumOpKinds> bodies{
#define OP(Type, mnemonic, differentiable, fields, doc) OpBody{op::Type{}},
#include "schemas/ops.def"
  };
  return bodies[static_cast<size_t>(kind)];
}

auto OpParser::ParseKind(const Word& first, Op& op) -> bool {
  if (first.text == "}") {
    op.body = op::EndRepeat{};
    return true;
  }
  const auto stream = FromText<Stream>(first.text);
  if (!stream) {
    return in_.Reject(first.column, "`{}` stands where a stream belongs: {}", LineParser::Shortened(first.text),
                      fmt::join(EnumNames<Stream>::names, ", "));
  }
  const auto mnemonic = in_.TakeWord("op");
  if (!mnemonic) {
    return false;
  }
  const auto kind = FromText<OpKind>(mnemonic->text);
  if (!kind || LoopEdgeOf(EmptyBody(*kind)) == LoopEdge::End) {
    return in_.Reject(mnemonic->column, "`{}` is not an op", LineParser::Shortened(mnemonic->text));
  }
  op.stream = *stream;
  op.body = EmptyBody(*kind);
  return true;
}

auto OpParser::ParseLine(const Word& first) -> bool {
  if (first.text == "}" && depth_ == 0) {
    section_ = nullptr;
    return in_.ExpectEnd();
  }
  Op op;
  LineParser::LineFields fields{in_};
  if (!ParseKind(first, op)) {
    return false;
  }
  const bool opens = LoopEdgeOf(op) == LoopEdge::Begin;
  const bool closes = LoopEdgeOf(op) == LoopEdge::End;
  if (!in_.TakeFields(fields, opens)) {
    return false;
  }
  if (closes) {
    fields.Default("stream", op.stream, Stream::Compute);
  }
  VisitBody(op.body, [&](auto& body) { VisitFields(body, RowFields<LineParser::LineFields>{fields}); });
  VisitLine(op, fields);
  if (!in_.ExpectAllUsed(fields)) {
    return false;
  }
  depth_ += (opens ? 1 : 0) - (closes ? 1 : 0);
  in_.TakeOrigin(op.origin, &op.made_by);
  section_->ops.push_back(std::move(op));
  return true;
}

}  // namespace shardc
