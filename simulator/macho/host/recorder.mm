// What the host code of a macOS wheel needs of Metal beyond simulator/objc/metal: heaps, and a record of what it asks for.
// Kernels compute where another process runs them (remote.h). `metal_recorder_take` returns the record since the last
// call, a line for each event. With ARC.
#include <algorithm>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "../../objc/foundation/text.h"
#include "../../objc/metal/host.h"
#include "remote.h"

namespace {

std::mutex mutex;
// Not a stream, which takes ten times as long.
std::string record;
void note(const char* event, std::initializer_list<uint64_t> numbers) {
  record += event;
  for (const uint64_t number : numbers) record.append(1, ' ').append(std::to_string(number));
}
struct Kernel {
  std::string name;
  int64_t remote;
};
std::vector<Kernel>& kernels() {
  static auto* all = new std::vector<Kernel>;
  return *all;
}

const char* load(const void*, uint64_t bytes, int64_t* library) {
  *library = static_cast<int64_t>(bytes);
  const std::lock_guard<std::mutex> guard(mutex);
  note("library", {bytes});
  record += '\n';
  return remote_is_there() ? remote_programs().load(nullptr, 0, library) : nullptr;
}
const char* compile(const char* source, uint64_t bytes, int64_t* library) {
  return remote_is_there() ? remote_programs().compile(source, bytes, library)
                           : "the recorder compiles no Metal source";
}
// The kernels of the release, one a line.
const char* names(int64_t library, const char** names) {
  if (remote_is_there()) return remote_programs().names(library, names);
  static const auto* all = [] {
    std::ifstream file(getenv("MPSMITH_KERNEL_NAMES"));
    return new std::string(std::istreambuf_iterator<char>(file), {});
  }();
  *names = all->c_str();
  return nullptr;
}
const char* specialize(int64_t library, const MetalConstant* constants, uint64_t count, int64_t* specialized) {
  if (remote_is_there()) return remote_programs().specialize(library, constants, count, specialized);
  *specialized = library;
  return nullptr;
}
const char* kernel(int64_t library, const char* name, MetalKernel* kernel) {
  static auto* parameters = [] {
    auto* all = new std::vector<MetalParameter>;
    for (uint64_t index = 0; index < 31; ++index) all->push_back({index, 0, "?"});
    return all;
  }();
  *kernel = {0, 1024, 0, parameters->size(), parameters->data()};
  if (remote_is_there()) {
    if (const char* problem = remote_programs().kernel(library, name, kernel)) return problem;
  }
  const std::lock_guard<std::mutex> guard(mutex);
  kernels().push_back({name, kernel->number});
  kernel->number = static_cast<int64_t>(kernels().size()) - 1;
  return nullptr;
}
void hexadecimal(const void* from, uint64_t bytes) {
  static const char digits[] = "0123456789abcdef";
  for (uint64_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<const uint8_t*>(from)[i];
    record.append({digits[byte >> 4], digits[byte & 15]});
  }
}
// "launch NAME X Y Z X Y Z" with grid and group, then for each binding "INDEX OFFSET BYTES", at most 256 bytes, or none
// where the kernel computes.
const char* launch(int64_t number, const MetalLaunch* launch) {
  // Metal runs no thread for an empty grid; only its validation, which no release enables, refuses it.
  const bool computes = remote_is_there() && launch->grid[0] * launch->grid[1] * launch->grid[2] > 0;
  const std::lock_guard<std::mutex> guard(mutex);
  const auto &grid = launch->grid, &group = launch->group;
  note(("launch " + kernels()[number].name).c_str(), {grid[0], grid[1], grid[2], group[0], group[1], group[2]});
  for (uint64_t i = 0; i < launch->binding_count; ++i) {
    const MetalBinding& bound = launch->bindings[i];
    note("", {bound.index, bound.address - bound.base});
    record += ' ';
    const uint64_t left = bound.size - (bound.address - bound.base);
    hexadecimal(reinterpret_cast<const void*>(bound.address), computes ? 0 : left < 256 ? left : 256);
  }
  record += '\n';
  return computes ? remote_programs().launch(kernels()[number].remote, launch) : nullptr;
}

__attribute__((constructor)) void install() {
  metal_programs = {compile, names, specialize, kernel, launch, load};
  remote_is_there();
}

} // namespace

// The buffers of the wheel's allocator do not say what is in them.
uint32_t simulated_element_type(const void*) { return 0; }

extern "C" int64_t metal_simulator_waits();

