#include "remote.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::recursive_mutex mutex;

// ------------------------------------------------------------------------------------------------ shared memory
constexpr uint64_t kAlignment = 256, kPage = 4096;
// Smaller memory is not worth a system call.
constexpr uint64_t kReleasedFrom = 1 << 16;
uint64_t first, next, end;
struct Unused {
  void* memory;
  bool zero;
};
std::multimap<uint64_t, Unused> unused; // by size

// Powers of two above a page, so that freed memory fits again; what is not touched takes no memory.
uint64_t rounded(uint64_t bytes) {
  uint64_t size = kPage;
  while (size < bytes) size *= 2;
  return bytes > kPage ? size : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// "FILE ADDRESS BYTES TAKEN": an open file, where to map it, and how much of its begin belongs to the other process.
bool map_shared() {
  const char* place = getenv("MPSMITH_SHARED_MEMORY");
  if (place == nullptr) return false;
  char* rest;
  const long file = strtol(place, &rest, 10);
  first = strtoull(rest, &rest, 10);
  end = first + strtoull(rest, &rest, 10);
  next = first + strtoull(rest, &rest, 10);
  void* wanted = reinterpret_cast<void*>(first);
  if (mmap(wanted, end - first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != wanted) {
    fprintf(stderr, "the memory that is shared with the kernels cannot be mapped\n");
    _exit(1);
  }
  return true;
}

bool is_shared(uint64_t address) { return first <= address && address < end; }

// ------------------------------------------------------------------------------------------------ messages
void write_all(const void* from, size_t bytes) {
  for (auto* at = static_cast<const char*>(from); bytes > 0;) {
    const ssize_t written = write(1, at, bytes);
    if (written <= 0) _exit(1); // the other process is gone
    at += written;
    bytes -= written;
  }
}
void read_all(void* to, size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t taken = read(0, at, bytes);
    if (taken <= 0) _exit(1);
    at += taken;
    bytes -= taken;
  }
}
template <typename T>
std::string bytes_of(const T* values, size_t count = 1) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}
// Null, or the error message of the other process; its answer is in `answer`.
const char* ask(const char* kind, const std::string& request, std::string* answer = nullptr) {
  static thread_local std::string problem;
  const std::lock_guard<std::recursive_mutex> guard(mutex);
  // In one write, which wakes the other process once.
  const std::string message = std::string(kind) + ' ' + std::to_string(request.size()) + '\n' + request;
  write_all(message.data(), message.size());
  uint64_t status[2]; // whether it failed, and the size of what follows
  read_all(status, sizeof status);
  std::string text(status[1], 0);
  read_all(text.data(), text.size());
  if (status[0] != 0) {
    problem = std::move(text);
    return problem.c_str();
  }
  if (answer != nullptr) *answer = std::move(text);
  return nullptr;
}
const char* ask_number(const char* kind, const std::string& request, int64_t* number) {
  std::string answer;
  const char* problem = ask(kind, request, &answer);
  if (problem == nullptr) memcpy(number, answer.data(), sizeof *number);
  return problem;
}

