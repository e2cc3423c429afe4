// What check --data reports of documents, and what data show prints of a sample.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/edited.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;

class DocumentsOfFiles : public testing::Test {
 protected:
  DocumentsOfFiles() {
    // Documents of 3, 5 and 2 bytes, and one of 11, each with 0 at its end.
    WriteText(folder_ / "tokens.bin", std::string("\1\2\0\3\4\5\6\0\7\0\1\1\1\1\1\1\1\1\1\1\0", 21));
    recipe_ = WriteIn(folder_, "packed.toml",
                      Edited(SoundRecipe(), {{"[data]\n",
                                              "[data]\nformat = \"u8\"\norder = \"sequential\"\ndocuments = \"split\"\n"
                                              "document_end = 0\npack = \"best-fit\"\n"}}));
  }
  auto Ask(std::vector<std::string> arguments) -> Finished { return RunProgram(Shardc(), arguments); }

  TemporaryFolder folder_;
  std::string recipe_;
};

TEST_F(DocumentsOfFiles, CheckCountsAndJudges) {
  const Finished refused = Ask({"check", recipe_, "--data"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("its document 3, of ids 10 to 20, has 11 tokens, and a sample 8 (`model.seq`)"));
  const Finished lost = Ask({"check", recipe_, "--data", "--set", "data.too_long=drop"});
  EXPECT_EQ(lost.exit_code, 3);
  EXPECT_THAT(lost.err, HasSubstr("1 of 4 documents with targets (25 %) lose all of them"));
  const Finished cut = Ask({"check", recipe_, "--data", "--set", "data.too_long=cut"});
  EXPECT_EQ(cut.exit_code, 0) << cut.err;
  EXPECT_THAT(
      cut.err,
      HasSubstr("documents: 4 documents of 2 to 11 tokens (mean 5.2); 3 samples in an epoch (3.33 epochs in the "
                "run), with 4.7 targets each on average; 25 % padding; longer than a sample: 1 cut, 0 dropped, "
                "0 split, 3 tokens lost; attention takes 55.6 % of what it would without documents\n"
                "documents: targets per step: "));
  // Tokens do not say how many samples are packed of them.
  EXPECT_THAT(Ask({"check", recipe_, "--set", "train.steps=100"}).err, Not(HasSubstr(" epochs")));
}

TEST_F(DocumentsOfFiles, PlanHasRowsOfEvalFiles) {
  const auto explain = [&](const std::string& too_long) {
    return Ask({"plan", recipe_, "--explain", "--set", "data.too_long=" + too_long, "--set",
                "data.eval=[\"tokens.bin\"]", "--set", "train.eval_every=5"});
  };
  const Finished split = explain("split");
  EXPECT_EQ(split.exit_code, 0) << split.err;
  EXPECT_THAT(split.out, HasSubstr("  evaluation: 21 tokens in files of their own, 3 samples\n"));
  EXPECT_THAT(explain("drop").out, HasSubstr("2 samples\n"));
  const Finished refused = explain("refuse");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("has 11 tokens, and a sample 8 (`model.seq`)"));
  EXPECT_THAT(refused.err, HasSubstr("[eval-files]"));
}

TEST_F(DocumentsOfFiles, EndsOfEvalFilesAreAskedForOnce) {
  WriteText(recipe_, Edited(ReadText(recipe_), {{"document_end = 0\n", ""},
                                                {"tokens = [\"tokens.bin\"]\n", "eval = [\"tokens.bin\"]\n"}}) +
                         "\n[[data.source]]\nname = \"a\"\ntokens = [\"tokens.bin\"]\ndocument_end = 0\nweight = 1\n");
  const Finished refused = Ask({"check", recipe_});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("nothing says where the documents of the files of `eval` end"));
  EXPECT_THAT(refused.err, Not(HasSubstr("[eval-files]")));
}

TEST_F(DocumentsOfFiles, JsonReportHasFacts) {
  const auto explain = [&](const std::vector<std::string>& keys) {
    std::vector<std::string> command{"plan", recipe_, "--explain", "--format", "json"};
    command.insert(command.end(), keys.begin(), keys.end());
    const Finished planned = Ask(command);
    EXPECT_EQ(planned.exit_code, 0) << planned.err;
    return nlohmann::json::parse(planned.out).at("data");
  };
  const auto cut =
      explain({"--set", "data.too_long=cut", "--set", "data.eval=[\"tokens.bin\"]", "--set", "train.eval_every=5"})
          .at("documents");
  const auto expected = nlohmann::json::parse(R"({"name": "", "documents": 4, "empty": 0, "shortest": 2, "longest": 11,
      "samples": 3, "targets": 14, "padding": 0.25, "cut": 1, "dropped": 0, "split": 0, "lost_tokens": 3,
      "with_targets": 4, "lost": 0})");
  ASSERT_EQ(cut.at("sources").size(), 1);
  nlohmann::json source = cut.at("sources").front();
  EXPECT_NEAR(source.at("attention").get<double>(), 60.0 / 108, 1e-12);
  nlohmann::json as_eval = source;
  as_eval.erase("name");
  EXPECT_EQ(cut.at("eval"), as_eval);
  source.erase("attention");
  EXPECT_EQ(source, expected);
  EXPECT_GE(cut.at("targets_per_step").at("steps"), 1);
  const auto split = explain({"--set", "data.too_long=split"});
  EXPECT_FALSE(split.at("documents").contains("eval"));
  EXPECT_EQ(split.at("documents").at("sources").front().at("split"), 1);
  EXPECT_EQ(split.at("sources").front().at("epoch_samples"), split.at("documents").at("sources").front().at("samples"));
}