extern "C" __attribute__((visibility("default"))) const char* metal_recorder_take() {
  static std::string taken;
  static int64_t waits = 0;
  const std::lock_guard<std::mutex> guard(mutex);
  note("waits", {static_cast<uint64_t>(metal_simulator_waits() - waits)});
  record += '\n';
  waits = metal_simulator_waits();
  taken.swap(record);
  record.clear();
  return taken.c_str();
}

// Where no kernel computes, a library has each function that it is asked for: which names exist is what the comparison
// checks.
@interface MTLFunctionConstantValues (Simulated)
- (int64_t)simulatedSpecialized:(int64_t)library;
@end
@interface SimulatedLibrary (Recorded)
@end
@implementation SimulatedLibrary (Recorded)
static bool is_in(int64_t library, const std::string& name) {
  static auto* known = new std::map<int64_t, std::set<std::string>>;
  if (!remote_is_there()) return true;
  if (known->count(library) == 0) {
    const char* all = "";
    if (const char* problem = remote_programs().names(library, &all)) throw std::runtime_error(problem);
    std::istringstream lines(all);
    for (std::string each; std::getline(lines, each);) (*known)[library].insert(each);
  }
  return (*known)[library].count(name) > 0;
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
  if (!is_in(number_, name.UTF8String)) return nil;
  SimulatedFunction* function = [SimulatedFunction new];
  function->library_ = number_;
  function->name_ = function->label_ = name;
  function->owner_ = self;
  return (id)function;
}
- (id<MTLFunction>)newFunctionWithName:(NSString*)name
                        constantValues:(MTLFunctionConstantValues*)values
                                 error:(NSError* __autoreleasing*)error {
  try {
    SimulatedFunction* function = (SimulatedFunction*)[self newFunctionWithName:name];
    if (function == nil) {
      if (error)
        *error =
            simulated_error("MTLLibraryErrorDomain", std::string("Function ") + name.UTF8String + " was not found");
      return nil;
    }
    function->library_ = [values simulatedSpecialized:number_];
    return (id)function;
  } catch (const std::exception& problem) {
    if (error) *error = simulated_error("MTLLibraryErrorDomain", problem.what());
    return nil;
  }
}
@end

// Compiled code passes a pointer alone, which knows no type. For a vector of three numbers it passes three, and a kernel
// reads four: the memory of a Mac's arguments has room for them, also where a length is 0.
@interface SimulatedComputeEncoder (Recorded)
- (void)simulatedBytes:(const void*)bytes ofType:(uint64_t)type length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)simulatedThreadgroupBytes:(NSUInteger)length atIndex:(NSUInteger)index;
@end
@implementation SimulatedComputeEncoder (Recorded)
// svd of 2.15.0 sets lengths that are not multiples of 16. Only Metal's validation refuses them.
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  [self simulatedThreadgroupBytes:(length + 15) / 16 * 16 atIndex:index];
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  constexpr NSUInteger kRoom = 16;
  std::vector<char> padded(std::max(kRoom, (length + kRoom - 1) / kRoom * kRoom));
  if (length > 0 && bytes != nullptr) memcpy(padded.data(), bytes, length);
  [self simulatedBytes:bytes == nullptr ? nullptr : padded.data() ofType:0 length:padded.size() atIndex:index];
}
@end

@interface SimulatedBlitEncoder (Recorded)
@end
@implementation SimulatedBlitEncoder (Recorded)
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  const std::lock_guard<std::mutex> guard(mutex);
  note("fill", {range.location, range.length, value});
  record += '\n';
  [commands_ simulatedCommand:[buffer, range, value] {
    memset((char*)[buffer contents] + range.location, value, range.length);
  }];
}
- (void)copyFromBuffer:(id<MTLBuffer>)from
          sourceOffset:(NSUInteger)source
              toBuffer:(id<MTLBuffer>)to
     destinationOffset:(NSUInteger)destination
                  size:(NSUInteger)size {
  const std::lock_guard<std::mutex> guard(mutex);
  note("copy", {source, destination, size});
  record += '\n';
  [commands_ simulatedCommand:[from, source, to, destination, size] {
    memmove((char*)[to contents] + destination, (const char*)[from contents] + source, size);
  }];
}
@end

