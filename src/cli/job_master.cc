#include "cli/job_master.h"

#include <string>
#include <utility>

namespace edl::cli {

Result<std::unique_ptr<client::MasterClient>> ClientOfMaster(const JobFolder& folder) {
  EDL_ASSIGN_OR_RETURN(const std::string address, folder.ReadAddress());
  EDL_ASSIGN_OR_RETURN(std::string token, folder.ReadToken());
  return std::make_unique<client::MasterClient>(address, std::move(token));
}

}  // namespace edl::cli