// ------------------------------------------------------------------------------------------------ requests
const char* compile(const char* source, uint64_t bytes, int64_t* library) {
  return ask_number("compile", {source, bytes}, library);
}
const char* load(const void*, uint64_t, int64_t* library) { return ask_number("load", "", library); }
const char* names(int64_t library, const char** names) {
  static thread_local std::string text;
  const char* problem = ask("names", bytes_of(&library), &text);
  *names = text.c_str();
  return problem;
}
const char* specialize(int64_t library, const MetalConstant* constants, uint64_t count, int64_t* specialized) {
  std::string request = bytes_of(&library);
  for (uint64_t i = 0; i < count; ++i)
    request += std::to_string(constants[i].index) + '\t' + constants[i].name + '\t' + constants[i].value + '\n';
  return ask_number("specialize", request, specialized);
}
// The answer: four numbers, index and size of each parameter, and the names, one a line.
const char* kernel(int64_t library, const char* name, MetalKernel* kernel) {
  std::string answer;
  if (const char* problem = ask("kernel", bytes_of(&library) + name, &answer)) return problem;
  uint64_t facts[4];
  memcpy(facts, answer.data(), sizeof facts);
  auto* parameters = new MetalParameter[facts[3] + 1];
  const char* names = strdup(answer.data() + sizeof facts + facts[3] * 2 * sizeof(uint64_t));
  for (uint64_t i = 0; i < facts[3]; ++i) {
    memcpy(&parameters[i], answer.data() + sizeof facts + i * 2 * sizeof(uint64_t), 2 * sizeof(uint64_t));
    parameters[i].name = names;
    auto* line_end = const_cast<char*>(strchr(names, '\n'));
    *line_end = 0;
    names = line_end + 1;
  }
  *kernel = {int64_t(facts[0]), facts[1], facts[2], facts[3], parameters};
  return nullptr;
}
// What is bound outside of the shared memory, such as the bytes of setBytes, is copied there for the launch.
const char* launch(int64_t number, const MetalLaunch* launch) {
  std::vector<MetalBinding> bindings(launch->bindings, launch->bindings + launch->binding_count);
  for (MetalBinding& bound : bindings) {
    if (is_shared(bound.base)) continue;
    auto* copy = static_cast<char*>(shared_memory(bound.size));
    memcpy(copy, reinterpret_cast<void*>(bound.base), bound.size);
    bound.address += reinterpret_cast<uint64_t>(copy) - bound.base;
    bound.base = reinterpret_cast<uint64_t>(copy);
  }
  const char* problem =
      ask("launch", bytes_of(&number) + bytes_of(launch) + bytes_of(bindings.data(), bindings.size()));
  for (size_t i = 0; i < bindings.size(); ++i) {
    const MetalBinding& given = launch->bindings[i];
    if (is_shared(given.base)) continue;
    auto *memory = reinterpret_cast<void*>(given.base), *copy = reinterpret_cast<void*>(bindings[i].base);
    if (memcmp(memory, copy, given.size) != 0) memcpy(memory, copy, given.size);
    shared_memory_free(copy, given.size);
  }
  return problem;
}

} // namespace

bool remote_is_there() {
  static const bool there = map_shared();
  return there;
}

const MetalPrograms& remote_programs() {
  static const MetalPrograms programs = {compile, names, specialize, kernel, launch, load};
  return programs;
}

std::string remote_answer(const char* kind, const std::string& request) {
  std::string answer;
  if (const char* problem = ask(kind, request, &answer)) throw std::runtime_error(problem);
  return answer;
}

void* shared_memory(uint64_t bytes) {
  const std::lock_guard<std::recursive_mutex> guard(mutex);
  bytes = rounded(bytes);
  const auto found = unused.lower_bound(bytes);
  if (found != unused.end() && found->first == bytes) {
    const Unused taken = found->second;
    unused.erase(found);
    if (!taken.zero) memset(taken.memory, 0, bytes);
    return taken.memory;
  }
  if (bytes >= kPage) next = (next + kPage - 1) / kPage * kPage;
  if (bytes > end - next) throw std::runtime_error("no shared memory is left for " + std::to_string(bytes) + " bytes");
  next += bytes;
  return reinterpret_cast<void*>(next - bytes);
}

void shared_memory_free(void* memory, uint64_t bytes) {
  const std::lock_guard<std::recursive_mutex> guard(mutex);
  unused.emplace(rounded(bytes), Unused{memory, false});
}

const char* shared_memory_release() {
  static std::string ranges;
  const std::lock_guard<std::recursive_mutex> guard(mutex);
  ranges.clear();
  for (auto& [bytes, block] : unused) {
    if (bytes < kReleasedFrom || block.zero) continue;
    ranges += std::to_string(reinterpret_cast<uint64_t>(block.memory)) + ' ' + std::to_string(bytes) + '\n';
    block.zero = true;
  }
  return ranges.c_str();
}
