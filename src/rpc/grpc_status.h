// Between our errors and gRPC's. Pure, any thread.
#pragma once

#include "base/result.h"

namespace grpc {
class Status;
}

namespace ndp::rpc {

grpc::Status ToGrpc(const Error& error);
Status FromGrpc(const grpc::Status& status);

}  // namespace ndp::rpc
