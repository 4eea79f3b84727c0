// The workers of a simulated job, of both APIs.

#include <algorithm>
#include <utility>

#include "simulation/simulated_job.h"

#include "job/names.h"

namespace edl::master {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

void SimulatedJob::AtWorker(const WorkerPtr& worker, Duration later, std::function<void()> run) {
  At(later, [this, worker, run = std::move(run)] {
    if (!worker->alive || time_.failed()) return;
    if (now() < worker->frozen_until) {
      AtWorker(worker, worker->frozen_until - now(), run);
      return;
    }
    run();
  });
}

void SimulatedJob::NextFaults(const WorkerPtr& worker) {
  At(seconds(1), [this, worker] {
    if (!worker->alive || !Faulty() || plan_.spares_workers) return;
    if (Chance() < plan_.kill_rate) {
      ++result_.kills;
      if (!worker->in_hand.empty() || !worker->trained.empty()) ++result_.kills_with_lease;
      Exit(worker, job::ExitCause::Kind::kKilled);
      return;
    }
    if (Chance() < plan_.freeze_rate) {
      ++result_.freezes;
      worker->frozen_until = now() + Between(1000, servers_ ? 60000 : 30000);
      // A worker that continues after a freeze uses leases that have ended until it hears from the
      // master.
      if (servers_) worker->cut_off_until = worker->frozen_until + Between(0, 10000);
      time_.Note("{} freezes", worker->name);
    }
    NextFaults(worker);
  });
}

void SimulatedJob::Begin(const WorkerPtr& worker) {
  if (!worker->compat_api) {
    Join(worker);
    return;
  }
  worker->registering = true;
  if (core_ == nullptr) {
    AtWorker(worker, Between(1, 20), [this, worker] { OnRegisterError(worker); });
    return;
  }
  // A published client waits for this answer before it asks for data.
  AtMaster([this, worker](Core& core) {
    if (!core.Register(plan_.data).ok()) Fail("the dataset was refused");
    core.SendAfterCommit([this, worker] {
      AtWorker(worker, Between(1, 30), [this, worker] {
        if (!worker->registering) return;  // the connection broke before
        worker->registering = false;
        Fetch(worker);
      });
    });
  });
}

void SimulatedJob::OnRegisterError(const WorkerPtr& worker) {
  if (!worker->registering) return;  // answered before
  worker->registering = false;
  if (plan_.quits_on_error) {
    // Only a fetch that fails is taken for the end of the data; any other call raises.
    Exit(worker, job::ExitCause::Kind::kFailed);
  } else {
    AtWorker(worker, seconds(15), [this, worker] { Begin(worker); });
  }
}

void SimulatedJob::Register(const WorkerPtr&) {
  AtMaster([this](Core& core) {
    if (!core.Register(plan_.data).ok()) Fail("the dataset was refused");
  });
}

void SimulatedJob::Join(const WorkerPtr& worker) {
  if (worker->leaving) return;
  JoinRequest request{.replica = worker->replica, .incarnation = worker->incarnation};
  for (const auto* list : {&worker->trained, &worker->in_hand}) {
    for (const LeasedShard& shard : *list) request.held.push_back(shard.lease);
  }
  // A report that was not answered yet is not over: its lease is still held.
  if (worker->open_call) {
    for (const ShardReport& report : worker->open_call->reports) {
      request.held.push_back(report.lease);
    }
  }
  const bool lost = Lose();
  const uint64_t attempt = ++worker->join_try;
  const auto join = [this, worker, request, lost, attempt](Core& core) {
    core.master_api().Join(
        request, [this, worker, request, lost, attempt](const Result<JoinReply>& reply) {
          if (lost || !reply.ok()) return;
          AtWorker(worker, Between(1, 30), [this, worker, request, reply, attempt] {
            if (worker->join_try == attempt) OnJoined(worker, request, *reply);
          });
        });
  };
  if (!CutOff(*worker)) AtMaster(join);
  // No answer: the next try.
  AtWorker(worker, milliseconds(1500), [this, worker, attempt, watch = worker->watch] {
    if (worker->join_try == attempt && worker->watch == watch) Join(worker);
  });
}

void SimulatedJob::OnJoined(const WorkerPtr& worker, const JoinRequest& request,
                            const JoinReply& reply) {
  const bool first = worker->incarnation.value() == 0;
  const bool new_life = reply.incarnation != worker->incarnation;
  if (reply.incarnation != worker->incarnation) {
    worker->incarnation = reply.incarnation;
    worker->next_number = 1;
    worker->received = 0;
    worker->open_call.reset();
  }
  const std::set<LeaseId> held(reply.held.begin(), reply.held.end());
  // An answer with leases may have arrived after the Join was sent. The reply only decides about
  // leases that the Join listed.
  const std::set<LeaseId> listed(request.held.begin(), request.held.end());
  for (auto* list : {&worker->trained, &worker->in_hand}) {
    std::erase_if(*list, [&](const LeasedShard& shard) {
      return !held.contains(shard.lease) && (new_life || listed.contains(shard.lease));
    });
  }
  worker->watch = ++calls_;
  const uint64_t watch = worker->watch;
  AtMaster([this, worker, watch](Core& core) {
    const Status watching =
        core.master_api().Watch(worker->incarnation, watch, [](const Membership&) {});
    if (!watching.ok()) AtWorker(worker, milliseconds(200), [this, worker] { Join(worker); });
  });
  if (first) {
    Register(worker);
    Heartbeat(worker);
  }
  if (worker->open_call) {
    SendReportAndLease(worker, worker->open_call->number);
  } else if (worker->in_hand.empty() && !worker->training) {
    Ask(worker);
  }
}

void SimulatedJob::Heartbeat(const WorkerPtr& worker) {
  const bool lost = Lose() || CutOff(*worker);
  if (!lost) {
    AtMaster([this, worker](Core& core) {
      core.master_api().Heartbeat(worker->incarnation, [this, worker](const Result<Done>& done) {
        if (done.status().code() == Code::kAborted) {
          AtWorker(worker, Between(1, 20), [this, worker] { Join(worker); });
        }
      });
    });
  }
  AtWorker(worker, seconds(1), [this, worker] { Heartbeat(worker); });
}

void SimulatedJob::Ask(const WorkerPtr& worker) {
  if (worker->open_call || worker->leaving) return;
  ReportAndLeaseRequest request{.incarnation = worker->incarnation,
                                .number = worker->next_number++,
                                .received = worker->received,
                                .dataset = Plan::kDataset,
                                .lease_at_most = static_cast<uint32_t>(Between(1, 3).count()),
                                .wait = milliseconds(8000)};
  const size_t keep = worker->ended ? 0 : worker->buffer;
  worker->reported.clear();
  while (worker->trained.size() > keep) {
    const LeasedShard& shard = worker->trained.front();
    request.reports.push_back({.lease = shard.lease, .ps_epoch = worker->epochs[shard.lease]});
    if (servers_) worker->reported.push_back(shard);
    worker->trained.erase(worker->trained.begin());
  }
  if (worker->ended) request.lease_at_most = 0;
  worker->open_call = request;
  SendReportAndLease(worker, request.number);
}

void SimulatedJob::SendReportAndLease(const WorkerPtr& worker, uint64_t number) {
  if (!worker->open_call || worker->open_call->number != number) return;
  ReportAndLeaseRequest request = *worker->open_call;
  const int times = Faulty() && Chance() < plan_.repeat ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    if (Lose() || CutOff(*worker)) continue;
    At(Between(1, 60), [this, worker, request] { DeliverReportAndLease(worker, request); });
  }
  AtWorker(worker, milliseconds(12000),
           [this, worker, number] { SendReportAndLease(worker, number); });
}

