// Texts that are no plan: each is refused with the place of its first fault.
#include <gtest/gtest.h>

#include "compiler/plan/text.h"

namespace shardc {
namespace {

struct Refused {
  const char* text;
  const char* message;
};

constexpr const char* First = "plan version=2 mesh=dp:2 device=cpu kernels=fused\n";

const Refused RefusedTexts[] = {
    {"", "1:1: the text has 0 bytes"},
    {"\n// nothing\n", "2:1: the text ends before the line `plan version=...`"},
    {"\n// late\n\nplan mesh=1 device=cpu kernels=fused version=1\n",
     "4:1: the plan has format version 1, this program reads version 2"},
    {"// late\ngroup g weight_decay=0 lr_scale=1\n", "2:1: `group` stands where `plan` belongs"},
    {"recipe = 1\n", "1:1: `recipe` stands where `plan` belongs"},
    {"plan mesh=1 device=cpu kernels=fused\n", "1:37: no field `version`"},
    {"plan version=1 mesh=1 device=cpu kernels=fused\n",
     "1:1: the plan has format version 1, this program reads version 2"},
    {"plan version=2 mesh=pp:2 device=cpu kernels=fused\n", "1:16: `pp:2` stands where a mesh"},
    {"plan version=2 mesh=dp:2,dp:2 device=cpu kernels=fused\n", "1:16: `dp:2,dp:2` stands where a mesh"},
    {"plan version=2 mesh=dp:0 device=cpu kernels=fused\n", "1:16: `dp:0` stands where a mesh"},
    {"plan version=2 mesh=dp:4,hosts:2,hosts:2 device=cpu kernels=fused\n",
     "1:16: `dp:4,hosts:2,hosts:2` stands where a mesh"},
    {"plan version=2 mesh=dp:4,hosts:1,hosts:2 device=cpu kernels=fused\n",
     "1:16: `dp:4,hosts:1,hosts:2` stands where a mesh"},
    {"plan version=2 mesh=dp:2,hosts:0 device=cpu kernels=fused\n", "1:16: `dp:2,hosts:0` stands where a mesh"},
    {"plan version=2 mesh=1 device=cpu kernels=fused extra=1\n", "1:48: field `extra` is unknown"},
    {"plan version=2 mesh=1 device=cpu kernels=fused mesh=1\n", "1:48: field `mesh` is unknown or stands twice"},
    {"+model fam(ily=llama\n", "2:7: `fam(ily` is not a name"},
    {"+model family=llama family=llama\n", "2:20: field `family` stands twice"},
    {"+bufer $x transient bytes=1 category=data\n", "2:1: `bufer` does not begin a line of a plan"},
    {"+buffer $x transient bytes=1 category=data\nbuffer $x host bytes=2 category=data\n",
     "3:8: `$x` is declared above already"},
    {"+buffer x transient bytes=1 category=data\n", "2:8: `x` stands where a name that begins with $ belongs"},
    {"+scalar lr state\n", "2:8: `lr` stands where a name that begins with @ belongs"},
    {"+buffer $x heap bytes=1 category=data\n", "2:11: `heap` stands where one of persistent, transient,"},
    {"+buffer $x transient bytes=9223372036854775808 category=data\n",
     "2:27: `9223372036854775808` stands where an integer of 64 bits belongs"},
    {"+buffer $x transient bytes=1\n", "2:28: no field `category`"},
    {"+buffer \"$x transient bytes=1 category=data\n", "2:8: quotes do not hold a whole word"},
    {"+buffer \"$\\q\" transient bytes=1 category=data\n", "2:8: quotes do not hold a whole word"},
    {"+value x = $b[0] f32[1]\n", "2:11: `$b` stands where a buffer declared above, such as $logits belongs"},
    {"+value x = $b(0) f32[1]\n", "2:11: `$b(0)` stands where a buffer and an offset belong, such as $logits[1024]"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[99999999999999999] f32[1]\n",
     "3:14: `99999999999999999` stands where a rank expression"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[1**dp] f32[1]\n",
     "3:14: `1**dp` stands where a rank expression"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1, x]\n", "3:17: a type and shape such as"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1, 1, 1, 1, 1, 1, 1, 1, 1]\n",
     "3:17: a type and shape such as"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] {dp: shard(9)}\n", "3:24: a placement such as"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] {dp: shard(18446744073709551615)}\n",
     "3:24: a placement such as"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] {dp: shard(-0)}\n", "3:24: a placement such as"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] {dp: shard()}\n", "3:24: a placement such as"},
    {"\xef\xbb\xbfplan version=2\n", "1:1: the text begins with a byte order mark"},
    {"plan version=2 mesh=1 device=cpu kernels=fused\r\n", "1:47: the line ends in CRLF"},
    {"+group g weight_decay=0 lr_scale=1\r\n", "2:34: the line ends in CRLF"},
    {"+set \"caf\xc3\xa9\"\n", "2:9: a byte 0xc3 stands where printable ASCII belongs; in quotes it is written \\xc3"},
    {"+// caf\xc3\xa9\n", "2:7: a byte 0xc3 stands where printable ASCII belongs"},
    {"+model fam\xc3\xafly=llama\n", "2:10: a byte 0xc3 stands where printable ASCII belongs"},
    {"+group g\tweight_decay=0 lr_scale=1\n", "2:8: a byte 0x09 stands where printable ASCII belongs"},
    {"+set \"\x7f\"\n", "2:6: a byte 0x7f stands where printable ASCII belongs"},
    {"+recipe train.steps \"1\" 2 3\n", "2:26: nothing more belongs on this line"},
    {"+recipe train.steps \"1\" 0\n", "2:24: a line of the recipe is a number above 0"},
    {"+recipe a 1\nrecipe b 2\nrecipe a 3\n", "4:8: the key `a` stands twice"},
    {"+recipe a 1\nrecipe a 1\n", "3:8: the key `a` stands twice"},
    {"+recipe a \"\"\nrecipe a 1\n", "3:8: the key `a` stands twice"},
    {"+segment begin=0 end=1\n", "2:1: a segment before the first sub_vector"},
    {"+events 1\n", "2:1: `events` does not begin a line of a plan"},
    {"+value x#2 = $b[0] f32[1]\n", "2:13: `$b` stands where a buffer declared above"},
    {"+slices v shard=x\n", "2:8: `v` stands where a sub-vector declared above belongs"},
    {"+sub_vector v compute=f32 trainable=true length=0\nslices v shard=x\n",
     "3:16: `x` stands where a value declared above, such as logits belongs"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1]\n"
     "sub_vector v compute=f32 trainable=true length=0\nslices v shard=x\nslices v exp_avg=x\n",
     "6:8: the slices of this sub-vector stand above already"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] role=parameter(w)\n",
     "3:29: `parameter(w)` stands where the role of a parameter declared above belongs"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] role=vector(v)\n",
     "3:29: `vector(v)` stands where the role of a sub-vector declared above belongs"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] role=gradient()\n",
     "3:29: `gradient()` stands where the role of a parameter declared above belongs"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] role=vector\n",
     "3:29: `vector` stands where a role, such as parameter(NAME), gradient(NAME), gradient or"},
    {"+buffer $b host bytes=4 category=data\nvalue x = $b[0] f32[1] odd\n",
     "3:24: `odd` stands where `name=value` belongs"},
    {"+section step {\n}\nsection step {\n}\n", "4:1: second `section step` line"},
    {"+section step {\n", "2:1: the text ends inside a section"},
    {"+section step {\n  compute repeat count=2 {\n}\n", "4:1: the text ends inside a section"},
    {"+section step {\n  compute repeat count=2\n}\n", "3:25: `{` is missing"},
    {"+section step {\n  gpu repeat count=2 {\n}\n", "3:3: `gpu` stands where a stream belongs: compute,"},
    {"+section step {\n  compute conv x=y\n}\n", "3:11: `conv` is not an op"},
    {"+section step {\n  compute end_repeat\n}\n", "3:11: `end_repeat` is not an op"},
    {"+section step {\n  compute fill value=nan\n}\n", "3:22: `nan` stands where a finite number belongs"},
    {"+section step {\n  compute fill value=1e999\n}\n", "3:22: `1e999` stands where a finite number belongs"},
    {"+section step {\n  compute fill\n}\n", "3:15: no field `value`"},
    {"+section step {\n  compute fill value=1 vlaue=1\n}\n",
     "3:24: field `vlaue` is unknown or stands twice; fields here: out, value, layer, phase, when, waits, "
     "signals"},
    {"+section step {\n  compute fill value=1 layer=-1\n}\n",
     "3:24: field `layer` has the value of plans without it; leave it out"},
    {"+section step {\n  compute fill out=%0 value=1\n}\n",
     "3:20: `%0` stands where a value declared above, such as logits belongs"},
    {"+section step {\n  compute increment scalar=@lr\n}\n", "3:28: `@lr` stands where a scalar declared above"},
    {"+section step {\n  compute save_begin waits=e0,\n}\n", "3:28: `e0,` stands where the name of an event belongs"},
    {"+section step {\n} trailing\n", "3:3: nothing more belongs on this line"},
};

