#include "cli/print_result.h"

#include "base/json.h"
namespace edl::cli {

int PrintResult(Platform& platform, const FlagValues& flags, const nlohmann::ordered_json& fields,
                const std::string& text) {
  const bool json = flags.String("output") == "json";
  platform.out << (json ? Dump(fields, 2) : text) << "\n";
  platform.out.flush();
  return kExitOk;
}

}  // namespace edl::cli
