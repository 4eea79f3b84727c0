#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "ps_client/parameter_client.h"

namespace edl::ps_client {

// An operation that was passed to a ClientThread. Thread-safe.
class Pending {
 public:
  // Waits until the operation is done. False: the timeout passed first.
  bool WaitFor(Duration timeout);
  // REQUIRES: the operation is done. Cancelled: the thread was stopped before it was.
  Status status();

  void Finish(Status status);

 private:
  Mutex mutex_;
  CondVar over_;
  std::optional<Status> status_ GUARDED_BY(mutex_);
};

// Runs a ParameterClient on a thread of its own, so that operations make progress while the caller
// computes. Operations are started in the order of the calls, and many may be in progress at a
// time. The memory of an operation must stay valid and unchanged until the operation is done.
//
// Thread-safe.
class ClientThread {
 public:
  // Callbacks that run on the thread.
  using Begin = std::function<ParameterClient::Ticket(ParameterClient&)>;
  using End = std::function<Status(ParameterClient&, ParameterClient::Ticket)>;
  using Act = std::function<Status(ParameterClient&)>;

  // `stop` is ClientOptions::stop of the client, and outlives the ClientThread.
  ClientThread(std::unique_ptr<ParameterClient> client, std::atomic<bool>& stop);
  ~ClientThread();
  ClientThread(const ClientThread&) = delete;
  ClientThread& operator=(const ClientThread&) = delete;

  // Starts an operation, such as a pull or a push, with `begin`, and ends it with `end` once its
  // answers have arrived. Other operations run in between. The result is owned by the caller and by
  // the thread.
  std::shared_ptr<Pending> Start(Begin begin, End end);
  // Runs `act`, which may block. All other operations wait for it.
  std::shared_ptr<Pending> Call(Act act);

  // Closes the connections. Operations that are not done, and all later ones, fail with Cancelled.
  // After it returns, the memory of operations is no longer accessed.
  void Stop();

 private:
  struct Asked {
    std::shared_ptr<Pending> pending;
    Begin begin;
    End end;
    Act act;  // instead of begin and end
    ParameterClient::Ticket ticket = 0;
  };

  std::shared_ptr<Pending> Ask(Asked asked);
  void Wake();
  void Run();
  // Starts or runs new operations. False: there are none.
  bool TakeAsked();
  // Ends operations whose answers have arrived. False: there are none.
  bool EndDone();

  std::atomic<bool>& stop_;
  const FileDescriptor wake_;  // readable: there are new operations
  // Confined to the thread.
  std::unique_ptr<ParameterClient> client_;
  std::list<Asked> under_way_;

  Mutex mutex_;
  std::deque<Asked> asked_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  Mutex joining_;
  std::thread thread_ GUARDED_BY(joining_);
};

}  // namespace edl::ps_client
