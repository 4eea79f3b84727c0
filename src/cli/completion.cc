#include "base/completion.h"

#include "cli/verbs.h"

namespace edl::cli {

int ShowCompletion(Platform& platform, const FlagValues& flags) {
  std::vector<CompletedCommand> commands;
  for (const Verb& verb : Verbs()) {
    commands.push_back({.name = verb.name,
                        .summary = verb.summary,
                        .flags = verb.flags->specs().empty() ? nullptr : verb.flags,
                        .words = verb.words,
                        .words_from = verb.takes_job
                                          ? "ls \"${ELASTICDL_HOME:-$HOME/.elasticdl}/jobs\" "
                                            "2>/dev/null"
                                          : ""});
  }
  const std::string& shell = flags.arguments().front();
  if (shell == "bash") {
    platform.out << BashCompletion("elasticdl", commands);
  } else if (shell == "zsh") {
    platform.out << ZshCompletion("elasticdl", commands);
  } else {
    return Fail(platform, InvalidArgument("no completion for '{}'; choose bash or zsh", shell));
  }
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
