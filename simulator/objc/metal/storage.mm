// The memory of a tensor as an MTLBuffer. Host code casts `tensor.storage().data()` to id<MTLBuffer>, which is an address
// of host memory on the simulated device. Messages to such an address go to this class, with the address as `self`.
// Compiled without ARC.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "host.h"
#include "tensor_memory.h"

extern "C" void objc_simulator_set_foreign_objects(Class (*)(id), const std::atomic<bool>*);

// The size of the tensor memory at an address, or 0; retain and release of it; and whether it was freed.
static uint64_t (*storage_bytes)(const void*);
static void (*storage_hold)(const void*, int64_t);
static bool (*storage_gone)(const void*);
static uint32_t (*storage_element_type)(const void*);

// The start of tensor memory for its own address, and for what data_ptr() gave host code.
static id start_of(id object) {
  const id here = (id)mpsmith::host_address(object);
  return storage_bytes(object) == 0 && storage_bytes(here) != 0 ? here : object;
}

id<MTLBuffer> simulated_tensor_memory(const void* pointer) {
  const id start = storage_bytes ? start_of((id)pointer) : nil;
  return start != nil && storage_bytes(start) != 0 ? start : nil;
}

uint32_t simulated_element_type(const void* memory) { return storage_element_type ? storage_element_type(memory) : 0; }

@interface SimulatedStorage : NSObject
@end
@implementation SimulatedStorage
// A buffer that is retained outlives its tensor, as on a Mac: the allocator keeps the memory.
- (instancetype)retain {
  storage_hold(start_of(self), 1);
  return self;
}
- (oneway void)release {
  storage_hold(start_of(self), -1);
}
METHOD(NSUInteger, retainCount, 1)
METHOD(void*, contents, start_of(self))
METHOD(NSUInteger, length, storage_bytes(start_of(self)))
METHOD(NSUInteger, allocatedSize, storage_bytes(start_of(self)))
METHOD(MTLGPUAddress, gpuAddress, (MTLGPUAddress)start_of(self))
METHOD(id<MTLDevice>, device, simulated_device())
METHOD(MTLStorageMode, storageMode, MTLStorageModeShared)
METHOD(MTLResourceOptions, resourceOptions, MTLResourceStorageModeShared)
METHOD(NSString*, label, @"")
IGNORED_WITH(setLabel, NSString*)
IGNORED_WITH(didModifyRange, NSRange)
METHOD(NSString*, description, @"<memory of a tensor on the simulated mps device>")
@end

// Freed memory: every message is an error; methods that must not throw record it.
__attribute__((objc_root_class))
@interface SimulatedStorageOfNoTensor
@end
static const char* const kGone =
    "Metal, simulated: a released object was used again: the buffer of a tensor that is gone";
@implementation SimulatedStorageOfNoTensor
- (instancetype)retain {
  objc_simulator_note_misuse(kGone);
  return self;
}
IGNORED(release)
- (NSUInteger)length {
  throw std::runtime_error(kGone);
}
- (void*)contents {
  throw std::runtime_error(kGone);
}
@end

static Class class_of_storage(id object) {
  if (storage_bytes(start_of(object)) != 0) {
    return [SimulatedStorage class];
  }
  // A library with classes may have been loaded at that address since.
  Dl_info library;
  const bool gone = storage_gone(object) && dladdr(object, &library) == 0;
  return gone ? objc_getClass("SimulatedStorageOfNoTensor") : nil;
}

extern "C" __attribute__((visibility("default"))) void metal_host_set_storage(
    uint64_t (*bytes)(const void*),
    void (*hold)(const void*, int64_t),
    bool (*gone)(const void*),
    uint32_t (*element_type)(const void*),
    const std::atomic<bool>* anywhere) {
  storage_bytes = bytes;
  storage_hold = hold;
  storage_gone = gone;
  storage_element_type = element_type;
  objc_simulator_set_foreign_objects(&class_of_storage, anywhere);
}
