// Finds graphs that two different calls share: the one out of the cache is compared with the one that the call would make.
// Compiled with ARC.
#import <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#include <ATen/ATen.h>

#include <unordered_map>

#include "graph.h"

namespace mpsgraph {

namespace {

bool checks = false;

// What each graph that is about to run in this thread is to be compared with.
std::unordered_map<const void*, MPSGraph*>& others() {
  static thread_local auto* table = new std::unordered_map<const void*, MPSGraph*>;
  return *table;
}

bool are_equal(const Tensor& x, const Tensor& y) {
  return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() && x.isclose(y, 0, 0, true).all().item<bool>();
}

bool have_equal_constants(const Node& x, const Node& y) {
  bool equal = x.constants.has_value() == y.constants.has_value();
  for (size_t i = 0; equal && x.constants && i < x.constants->size(); ++i) {
    equal = are_equal(x.constants->at(i), y.constants->at(i));
  }
  return equal;
}

[[noreturn]] void refuse_shared(const std::string& difference) {
  refuse("this call got the graph of another call out of the cache, and needs another one: " + difference);
}

} // namespace

void require_same_structure(MPSGraph* cached, MPSGraph* fresh) {
  const auto &had = cached->tensors_, &wanted = fresh->tensors_;
  for (size_t i = 0; i < std::min(had.size(), wanted.size()); ++i) {
    const Node &x = *had[i]->node_, &y = *wanted[i]->node_;
    if (x.operation != y.operation) {
      refuse_shared(y.operation + " in place of " + x.operation);
    }
    if (had[i]->type_ != wanted[i]->type_ || had[i]->shape_ != wanted[i]->shape_ || !have_equal_constants(x, y)) {
      refuse_shared("another type, shape or value of " + y.operation);
    }
  }
  if (had.size() != wanted.size()) {
    refuse_shared(std::to_string(wanted.size()) + " tensors in place of " + std::to_string(had.size()));
  }
}

MPSGraph* other_graph_of(MPSGraph* graph) {
  const auto found = others().find((__bridge const void*)graph);
  MPSGraph* other = found == others().end() ? nil : found->second;
  if (other != nil) {
    others().erase(found);
  }
  return other;
}

void require_same_result(const std::string& operation, const Tensor& result, const Tensor& of_other) {
  if (!are_equal(result, of_other)) {
    refuse_shared(operation + " with other arguments");
  }
}

} // namespace mpsgraph

// Whether a graph out of a cache is to be compared this time: at first, and then at each power of two, because making
// another graph takes longer than running this one.
extern "C" __attribute__((visibility("default"))) BOOL mpsgraph_simulator_compares(MPSGraph* cached) {
  const uint64_t reuses = ++cached->reuses_;
  return mpsgraph::checks && (reuses <= 64 || (reuses & (reuses - 1)) == 0);
}
extern "C" __attribute__((visibility("default"))) void mpsgraph_simulator_check_caches(BOOL on) {
  mpsgraph::checks = on;
}
// Compares them when the graph out of the cache runs, and raises there if the call needs another one.
extern "C" __attribute__((visibility("default"))) void mpsgraph_simulator_compare(MPSGraph* cached, MPSGraph* fresh) {
  mpsgraph::others()[(__bridge const void*)cached] = fresh;
}
