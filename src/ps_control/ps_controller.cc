#include "ps_control/ps_controller.h"

#include <utility>

#include "base/host_port.h"

namespace edl::ps_control {

Result<std::unique_ptr<PsController>> PsController::Start(const Options& options,
                                                          AddressOf address_of,
                                                          const Answers& answers,
                                                          const Clock& clock) {
  EDL_ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Make(clock));
  return std::unique_ptr<PsController>(
      new PsController(std::move(loop), options, std::move(address_of), answers, clock));
}

PsController::PsController(std::unique_ptr<EventLoop> loop, const Options& options,
                           AddressOf address_of, const Answers& answers, const Clock& clock)
    : token_(options.token), address_of_(std::move(address_of)), loop_(std::move(loop)) {
  const LinkTo link_to = [this](int index) { return LinkOf(index); };
  const Post post = [this](std::function<void()> work) { PostToCore(std::move(work)); };
  saves_ = std::make_unique<OperationChannel>(save_thread_, link_to, post, clock);
  restores_ = std::make_unique<OperationChannel>(restore_thread_, link_to, post, clock);
  PsControllerCore::Channels channels{.watches = {}, .restores = *restores_, .saves = *saves_};
  for (int index = 0; index < options.servers; ++index) {
    watches_.push_back(std::make_unique<WatchChannel>(link_to, post, clock));
    channels.watches.push_back(watches_.back().get());
  }
  store_ = std::make_unique<FolderStore>(options.core.folder, save_thread_, restore_thread_, post);
  loop_.Run([&] {
    core_ = std::make_unique<PsControllerCore>(
        options.core, channels, *store_, answers,
        [this](Duration delay, std::function<void()> call) {
          loop_.loop().CallAfter(delay, [this, call = std::move(call)] {
            if (core_ != nullptr) call();
          });
        },
        clock);
  });
}

PsController::~PsController() {
  // From here on nothing that threads post reaches the core.
  loop_.Run([this] { core_.reset(); });
  // They cancel what their threads wait for, all at once; the threads are joined afterwards.
  saves_->Reset();
  restores_->Reset();
}

void PsController::PostToCore(std::function<void()> work) {
  loop_.loop().Post([this, work = std::move(work)] {
    if (core_ != nullptr) work();
  });
}

void PsController::Do(std::vector<master::ServerCommand> commands) {
  if (commands.empty()) return;
  PostToCore([this, commands = std::move(commands)] { core_->Do(commands); });
}

Result<ps_client::LinkOptions> PsController::LinkOf(int index) const {
  EDL_ASSIGN_OR_RETURN(const std::string address, address_of_(index));
  EDL_ASSIGN_OR_RETURN(HostPort server, ParseHostPort(address));
  ps_client::LinkOptions to;
  to.host = std::move(server.host);
  to.port = server.port;
  to.token = token_;
  to.caller = "the master";
  return to;
}

}  // namespace edl::ps_control