void SimulatedJob::DeliverReportAndLease(const WorkerPtr& worker,
                                         const ReportAndLeaseRequest& sent) {
  AtMaster([this, worker, sent](Core& core) {
    ReportAndLeaseRequest request = sent;
    request.call = ++calls_;
    if (mutant_ == Mutant::kNoDeduplication) {
      request.number = 1'000'000 + calls_;
      request.received = 0;
    }
    core.master_api().ReportAndLease(
        request, [this, worker, sent](const Result<ReportAndLeaseReply>& reply) {
          if (Lose() || CutOff(*worker)) return;
          AtWorker(worker, Between(1, 60), [this, worker, sent, reply] {
            // A reply belongs to its call; one of an incarnation that was given up has no caller.
            if (worker->incarnation == sent.incarnation)
              OnReportAndLease(worker, sent.number, reply);
          });
        });
  });
}

void SimulatedJob::OnReportAndLease(const WorkerPtr& worker, uint64_t number,
                                    const Result<ReportAndLeaseReply>& reply) {
  if (!worker->open_call || worker->open_call->number != number) return;
  if (!reply.ok()) {
    if (reply.status().code() == Code::kAborted) {
      // What the call reported is lost with it, if it did not arrive before.
      AtWorker(worker, Between(1, 20), [this, worker] { Join(worker); });
    } else if (reply.status().code() != Code::kInvalidArgument) {
      Fail("a ReportAndLease was refused: " + reply.status().ToString());
    }
    return;
  }
  if (reply->answer == LeaseAnswer::kRetry)
    return;  // the same call waits elsewhere, or is sent again
  const bool told_end = worker->ended;
  time_.Note("{} call {}: answer {} with {} shards", worker->name, number,
             static_cast<int>(reply->answer), reply->shards.size());
  CheckNoOrphans(*worker, *reply);
  worker->open_call.reset();
  worker->received = number;
  worker->ps_epoch = std::max(worker->ps_epoch, reply->ps_epoch);
  if (reply->answer == LeaseAnswer::kFinished) worker->ended = true;
  if (reply->answer == LeaseAnswer::kUnknownDataset) Register(worker);
  if (told_end) {
    worker->leaving = true;
    AtWorker(worker, Between(1, 200),
             [this, worker] { Exit(worker, job::ExitCause::Kind::kSucceeded); });
    return;
  }
  for (size_t i = 0; i < worker->reported.size(); ++i) {
    if (reply->verdicts[i] != ReportVerdict::kReopen) continue;
    ++result_.told_to_reopen;
    worker->in_hand.push_back(worker->reported[i]);
  }
  for (const LeasedShard& shard : reply->shards) worker->in_hand.push_back(shard);
  if (worker->in_hand.empty()) {
    Ask(worker);
    return;
  }
  Train(worker, worker->in_hand.front());
}

