#include "kube/transport.h"

#include <algorithm>
#include <array>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include <curl/curl.h>

#include "base/mutex.h"
#include "base/text.h"
#include "base/version.h"
#include "kube/text.h"

namespace edl::kube {
namespace {

// Not injected: silences are measured in the same clock in which libcurl waits.
using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectTimeout{10};
constexpr long kKeepAliveSeconds = 30;

void InitializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

curl_blob BlobOf(const std::string& content) {
  // libcurl copies it.
  return {const_cast<char*>(content.data()), content.size(), CURL_BLOB_COPY};  // NOLINT
}

std::string Part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return "";
  std::string out(text);
  curl_free(text);
  return out;
}

// How to reach the server when its certificate has another name than its address.
struct Endpoint {
  std::string url;         // with the name in the certificate as host
  std::string connect_to;  // "name:port:address:port"; empty: as `url` says
  std::string host;        // the Host header, which names the address
};

Endpoint EndpointOf(const Config& config) {
  Endpoint endpoint{.url = config.server};
  if (config.tls_server_name.empty()) return endpoint;
  CURLU* url = curl_url();
  if (curl_url_set(url, CURLUPART_URL, config.server.c_str(), 0) == CURLUE_OK) {
    const std::string address = Part(url, CURLUPART_HOST);
    const std::string port = Part(url, CURLUPART_PORT);
    curl_url_set(url, CURLUPART_HOST, config.tls_server_name.c_str(), 0);
    endpoint.url = Part(url, CURLUPART_URL);
    while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
    endpoint.connect_to = fmt::format("{}:{}:{}:{}", config.tls_server_name, port, address, port);
    endpoint.host = fmt::format("Host: {}:{}", address, port);
  }
  curl_url_cleanup(url);
  return endpoint;
}

// One running call. Confined to the transport's thread between Begin and End.
struct Transfer {
  Request request;
  Transport::OnData on_data;  // empty: the body goes into the response
  std::stop_token stop;
  Response response;
  std::promise<Result<Response>> done;
  std::array<char, CURL_ERROR_SIZE> error{};
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  SteadyClock::time_point last_received;
  bool ended_by_reader = false;

  ~Transfer() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    curl_slist_free_all(connect_to);
  }
};

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->last_received = SteadyClock::now();
  const std::string_view bytes(data, size * count);
  long status = 0;
  curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
  if (transfer->on_data && status == 200) {
    if (transfer->on_data(bytes)) return bytes.size();
    transfer->ended_by_reader = true;
    return 0;
  }
  transfer->response.body += bytes;
  return bytes.size();
}

size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->last_received = SteadyClock::now();
  const std::string_view line(data, size * count);
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    const std::string name = Lower(line.substr(0, colon));
    const std::string value(Trim(line.substr(colon + 1)));
    if (name == "retry-after") transfer->response.retry_after = value;
    if (name == "warning") transfer->response.warnings.push_back(value);
  }
  return line.size();
}

}  // namespace

// The thread that does the socket I/O, with the multi interface of libcurl.
class Transport::Engine {
 public:
  explicit Engine(const Config& config)
      : config_(config), endpoint_(EndpointOf(config)), multi_(curl_multi_init()) {
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (...) {
      curl_multi_cleanup(multi_);
      throw;
    }
  }

