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
#include "ps_client/client.h"

namespace edl::ps_client {

// Something that was asked of a ClientThread. Thread-safe.
class Pending {
 public:
  // False: it is not over yet.
  bool WaitFor(Duration timeout);
  // REQUIRES: it is over. Cancelled: the thread was stopped before.
  Status status();

  void Finish(Status status);

 private:
  Mutex mutex_;
  CondVar over_;
  std::optional<Status> status_ GUARDED_BY(mutex_);
};

// A Client and the thread that it is confined to: what is asked for moves on while nobody waits for
// it. Operations are started in the order in which they were asked for, and many are under way at a
// time. Memory that they name stays as it is until they are over.
//
// Thread-safe.
class ClientThread {
 public:
  // What is to be done with the client, on the thread.
  using Begin = std::function<Client::Ticket(Client&)>;
  using End = std::function<Status(Client&, Client::Ticket)>;
  using Act = std::function<Status(Client&)>;

  // `stop` is what the client's options name, and outlives this.
  ClientThread(std::unique_ptr<Client> client, std::atomic<bool>& stop);
  ~ClientThread();
  ClientThread(const ClientThread&) = delete;
  ClientThread& operator=(const ClientThread&) = delete;

  // A pull or a push: others can be under way between its begin and its end. What is returned is
  // owned by who asked and by the thread.
  std::shared_ptr<Pending> Start(Begin begin, End end);
  // What waits by itself, as Open does; all else waits for it.
  std::shared_ptr<Pending> Call(Act act);

  // Ends the connections; what is not over is Cancelled, and so is what is asked for from now on.
  // Once it returns no memory that operations name is touched any more.
  void Stop();

 private:
  struct Asked {
    std::shared_ptr<Pending> pending;
    Begin begin;
    End end;
    Act act;  // in place of the two
    Client::Ticket ticket = 0;
  };

  std::shared_ptr<Pending> Ask(Asked asked);
  void Wake();
  void Run();
  // Starts or does what was asked for since the last time. False: nothing was.
  bool TakeAsked();
  // Ends operations whose answers are there. False: there are none.
  bool EndDone();

  std::atomic<bool>& stop_;
  const FileDescriptor wake_;  // readable: something was asked for
  // The thread's own.
  std::unique_ptr<Client> client_;
  std::list<Asked> under_way_;

  Mutex mutex_;
  std::deque<Asked> asked_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  Mutex joining_;
  std::thread thread_ GUARDED_BY(joining_);
};

}  // namespace edl::ps_client