void SimulatedJob::CheckNoOrphans(const Worker& worker, const ReportAndLeaseReply& reply) {
  if (core_ == nullptr) return;
  std::set<LeaseId> known;
  for (const auto* list : {&worker.trained, &worker.in_hand, &worker.reported, &reply.shards}) {
    for (const LeasedShard& shard : *list) known.insert(shard.lease);
  }
  for (const auto& [id, lease] : core_->dispatcher().leases()) {
    if (lease.row.holder == worker.incarnation && !known.contains(id)) {
      Fail(fmt::format("{} does not know of its lease {}, granted by its call {}", worker.name, id,
                       lease.row.number));
    }
  }
}

void SimulatedJob::Push(const WorkerPtr& worker, const LeasedShard& shard) {
  if (worker->training) return;
  worker->training = true;
  const auto place = [worker](LeaseId lease) {
    return std::ranges::find(worker->in_hand, lease, &LeasedShard::lease);
  };
  trainer_->Train(
      {.later = [this, worker](Duration time, auto run) { AtWorker(worker, time, run); },
       .holds = [=](LeaseId lease) { return place(lease) != worker->in_hand.end(); },
       .ps_epoch = [worker] { return worker->ps_epoch; },
       .connections = worker->connections},
      shard, [this, worker, shard, place](std::optional<PsEpoch> epoch) {
        worker->training = false;
        const auto held = place(shard.lease);
        if (held != worker->in_hand.end()) {
          if (epoch.has_value()) {
            ++trainings_[shard.key];
            worker->trained.push_back(shard);
            worker->epochs[shard.lease] =
                mutant_ == Mutant::kNamesAnyEpoch ? PsEpoch(UINT64_MAX) : *epoch;
          }
          worker->in_hand.erase(held);
        }
        if (worker->in_hand.empty()) {
          Ask(worker);
        } else {
          Push(worker, worker->in_hand.front());
        }
      });
}