  ~Engine() {
    {
      const MutexLock lock(mutex_);
      ending_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
    curl_multi_cleanup(multi_);
  }

  Result<Response> Do(std::shared_ptr<Transfer> transfer) {
    std::future<Result<Response>> answer = transfer->done.get_future();
    const std::stop_callback wake(transfer->stop, [this] { curl_multi_wakeup(multi_); });
    {
      const MutexLock lock(mutex_);
      new_.push_back(std::move(transfer));
    }
    curl_multi_wakeup(multi_);
    return answer.get();
  }

 private:
  void Run() {
    while (true) {
      std::vector<std::shared_ptr<Transfer>> begun;
      {
        const MutexLock lock(mutex_);
        std::swap(begun, new_);
        if (ending_) {
          running_.insert(running_.end(), begun.begin(), begun.end());
          break;
        }
      }
      for (auto& transfer : begun) Begin(std::move(transfer));
      int active = 0;
      curl_multi_perform(multi_, &active);
      TakeFinished();
      EndStopped();
      curl_multi_poll(multi_, nullptr, 0, TimeoutMs(), nullptr);
    }
    while (!running_.empty()) End(running_.back(), Cancelled("the client is shutting down"));
  }

  // The time until the next silence limit, capped at a minute.
  int TimeoutMs() const {
    using std::chrono::milliseconds;
    milliseconds timeout(60'000);
    const SteadyClock::time_point now = SteadyClock::now();
    for (const auto& transfer : running_) {
      const milliseconds silence = transfer->request.silence;
      if (silence.count() == 0) continue;
      // One millisecond after the limit, so that it has passed when the poll returns.
      const auto left = std::chrono::ceil<milliseconds>(transfer->last_received + silence - now);
      timeout = std::clamp(left + milliseconds(1), milliseconds(1), timeout);
    }
    return static_cast<int>(timeout.count());
  }

  void Begin(std::shared_ptr<Transfer> transfer) {
    transfer->easy = curl_easy_init();
    transfer->last_received = SteadyClock::now();
    SetUp(*transfer);
    curl_multi_add_handle(multi_, transfer->easy);
    running_.push_back(std::move(transfer));
  }

  void SetUp(Transfer& transfer) {
    CURL* easy = transfer.easy;
    const Request& request = transfer.request;
    curl_easy_setopt(easy, CURLOPT_URL, (endpoint_.url + request.path).c_str());
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy, CURLOPT_USERAGENT, fmt::format("elasticdl/{}", kVersion).c_str());
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error.data());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, OnBody);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, OnHeader);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(std::chrono::milliseconds(kConnectTimeout).count()));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request.once ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, kKeepAliveSeconds);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, kKeepAliveSeconds);
    if (!request.body.empty()) {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
      AddHeader(transfer, "Content-Type: " + request.content_type);
    }
    AddHeader(transfer, "Accept: application/json, */*");
    AddHeader(transfer, "Expect:");  // no "100 Continue" round trip
    if (!endpoint_.connect_to.empty()) {
      transfer.connect_to = curl_slist_append(nullptr, endpoint_.connect_to.c_str());
      curl_easy_setopt(easy, CURLOPT_CONNECT_TO, transfer.connect_to);
      AddHeader(transfer, endpoint_.host);
    }
    for (const std::string& header : request.headers) AddHeader(transfer, header);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers);
    SetUpConnection(easy);
  }

  void SetUpConnection(CURL* easy) {
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (!config_.proxy_url.empty()) {
      curl_easy_setopt(easy, CURLOPT_PROXY, config_.proxy_url.c_str());
    }
    if (config_.insecure_skip_tls_verify) {
      curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
      curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (!config_.certificate_authority.empty()) {
      const curl_blob blob = BlobOf(config_.certificate_authority);
      // Only this authority: by default libcurl trusts the machine's authorities as well.
      curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
      curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
    }
    if (!config_.credentials.client_certificate.empty()) {
      const curl_blob certificate = BlobOf(config_.credentials.client_certificate);
      const curl_blob key = BlobOf(config_.credentials.client_key);
      curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
      curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
      curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
      curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
    }
  }

  static void AddHeader(Transfer& transfer, const std::string& line) {
    transfer.headers = curl_slist_append(transfer.headers, line.c_str());
  }

  void TakeFinished() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& transfer) {
        return transfer->easy == message->easy_handle;
      });
      const CURLcode code = message->data.result;
      long status = 0;
      curl_easy_getinfo((*found)->easy, CURLINFO_RESPONSE_CODE, &status);
      (*found)->response.status = static_cast<int>(status);
      End(*found, StatusOf(**found, code));
    }
  }

  // The request for error messages, without its query.
  std::string Describe(const Request& request) const {
    return fmt::format("{} {}{}", request.method, config_.server,
                       request.path.substr(0, request.path.find('?')));
  }

  Status StatusOf(const Transfer& transfer, CURLcode code) const {
    if (code == CURLE_OK || transfer.ended_by_reader) return Ok();
    const char* why = transfer.error[0] != '\0' ? transfer.error.data() : curl_easy_strerror(code);
    const std::string message = fmt::format("{}: {}", Describe(transfer.request), why);
    curl_off_t connected = 0;  // microseconds
    curl_easy_getinfo(transfer.easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    if (code == CURLE_OPERATION_TIMEDOUT && connected > 0) {
      return DeadlineExceeded("{}", message);
    }
    if (code == CURLE_SSL_CERTPROBLEM || code == CURLE_PEER_FAILED_VERIFICATION ||
        code == CURLE_SSL_CACERT_BADFILE) {
      // A retry cannot help.
      return FailedPrecondition(
          "{} (the certificate of the server was verified against {})", message,
          config_.certificate_authority.empty()
              ? "the authorities that this machine trusts; set certificate-authority in the "
                "kubeconfig to use another"
              : config_.ca_source);
    }
    return Unavailable("{}", message);
  }

  void EndStopped() {
    const SteadyClock::time_point now = SteadyClock::now();
    const std::vector<std::shared_ptr<Transfer>> all = running_;
    for (const auto& transfer : all) {
      const std::chrono::milliseconds silence = transfer->request.silence;
      if (transfer->stop.stop_requested()) {
        End(transfer, Cancelled("the call was cancelled"));
      } else if (silence.count() > 0 && now - transfer->last_received > silence) {
        End(transfer, Unavailable("{}: received nothing for {} ms", Describe(transfer->request),
                                  silence.count()));
      }
    }
  }

  void End(std::shared_ptr<Transfer> transfer, const Status& status) {
    std::erase(running_, transfer);
    if (transfer->easy != nullptr) curl_multi_remove_handle(multi_, transfer->easy);
    if (status.ok()) {
      transfer->done.set_value(std::move(transfer->response));
    } else {
      transfer->done.set_value(status);
    }
  }

  const Config config_;
  const Endpoint endpoint_;
  CURLM* const multi_;
  std::vector<std::shared_ptr<Transfer>> running_;  // owned by the thread and by waiting callers
  std::thread thread_;

  Mutex mutex_;
  std::vector<std::shared_ptr<Transfer>> new_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
};

Transport::Transport(const Config& config) {
  InitializeOnce();
  engine_ = std::make_unique<Engine>(config);
}
Transport::~Transport() = default;

Result<Response> Transport::Call(const Request& request, const std::stop_token& stop) {
  return Stream(request, {}, stop);
}

Result<Response> Transport::Stream(const Request& request, OnData on_data,
                                   const std::stop_token& stop) {
  auto transfer = std::make_shared<Transfer>();
  transfer->request = request;
  transfer->on_data = std::move(on_data);
  transfer->stop = stop;
  return engine_->Do(std::move(transfer));
}

}  // namespace edl::kube
