// c10d::TCPStore as the rest of the folder sees it: exceptions become errors, and no header of LibTorch is needed to
// use it. Its calls may wait for as long as the other side is silent; call_thread.h bounds that.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "runtime/net/address.h"

namespace c10d {
class TCPStore;
}

namespace shardc {

/// What a server puts into its store when the process that started it has ended.
constexpr const char* LeftOverKey = "shardc/left over";
/// The prefix of the job that a server was started for.
constexpr const char* JobKey = "shardc/job";

/// A server, or a client, or a server with a client of its own.
class TcpStore {
 public:
  /// Serves on `listening`, a socket that listens on `own`, and takes the socket over.
  static auto Serve(int listening, const SocketAddress& own) -> ErrorOr<std::unique_ptr<TcpStore>>;
  static auto Connect(const SocketAddress& server, std::chrono::milliseconds timeout)
      -> ErrorOr<std::unique_ptr<TcpStore>>;
  ~TcpStore();

  /// The most that one Set or Append may carry: c10d closes the connection of a client that sends more than 8 MiB.
  static constexpr size_t MaxPayload = size_t{4} << 20;
  /// c10d's bound is 8 KiB.
  static constexpr size_t MaxKey = 4096;

  // Errors: what happened, as a clause about the server ("closed the connection").
  auto Set(const std::string& key, std::string_view value) -> Status;
  auto Append(const std::string& key, std::string_view value) -> Status;
  auto Add(const std::string& key, int64_t value) -> ErrorOr<int64_t>;
  /// False: the time is over, and there is no such key.
  auto Wait(const std::string& key, std::chrono::milliseconds timeout) -> ErrorOr<bool>;
  auto Has(const std::string& key) -> ErrorOr<bool>;
  /// The address of the client's end of its connection; "?" if it was not found. Another client of this process that
  /// connected at the same time may have been taken for it.
  auto OwnAddress() const -> const std::string& { return own_address_; }
  /// Requires: the key is there.
  auto Get(const std::string& key) -> ErrorOr<std::string>;

 private:
  TcpStore();
  struct Body;
  std::unique_ptr<Body> body_;
  std::string own_address_ = "?";
};

}  // namespace shardc