TEST(PlanText, WhatIsNoPlanIsRefusedWithItsPlace) {
  for (const Refused& refused : RefusedTexts) {
    const std::string text = refused.text[0] == '+' ? std::string(First) + (refused.text + 1) : refused.text;
    SCOPED_TRACE(text);
    const auto plan = ParsePlan(text);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().code, ExitCode::RecipeRejected);
    EXPECT_EQ(plan.error().message.substr(0, std::string_view(refused.message).size()), refused.message);
  }
}

TEST(PlanText, LongLinesAndTextsAreRefused) {
  EXPECT_FALSE(ParsePlan(std::string(First) + "set \"" + std::string((2 << 20) + 1, 'x') + "\"\n").ok());
  EXPECT_FALSE(ParsePlan(std::string(MaxPlanBytes + 1, '\n')).ok());
  EXPECT_TRUE(ParsePlan(std::string(First) + "set \"" + std::string(60'000, 'x') + "\"\n").ok());
}

TEST(PlanText, AContinuedLineOfTheRecipeEndsInTheSameWords) {
  const std::string full = std::string(First) + "recipe a " + std::string(8192, '1');
  for (const char* ends : {" 3\nrecipe a 1\n", "\nrecipe a 1 assumed\n", " 3\nrecipe a 1 4\n"}) {
    const auto plan = ParsePlan(full + ends);
    ASSERT_FALSE(plan.ok()) << ends;
    EXPECT_EQ(plan.error().message, "3:8: the line continues `a`, and the two end in different words") << ends;
  }
}

}  // namespace
}  // namespace shardc
