#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/simulated_servers.h"
#include "simulation/simulated_storage.h"
#include "simulation/simulation.h"
#include "simulation/simulation_plan.h"
#include "simulation/virtual_time.h"

#include "base/clock.h"
#include "base/status.h"
#include "ps_control/server_channel.h"
#include "wire/messages.h"

namespace edl::master {

// The network between the master and its parameter servers, and the reaction of their lanes to the
// messages of the master. Messages may be delayed, lost or repeated. A message that was sent
// arrives even if the master has crashed since.
//
// Confined to the thread that runs the simulation.
class SimulatedNetwork {
 public:
  // A request of a channel. Shared by the channel and the events of the request.
  struct Request {
    std::shared_ptr<const bool> master_alive;
    bool is_open = true;  // its connections are open, and `finish` was not called
    std::function<void(Status)> finish;
    std::vector<ps_client::LaneAnswer> answers;
    std::vector<SimulatedServers::ServerPtr> unanswered;  // once for each lane
  };
  using RequestPtr = std::shared_ptr<Request>;

  // All references outlive this object.
  SimulatedNetwork(const Plan& plan, Mutant mutant, SimulatedServers& servers,
                   SimulatedStorage& storage, VirtualTime& time, SimulationResult& sums)
      : plan_(plan),
        mutant_(mutant),
        servers_(servers),
        storage_(storage),
        time_(time),
        sums_(sums) {}

  SimulatedServers& servers() { return servers_; }
  VirtualTime& time() { return time_; }

  // Closes the connections of the request and calls `finish`, unless that was done before.
  static void Finish(const RequestPtr& request, const Status& status);
  // Fails the request when a server is lost that owes an answer, and at the deadline.
  void Watch(const RequestPtr& request, std::optional<Time> deadline);
  // Sends Hello; on success `welcome` has the answer.
  void Hello(const RequestPtr& request, const SimulatedServers::ServerPtr& server,
             std::shared_ptr<wire::Welcome> welcome);
  // Sends a message to one lane. The answer is stored at the index `place`.
  void Send(const RequestPtr& request, size_t place, const SimulatedServers::ServerPtr& server,
            size_t lane, wire::MessageType type, const std::string& meta);

 private:
  using ServerPtr = SimulatedServers::ServerPtr;

  Duration Delay();
  Duration DiskTime(int at_most);
  // True: the connection broke, and the message does not arrive. The master may notice it.
  bool Break(const RequestPtr& request);
  void Answer(const RequestPtr& request, size_t place, const ServerPtr& server,
              const Result<std::string>& meta);
  Result<std::string> Serve(const ServerPtr& server, size_t lane, const std::string& meta);
  void Save(const RequestPtr& request, size_t place, const ServerPtr& server, size_t lane,
            const std::string& meta);
  void Restore(const RequestPtr& request, size_t place, const ServerPtr& server, size_t lane,
               const std::string& meta);
  Status RestoreLane(const SimulatedServers::Server& server, SimulatedLane& lane,
                     const wire::Restore& restore);

  const Plan& plan_;
  const Mutant mutant_;
  SimulatedServers& servers_;
  SimulatedStorage& storage_;
  VirtualTime& time_;
  SimulationResult& sums_;
};

// A channel of one incarnation of the master. Confined.
class SimulatedChannel final : public ps_control::ServerChannel {
 public:
  enum class Connections {
    kKept,  // like those of a ServerWatch
    kNew,   // a new one for each request, like those of saves and restores
  };

  // `network` outlives this object. `master_alive` becomes false when the master crashes.
  SimulatedChannel(Connections connections, SimulatedNetwork& network,
                   std::shared_ptr<const bool> master_alive)
      : connections_(connections), network_(network), master_alive_(std::move(master_alive)) {}

  void Hello(int server, Duration timeout, OnWelcome done) override;
  void Ask(wire::MessageType type, std::vector<ps_control::ServerMessage> messages,
           std::optional<Duration> timeout, OnAnswers done) override;
  void Reset() override;

 private:
  using ServerPtr = SimulatedServers::ServerPtr;

  SimulatedNetwork::RequestPtr Begin(std::function<void(Status)> finish);
  // Fails the request: no process listens at the address of the server.
  void FailToConnect(const SimulatedNetwork::RequestPtr& request, int server);

  const Connections connections_;
  SimulatedNetwork& network_;
  const std::shared_ptr<const bool> master_alive_;
  std::weak_ptr<SimulatedNetwork::Request> request_;  // the last
  // The processes at the other end of kept connections, even if another process has the address
  // now. Null: not connected.
  ServerPtr control_;
  int hellos_ = 0;  // sent to it
  ServerPtr lanes_;
};

}  // namespace edl::master
