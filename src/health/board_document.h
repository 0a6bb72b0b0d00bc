// The board as a document: what /status.json and `ndp health --json` show.
#pragma once

#include "doc/value.h"
#include "health/board.h"

namespace ndp::health {

// {"driver":{"available":true},"devices":[{"device":"GPU-…","verdict":"Healthy"},{"device":"GPU-…",
// "verdict":"Unhealthy","reason":"…","class":"reset","xid":79,"since":"…","count":1,
// "nextStep":"…"}]}
doc::Value BoardDocument(const HealthBoard& board);

// Adds why a device is Unhealthy (reason, class, xid, since, count, nextStep), and its warnings, to
// a document about it.
void AddVerdict(doc::Value& entry, const DeviceHealth& device);

// One line a device for people, and what of each resource is not handed out; `document` is what
// BoardDocument made, here or in another instance, with what node::Control adds.
std::string BoardText(const doc::Value& document);

}  // namespace ndp::health