TEST_F(DocumentsOfFiles, MadeSamplesAreNotPacked) {
  const Finished planned =
      Ask({"plan", recipe_, "--unset", "data.tokens", "--unset", "data.format", "--set", "data.too_long=cut", "--set",
           "data.synthetic=uniform", "--set", "data.eval_tokens=100", "--set", "train.eval_every=5"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.err, HasSubstr("`synthetic` makes samples that are one document each"));
}

TEST_F(DocumentsOfFiles, CheckWarnsOfUndeclaredEnd) {
  std::string text;
  for (int document = 0; document < 20; ++document) {
    text += std::string(20, static_cast<char>(3 + document)) + '\0';
  }
  WriteText(folder_ / "tokens.bin", text);
  const std::string plain =
      WriteIn(folder_, "plain.toml", Edited(SoundRecipe(), {{"[data]\n", "[data]\nformat = \"u8\"\n"}}));
  const Finished checked = Ask({"check", plain, "--data"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.err, HasSubstr("warning: id 0 looks like the end of documents"));
  EXPECT_THAT(Ask({"check", plain}).err, Not(HasSubstr("looks like")));
  const Finished declared = Ask({"check", recipe_, "--data", "--set", "model.seq=32"});
  EXPECT_THAT(declared.err, Not(HasSubstr("looks like")));
}

TEST_F(DocumentsOfFiles, ShowPrintsSample) {
  const Finished shown = Ask({"data", "show", recipe_, "--sample", "0", "--set", "data.too_long=split"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out,
            "sample 0 of the train split: 8 places, 6 targets, 2 documents (each place of padding is one)\n\n"
            "  place  document  position  token  target\n"
            "  0             0         0      1       2\n"
            "  1             0         1      2       0\n"
            "  2             0         2      0  -\n"
            "  --     --        --        --     --\n"
            "  3             1         0      3       4\n"
            "  4             1         1      4       5\n"
            "  5             1         2      5       6\n"
            "  6             1         3      6       0\n"
            "  7             1         4      0  -\n");
  // The vocabulary of a tokenizer beside the ids.
  WriteText(folder_ / "tokenizer.json",
            R"({"model": {"vocab": {"a": 1, "b": 2}}, "added_tokens": [{"id": 0, "content": "<end>"}]})");
  const Finished named = Ask({"data", "show", recipe_, "--sample", "0", "--set", "data.too_long=split", "--tokenizer",
                              folder_ / "tokenizer.json"});
  EXPECT_THAT(named.out, HasSubstr("  1             0         1      2  b           0\n"
                                   "  2             0         2      0  <end>  -\n"));
  // Samples of a stream have no documents.
  const Finished stream = Ask({"data", "show", recipe_, "--sample", "1", "--unset", "data.documents", "--unset",
                               "data.pack", "--unset", "data.document_end"});
  EXPECT_EQ(stream.exit_code, 0) << stream.err;
  EXPECT_THAT(stream.out, HasSubstr("sample 1 of the train split: 8 places, 8 targets\n\n  place  token  target\n"));
}

TEST_F(DocumentsOfFiles, ShowNamesSourceOfMixture) {
  WriteText(folder_ / "high.bin", std::string(40, '\11') + '\0');
  WriteText(folder_ / "low.bin", std::string(40, '\3') + '\0');
  const std::string mixed =
      WriteIn(folder_, "mixed.toml",
              Edited(ReadText(recipe_),
                     {{"tokens = [\"tokens.bin\"]\n", ""},
                      {"document_end = 0\n", ""},
                      {"pack = \"best-fit\"\n",
                       "[[data.source]]\nname = \"low\"\ntokens = [\"low.bin\"]\nweight = 1\ndocument_end = 0\n"
                       "[[data.source]]\nname = \"high\"\ntokens = [\"high.bin\"]\nweight = 1\ndocument_end = 0\n"}}));
  std::set<std::string> named;
  for (const std::string sample : {"0", "1", "2", "3"}) {
    const Finished shown = Ask({"data", "show", mixed, "--sample", sample});
    ASSERT_EQ(shown.exit_code, 0) << shown.err;
    const bool is_low = shown.out.find("      3       3\n") != std::string::npos;
    const std::string source = is_low ? "low" : "high";
    EXPECT_THAT(shown.out, HasSubstr("sample " + sample + " of the train split, from source " + source + ": 8 places"));
    named.insert(source);
  }
  EXPECT_EQ(named.size(), 2);
  // The held-out samples of a mixture are those of its sources, one after another.
  const Finished held_out = Ask({"data", "show", mixed, "--sample", "1", "--split", "eval", "--set",
                                 "data.eval_tokens=9", "--set", "train.eval_every=5"});
  EXPECT_THAT(held_out.out, HasSubstr("sample 1 of the eval split, from source high: 8 places"));
}

TEST_F(DocumentsOfFiles, ShowRefusesWhatIsNotThere) {
  EXPECT_EQ(Ask({"data", "show", recipe_, "--sample", "x"}).exit_code, 2);
  EXPECT_EQ(Ask({"data", "list", recipe_, "--sample", "0"}).exit_code, 2);
  const Finished none =
      Ask({"data", "show", recipe_, "--sample", "0", "--split", "eval", "--set", "data.too_long=split"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("set data.eval or data.eval_tokens"));
}

}  // namespace
}  // namespace shardc
