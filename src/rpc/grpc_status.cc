#include "rpc/grpc_status.h"

#include <grpcpp/support/status.h>

namespace ndp::rpc {

grpc::Status ToGrpc(const Error& error) {
  const grpc::StatusCode code = [&error] {
    switch (error.code()) {
      case Code::kInvalidArgument:
        return grpc::StatusCode::INVALID_ARGUMENT;
      case Code::kNotFound:
        return grpc::StatusCode::NOT_FOUND;
      case Code::kPermissionDenied:
        return grpc::StatusCode::PERMISSION_DENIED;
      case Code::kUnavailable:
        return grpc::StatusCode::UNAVAILABLE;
      case Code::kUnsupported:
        return grpc::StatusCode::UNIMPLEMENTED;
      case Code::kDeadlineExceeded:
        return grpc::StatusCode::DEADLINE_EXCEEDED;
      case Code::kInternal:
        break;
    }
    return grpc::StatusCode::INTERNAL;
  }();
  return {code, error.message()};
}

Status FromGrpc(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return {};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Error(Code::kDeadlineExceeded, status.error_message());
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return Error(Code::kUnavailable, status.error_message());
    case grpc::StatusCode::INVALID_ARGUMENT:
      return Error(Code::kInvalidArgument, status.error_message());
    case grpc::StatusCode::UNIMPLEMENTED:
      return Error(Code::kUnsupported, status.error_message());
    default:
      return Error(Code::kInternal, status.error_message());
  }
}

}  // namespace ndp::rpc
