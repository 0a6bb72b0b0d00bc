// An Examination as a document: how a look that another process had comes back. Pure.
#pragma once

#include "base/result.h"
#include "doc/value.h"
#include "health/examination.h"

namespace ndp::health {

// Adds what a sample has of numbers, remapped rows and fabric to a document about a GPU. Its
// failures are left out: how they are written is the reader's business.
void AddSample(doc::Value& out, const nvml::HealthSample& sample);

doc::Value ToDoc(const Examination& examination);
// kInvalidArgument where it is no such document.
Result<Examination> ExaminationFrom(const doc::Value& document);

}  // namespace ndp::health