void SimulatedJob::Train(const WorkerPtr& worker, const LeasedShard& shard) {
  if (servers_) return Push(worker, shard);
  AtWorker(worker, Between(20, 3000), [this, worker, shard] {
    auto place = std::find_if(worker->in_hand.begin(), worker->in_hand.end(),
                              [&](const LeasedShard& other) { return other.lease == shard.lease; });
    if (place != worker->in_hand.end()) {
      ++trainings_[shard.key];
      worker->trained.push_back(shard);
      worker->in_hand.erase(place);
    }
    if (!worker->in_hand.empty()) {
      Train(worker, worker->in_hand.front());
    } else if (worker->compat_api) {
      ReportCompatApi(worker, worker->buffer, [this, worker] { Fetch(worker); });
    } else {
      Ask(worker);
    }
  });
}

void SimulatedJob::Fetch(const WorkerPtr& worker) {
  const uint64_t call = ++calls_;
  const uint64_t life = master_life_;
  worker->fetching = call;
  if (core_ == nullptr) {
    AtWorker(worker, Between(1, 20), [this, worker, call] { OnFetchError(worker, call); });
    return;
  }
  // Near the end a lost grant costs a round of its own, so only earlier ones are lost here; and
  // a client that exits on any error looks like one that leaves on purpose.
  const Dataset* dataset = core_->dispatcher().Find(Plan::kDataset);
  const bool lost = !plan_.quits_on_error && dataset != nullptr && dataset->HasMore() &&
                    dataset->row().leftover_at < 0 && Lose();
  AtMaster([this, worker, call, life, lost](Core& core) {
    core.compat_api().Fetch(
        call, worker->replica, Plan::kDataset,
        [this, worker, call, life, lost](const Result<std::optional<LeasedShard>>& shard) {
          time_.Note("{} fetch: {}{}{}", worker->name,
                     !shard.ok()          ? "error"
                     : shard->has_value() ? fmt::format("task {}", (*shard)->task)
                                          : "end",
                     lost ? " lost" : "", life != master_life_ ? " of a dead master" : "");
          if (life != master_life_) return;
          if (lost || !shard.ok()) {
            AtWorker(worker, Between(1, 30), [this, worker, call] { OnFetchError(worker, call); });
            return;
          }
          AtWorker(worker, Between(1, 30),
                   [this, worker, call, shard = *shard] { OnFetched(worker, call, shard); });
        });
  });
}

void SimulatedJob::OnFetchError(const WorkerPtr& worker, uint64_t call) {
  if (worker->fetching != call) return;
  if (plan_.quits_on_error) {
    OnFetched(worker, call, std::nullopt);
    return;
  }
  worker->fetching = 0;
  AtWorker(worker, seconds(15), [this, worker] { Fetch(worker); });
}

void SimulatedJob::OnFetched(const WorkerPtr& worker, uint64_t call,
                             const std::optional<LeasedShard>& shard) {
  if (worker->fetching != call) return;  // the connection broke before
  worker->fetching = 0;
  if (shard) {
    worker->in_hand.push_back(*shard);
    Train(worker, *shard);
    return;
  }
  worker->ended = true;
  worker->leaving = true;
  ReportCompatApi(worker, 0, [this, worker] {
    AtWorker(worker, Between(1, 200),
             [this, worker] { Exit(worker, job::ExitCause::Kind::kSucceeded); });
  });
}

// A published client reports in order and waits for each answer; what broke is sent again.
void SimulatedJob::ReportCompatApi(const WorkerPtr& worker, size_t keep,
                                   std::function<void()> then) {
  if (worker->trained.size() <= keep) {
    then();
    return;
  }
  const LeasedShard shard = worker->trained.front();
  const uint64_t call = ++calls_;
  worker->reporting = call;
  const auto again = [this, worker, keep, then, call] {
    if (worker->reporting == call) ReportCompatApi(worker, keep, then);
  };
  worker->report_broke = again;
  if (core_ == nullptr) {
    AtWorker(worker, seconds(15), again);
    return;
  }
  time_.Note("{} reports task {}", worker->name, shard.task);
  AtMaster([this, worker, keep, then, call, shard](Core& core) {
    core.compat_api().ReportTask(Plan::kDataset, shard.task, "");
    core.SendAfterCommit([this, worker, keep, then, call] {
      AtWorker(worker, Between(1, 5), [this, worker, keep, then, call] {
        if (worker->reporting != call) return;  // the connection broke before
        worker->reporting = 0;
        worker->trained.erase(worker->trained.begin());
        ReportCompatApi(worker, keep, then);
      });
    });
  });
}

}  // namespace edl::master
