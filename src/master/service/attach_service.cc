#include "master/service/attach_service.h"

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "backend/exit_cause.h"
#include "base/log.h"
#include "elasticdl/v1/master.grpc.pb.h"
#include "master/service/local_peers.h"
#include "master/service/token_check.h"

namespace edl::master {
namespace {

namespace pb = ::elasticdl::v1;
using backend::AttachedBackend;
using backend::AttachmentId;

pb::AttachResponse ToProto(const AttachedBackend::Notice& notice, const std::string& token) {
  pb::AttachResponse out;
  if (notice.kind == AttachedBackend::Notice::Kind::kStop) {
    out.mutable_stop()->set_grace_ms(static_cast<uint32_t>(notice.grace.count()));
    return out;
  }
  pb::AttachedWorker& worker = *out.mutable_run();
  worker.set_name(notice.worker.name);
  worker.set_replica_id(notice.worker.id);
  for (const std::string& word : notice.worker.command) worker.add_command(word);
  worker.mutable_env()->insert(notice.worker.env.begin(), notice.worker.env.end());
  worker.set_token(token);
  return out;
}

// The open Attach calls. Each is the attachment with the number of the call. Confined: call it on
// the master's loop.
class AttachCalls {
 public:
  AttachCalls(AttachedBackend& backend, std::string token)
      : backend_(backend), token_(std::move(token)) {}

  void Open(Core& core, Call& call, const pb::AttachRequest& in) {
    const AttachmentId id(call.id());
    calls_.emplace(id, OpenCall{&call, in.process(), {}});
    call.set_on_written([this, id] { WriteNext(id); });
    call.set_on_disconnect([this, id](Core&) {
      const auto found = calls_.find(id);
      Call& lost = *found->second.call;
      calls_.erase(found);
      backend_.Disconnect(id);
      lost.Drop();
    });
    const size_t waiting = backend_.Attach(id);
    if (waiting == 0) return;
    const Status wanted = core.WantWorkers(
        waiting, [this](const std::string& name) { return backend_.HasWorker(name); });
    if (wanted.ok()) return;
    backend_.Disconnect(id);
    calls_.erase(id);
    call.Answer(wanted);
  }

  void On(const AttachedBackend::Notice& notice) {
    const auto found = calls_.find(notice.attachment);
    if (found == calls_.end()) return;  // it has disconnected
    OpenCall& open = found->second;
    if (notice.kind == AttachedBackend::Notice::Kind::kRun) {
      LOG_INFO("{} attached as {}", open.process, notice.worker.name);
    }
    if (notice.kind == AttachedBackend::Notice::Kind::kEnded) {
      open.end = Cancelled("{} did not stop in time and counts as killed", notice.worker.name);
    } else {
      open.unsent.push_back(ToProto(notice, token_));
    }
    WriteNext(notice.attachment);
  }

 private:
  struct OpenCall {
    Call* call;
    std::string process;
    std::deque<pb::AttachResponse> unsent;
    Status end;  // an error: the stream ends with it
  };

  void WriteNext(AttachmentId id) {
    const auto found = calls_.find(id);
    if (found == calls_.end() || found->second.call->writing()) return;
    OpenCall& open = found->second;
    if (!open.unsent.empty()) {
      const pb::AttachResponse next = std::move(open.unsent.front());
      open.unsent.pop_front();
      open.call->Write(next);
    } else if (!open.end.ok()) {
      Call& ended = *open.call;
      const Status end = open.end;
      calls_.erase(found);
      ended.Answer(end);
    }
  }

  AttachedBackend& backend_;
  const std::string token_;
  std::map<AttachmentId, OpenCall> calls_;
};

Status NotAttachable(const job::JobSpec& job) {
  return FailedPrecondition(
      "job {} starts its workers itself; to attach workers, start it with `elasticdl train "
      "--attach_workers=true`",
      job.job_name);
}

void AddAttach(const std::string& token, const job::JobSpec& job, const AttachedWorkers& workers,
               Methods& methods) {
  auto peers = std::make_shared<LocalPeers>();
  const bool attachable = workers.backend != nullptr;
  Methods::Service service(
      methods, pb::Master::service_full_name(),
      [token, &job, attachable, peers](const Core& core, const auto& context) -> Status {
        if (!attachable) return NotAttachable(job);
        const std::string peer = context.peer();
        if (!LocalPeers::IsLoopback(peer) || !peers->IsOurs(peer, core.now())) {
          return PermissionDenied(
              "{} is not a process of the user of job {} on the machine of its master; only that "
              "user can attach workers",
              peer, job.job_name);
        }
        if (job.token_file.empty()) return Ok();
        return CheckToken(context, token,
                          "the job was started with --token_file: give --token_file with the same "
                          "token");
      });
  if (!attachable) {
    service.AddIgnored("Attach");  // never admitted
    return;
  }
  const auto calls = std::make_shared<AttachCalls>(*workers.backend, token);
  workers.backend->SetOnNotice([calls, post = workers.post](const AttachedBackend::Notice& notice) {
    post([calls, notice](Core&) { calls->On(notice); });
  });
  service.Add<pb::AttachRequest, pb::AttachResponse>(
      "Attach", [calls](Core& core, Call& call, const pb::AttachRequest& in, pb::AttachResponse*) {
        calls->Open(core, call, in);
      });
}

}  // namespace

void AddAttachService(const std::string& token, const job::JobSpec& job,
                      const AttachedWorkers& workers, Methods& methods) {
  AddAttach(token, job, workers, methods);
  Methods::Service service(
      methods, pb::Master::service_full_name(), [token](const Core&, const auto& context) {
        return CheckToken(context, token, "send the token in the answer of Attach");
      });
  service.Add<pb::DetachRequest, pb::DetachResponse>(
      "Detach", [backend = workers.backend, &job](Core&, Call& call, const pb::DetachRequest& in,
                                                  pb::DetachResponse*) {
        if (backend == nullptr) {
          call.Answer(NotAttachable(job));
          return;
        }
        backend->ReportExit(in.name(), in.signal() > 0 ? backend::CauseOfSignal(in.signal())
                                                       : backend::CauseOfExit(in.exit_code()));
        call.Answer(Ok());
      });
}

}  // namespace edl::master
