// What people are told of processes that are missing in a meeting, or that were started with something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/meet/compare_facts.h"
#include "runtime/meet/meeting_texts.h"
#include "runtime/meet/waiting_text.h"

namespace shardc {
namespace {

auto FourOnTwoHosts() -> LaunchPlace {
  LaunchPlace place;
  place.num_processes = 4;
  place.local_num_processes = 2;
  return place;
}

TEST(MissingProcesses, HaveNotComeBeforeAllHaveMet) {
  EXPECT_EQ(WaitingText(FourOnTwoHosts(), {2, 3}, {}, {6}),
            "waiting for 1 of 2 hosts (host 1): processes 2, 3 of 4 have not come for 6 s");
  EXPECT_EQ(MissingText(FourOnTwoHosts(), {3}, {}, {600}), "process 3 of 4 (host 1) has not come within 600 s");
}

TEST(MissingProcesses, ShellOfSlurmHasHelp) {
  LaunchPlace place = FourOnTwoHosts();
  place.launcher = "Slurm";
  const auto help = testing::HasSubstr("have not come for 6 s; in a shell of `srun --pty`, unset SLURM_STEP_ID");
  EXPECT_THAT(WaitingText(place, {1, 2, 3}, {}, {6}), help);
  EXPECT_THAT(WaitingText(place, {2, 3}, {}, {6}), testing::Not(help));
}

TEST(MissingProcesses, HaveNotAnsweredAfterwards) {
  const std::vector<std::string> hosts{"node0", "node0", "node1", "node1"};
  EXPECT_EQ(WaitingText(FourOnTwoHosts(), {1, 2}, hosts, {6}),
            "waiting for 2 of 2 hosts (node0, node1): processes 1, 2 of 4 have not answered for 6 s");
  EXPECT_EQ(MissingText(FourOnTwoHosts(), {2}, hosts, {600}), "process 2 of 4 (node1) has not answered within 600 s");
}

/// Four processes on two hosts, with these facts.
auto With(const std::vector<Facts>& facts) -> std::vector<Introduction> {
  std::vector<Introduction> all;
  for (size_t i = 0; i < facts.size(); ++i) {
    all.push_back({.host = fmt::format("node{}", i / 2), .facts = facts[i], .code = 0, .error = ""});
  }
  return all;
}

auto DifferenceOf(const std::vector<Facts>& facts) -> std::string {
  const Status equal = CheckFactsAreEqual(With(facts));
  return equal ? "" : equal.error().message;
}

// The form in which processes of other versions read them.
TEST(MeetingTexts, KeepTheirForm) {
  const World world{.num_processes = 4, .local_num_processes = 2, .command = "shardc run"};
  EXPECT_EQ(world.ToText(), "1 41 210 shardc run");
  EXPECT_EQ(World::FromText(world.ToText()).command, "shardc run");
  const Introduction process{.host = "a", .facts = {{"recipe", "r.toml"}, {"plan", ""}}, .code = 3, .error = "no"};
  EXPECT_EQ(process.ToText(), "1 a1 32 no6 recipe6 r.toml4 plan0 ");
  const Introduction read = Introduction::FromText(process.ToText());
  EXPECT_EQ(read.facts, process.facts);
  EXPECT_EQ(read.code, 3);
  EXPECT_EQ(ToldOutcome::FromText("1 74 lost3 b.c").host, "b.c");
}

TEST(FactsDiffer, NotIfAllAreEqual) {
  const Facts facts{{"--set", "train.steps=7"}, {"hash of the plan", "a"}};
  EXPECT_EQ(DifferenceOf({facts, facts, facts, facts}), "");
}

TEST(FactsDiffer, EachValueIsToldOnceWithTheProcessesThatHaveIt) {
  const Facts first{{"digest of the recipe", "a"}, {"--set", "x"}, {"hash of the plan", "p"}};
  const Facts other{{"digest of the recipe", "b"}, {"--set", ""}, {"hash of the plan", "q"}};
  EXPECT_EQ(DifferenceOf({first, other, first, other}),
            "processes of one launch differ; digest of the recipe: a in process 0 (node0), b in 2 processes, the first "
            "of which is process 1 (node0); --set: x in process 0 (node0), nothing in 2 processes, the first of which "
            "is process 1 (node0)");
}

TEST(FactsDiffer, ThePlanIsNamedWhereNothingElseDiffers) {
  const Facts first{{"--set", "x"}, {"hash of the plan", "p"}};
  const Facts other{{"--set", "x"}, {"hash of the plan", "q"}};
  EXPECT_EQ(DifferenceOf({first, first, first, other}),
            "processes of one launch differ; hash of the plan: p in process 0 (node0), q in process 3 (node1)");
}

TEST(FactsDiffer, ThreeAreShown) {
  const Facts first{{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}, {"hash of the plan", "1"}};
  const Facts other{{"a", "2"}, {"b", "2"}, {"c", "2"}, {"d", "2"}, {"hash of the plan", "2"}};
  const std::string text = DifferenceOf({first, other});
  EXPECT_THAT(text, testing::HasSubstr("c: 1 in process 0 (node0), 2 in process 1 (node0)"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("d: ")));
}

}  // namespace
}  // namespace shardc
