// Limits of MPSGraph that depend on the version of macOS; limits.yaml has them. Compiled with ARC.
#import <Foundation/Foundation.h>
#include <ATen/ATen.h>

#include "graph.h"

namespace mpsgraph {

namespace {

struct Limit {
  std::string operation, measure, message;
  int64_t above, first, before; // versions as 100 * major + minor
};
std::vector<Limit>& limits() {
  static auto* table = new std::vector<Limit>;
  return *table;
}
int64_t macos() {
  const NSOperatingSystemVersion version = [NSProcessInfo processInfo].operatingSystemVersion;
  return version.majorVersion * 100 + version.minorVersion;
}

} // namespace

bool is_beyond(const std::string& operation, const char* measure, int64_t value) {
  for (const Limit& limit : limits()) {
    if (value <= limit.above || limit.measure != measure || (limit.operation != operation && limit.operation != "*") ||
        macos() < limit.first || macos() >= limit.before) {
      continue;
    }
    if (!limit.message.empty()) {
      refuse(operation + ", " + measure + " " + std::to_string(value) + ": " + limit.message);
    }
    return true;
  }
  return false;
}

void require_inner_axes(const char* operation, const Tensor& x, const Shape& axes) {
  for (const int64_t axis : axes) {
    is_beyond(operation, "axis from the end", x.dim() - wrapped(axis, x.dim()));
  }
}

} // namespace mpsgraph

// An empty message: the operation gives another result.
extern "C" __attribute__((visibility("default"))) void mpsgraph_simulator_add_limit(
    const char* operation, const char* measure, int64_t above, int64_t first, int64_t before, const char* message) {
  mpsgraph::limits().push_back({operation, measure, message, above, first, before});
}
