// An Examination as a document: how a look that another process had comes back. Pure.
#pragma once

#include "base/result.h"
#include "doc/value.h"
#include "health/examination.h"

namespace ndp::health {

doc::Value ToDoc(const Examination& examination);
// kInvalidArgument where it is no such document.
Result<Examination> ExaminationFrom(const doc::Value& document);

}  // namespace ndp::health
