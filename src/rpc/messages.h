// From the plugin's values to the kubelet's messages. Pure, any thread.
#pragma once

#include "plugin/allocate.h"
#include "plugin/resource_view.h"

namespace v1beta1 {
class ContainerAllocateResponse;
class ListAndWatchResponse;
}  // namespace v1beta1

namespace ndp::rpc {

void Fill(const plugin::ResourceView& view, v1beta1::ListAndWatchResponse& message);
void Fill(const plugin::ContainerAnswer& answer, v1beta1::ContainerAllocateResponse& message);

}  // namespace ndp::rpc
