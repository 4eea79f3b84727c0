#include <algorithm>

#include "base/flag_help.h"
#include "cli/format.h"
#include "cli/verbs.h"
#include "job/train_flags.h"

namespace edl::cli {
namespace {

// What the published client's parser takes in another way.
constexpr std::string_view kDifferences =
    R"(
## Differences from the published client

| what was typed | what happens here |
|---|---|
| A flag that is given twice | warning, the last value counts, as there |
| Booleans `1`, `on`, `0`, `off` | accepted: their meaning is clear |
| `--envs=A` | remark, `A` gets an empty value, as there |
| `--envs=A=1,A=2` | remark, the last value counts, as there |
| `--envs=A=1,B` | `A` is `1,B`: a value may hold commas |
| `--num_workers=0` | accepted with `--need_tf_config`, where the chief trains; otherwise refused: nobody would train |
| `--job_name` with capitals, `_`, `.` or more than 39 characters | refused with a name that works: Kubernetes would refuse the pods later |
| `--distribution_strategy=AllreduceStrategy` | refused: this version has no all-reduce |
| An unknown flag | refused with the nearest names; there it is dropped silently |
)";

}  // namespace

std::string ProgramHelp(const std::string& first_word) {
  std::vector<std::vector<std::string>> rows;
  for (const Verb& verb : Verbs()) {
    if (!first_word.empty() && !verb.name.starts_with(first_word + " ")) continue;
    rows.push_back({"  " + verb.name + (verb.takes_job ? " " + verb.arguments : ""), verb.summary});
  }
  return "ElasticDL trains models with workers that come and go.\n\n"
         "usage: elasticdl VERB [arguments]\n\n" +
         Columns(rows) +
         (first_word.empty()
              ? "\nelasticdl ps runs a parameter server by itself: elasticdl ps --help.\n"
              : "") +
         "\nelasticdl VERB --help shows a verb's flags. Jobs of this machine are kept under "
         "$ELASTICDL_HOME\n(default ~/.elasticdl).\n";
}

std::string VerbHelp(const Verb& verb) {
  std::string out =
      fmt::format("{}\n\nusage: elasticdl {} {}\n", verb.summary, verb.name, verb.arguments);
  const std::string flags = FlagHelp(*verb.flags);
  if (flags.empty()) return out;
  out += "\n" + flags;
  if (verb.flags == &job::TrainFlags() || verb.flags == &CheckFlags()) {
    out += fmt::format(
        "\nFlags marked [{}] have an effect there only, those marked [{}] only without "
        "--job_command\n(those of checkpoints and synchronous rounds also with "
        "--ps_program=elasticdl).\nA flag's name may be abbreviated as long as it fits one flag "
        "alone.\n",
        job::kKubernetesScope, job::kModelScope);
  }
  return out;
}

std::string FlagsPage() {
  return fmt::format(
             "# Flags of `elasticdl train`\n\n"
             "Made by `elasticdl help --markdown`; change `src/job/train_flags.cc` instead.\n\n"
             "`--flag value` and `--flag=value` mean the same; names may be abbreviated as long as "
             "they fit one flag alone\n(`--num_ps`); a bare boolean is the opposite of its "
             "default. "
             "`-f job.yaml` takes the same names from a file.\n"
             "Flags marked *[{}]* have an effect there only, those marked *[{}]* only without "
             "`--job_command`\n(those of checkpoints and synchronous rounds also with "
             "`--ps_program=elasticdl`).\n",
             job::kKubernetesScope, job::kModelScope) +
         FlagMarkdown(job::TrainFlags()) + std::string(kDifferences);
}

int ShowHelp(Platform& platform, const FlagValues& flags) {
  if (flags.Bool("markdown")) {
    platform.out << FlagsPage();
  } else if (flags.arguments().empty()) {
    platform.out << ProgramHelp();
  } else {
    const Result<const Verb*> verb = FindVerb(flags.arguments());
    if (!verb.ok()) return Fail(platform, verb.status());
    platform.out << VerbHelp(**verb);
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