// ------------------------------------------------------------------------------------------------ heaps
@implementation MTLHeapDescriptor {
  NSUInteger size_, options_, storage_, cache_, kind_, tracking_;
}
PROPERTY(NSUInteger, size, setSize, size_)
PROPERTY(NSUInteger, resourceOptions, setResourceOptions, options_)
PROPERTY(NSUInteger, storageMode, setStorageMode, storage_)
PROPERTY(NSUInteger, cpuCacheMode, setCpuCacheMode, cache_)
PROPERTY(NSUInteger, type, setType, kind_)
PROPERTY(NSUInteger, hazardTrackingMode, setHazardTrackingMode, tracking_)
@end

@interface RecordedHeap : SimulatedLabelledObject {
 @public
  NSUInteger size_, used_;
}
@end
@implementation RecordedHeap
METHOD(NSUInteger, size, size_)
METHOD(NSUInteger, usedSize, used_)
METHOD(NSUInteger, currentAllocatedSize, size_)
METHOD(NSUInteger, storageMode, MTLStorageModeShared)
METHOD(NSUInteger, resourceOptions, MTLResourceStorageModeShared)
- (NSUInteger)setPurgeableState:(NSUInteger)state {
  return 2;
}
- (NSUInteger)maxAvailableSizeWithAlignment:(NSUInteger)alignment {
  return size_ - used_;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(NSUInteger)options {
  if (used_ + length > size_) return nil;
  used_ += length;
  return [SimulatedBuffer simulatedOf:length];
}
// 2.14.1 chooses the place in the heap itself. Each buffer has its memory here.
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(NSUInteger)options offset:(NSUInteger)offset {
  return offset + length > size_ ? nil : [SimulatedBuffer simulatedOf:length];
}
@end

@interface SimulatedBuffer (Recorded)
@end
@implementation SimulatedBuffer (Recorded)
+ (id<MTLBuffer>)simulatedOf:(NSUInteger)length {
  if (length == 0) {
    return nil; // only Metal's validation refuses it
  }
  if (!remote_is_there()) {
    return [self simulatedOver:calloc(length, 1)
                        length:length
                   deallocator:^(void* memory, NSUInteger) {
                     free(memory);
                   }];
  }
  return [self simulatedOver:shared_memory(length)
                      length:length
                 deallocator:^(void* memory, NSUInteger bytes) {
                   shared_memory_free(memory, bytes);
                 }];
}
METHOD(id, heap, nil)
- (NSUInteger)setPurgeableState:(NSUInteger)state {
  return 2;
}
@end

struct SizeAndAlign { NSUInteger size, align; };
@interface SimulatedDevice : NSObject
@end
@interface SimulatedDevice (Recorded)
@end
@implementation SimulatedDevice (Recorded)
- (id)newHeapWithDescriptor:(MTLHeapDescriptor*)descriptor {
  RecordedHeap* heap = [RecordedHeap new];
  heap->size_ = [descriptor size];
  return heap;
}
- (SizeAndAlign)heapBufferSizeAndAlignWithLength:(NSUInteger)length options:(NSUInteger)options {
  return {(length + 255) / 256 * 256, 256};
}
@end

// The memory of a tensor on mps, whose storage is a buffer.
extern "C" __attribute__((visibility("default"))) void* metal_buffer_contents(const void* buffer) {
  return [(__bridge id<MTLBuffer>)buffer contents];
}

// Commands run when they are encoded, as a graph does, which reads what kernels before it wrote.
@interface SimulatedCommandQueue (Recorded)
@end
@implementation SimulatedCommandQueue (Recorded)
METHOD(id<MTLCommandBuffer>, commandBuffer, [self simulatedStreamCommandBuffer])
@end

@interface RecordedCaptureScope : SimulatedLabelledObject
@end
@implementation RecordedCaptureScope
IGNORED(beginScope)
IGNORED(endScope)
@end
@implementation MTLCaptureManager
CLASS_METHOD(MTLCaptureManager*, sharedCaptureManager, [self new])
METHOD(BOOL, isCapturing, NO)
- (BOOL)supportsDestination:(NSInteger)destination {
  return NO;
}
- (id)newCaptureScopeWithCommandQueue:(id)queue {
  return [RecordedCaptureScope new];
}
@end

extern "C" {
__attribute__((visibility("default"))) void recorded_assert_queue(void*) __asm__("_dispatch_assert_queue$V2");
void recorded_assert_queue(void*) {}
__attribute__((visibility("default"))) void* os_log_create(const char*, const char*) { return nullptr; }
__attribute__((visibility("default"))) bool os_signpost_enabled(void*) { return false; }
__attribute__((visibility("default"))) bool os_log_type_enabled(void*, uint8_t) { return false; }
}
