// The memory of a tensor as an MTLBuffer: `tensor.storage().data()`, which host code casts to id<MTLBuffer>, is the first
// byte of host memory on the simulated device. Messages to such an address go to this class, whose `self` is the
// address and which has nothing else. Compiled without ARC.
#include <atomic>
#include <cstdio>
#include <string>

#include "host.h"

extern "C" void objc_simulator_set_foreign_objects(Class (*)(id), const std::atomic<bool>*);

// How many bytes begin at an address, 0 where it is the start of no tensor's memory; and who holds on to them.
static uint64_t (*storage_bytes)(const void*);
static void (*storage_hold)(const void*, int64_t);

@interface SimulatedStorage : NSObject
@end
@implementation SimulatedStorage
// A buffer that is retained outlives its tensor, as on a Mac: the allocator keeps the memory.
- (instancetype)retain {
  storage_hold(self, 1);
  return self;
}
- (oneway void)release {
  storage_hold(self, -1);
}
- (NSUInteger)retainCount {
  return 1;
}
- (void*)contents {
  return self;
}
- (NSUInteger)length {
  return storage_bytes(self);
}
- (NSUInteger)allocatedSize {
  return storage_bytes(self);
}
- (MTLGPUAddress)gpuAddress {
  return (MTLGPUAddress)self;
}
- (id<MTLDevice>)device {
  return simulated_device();
}
- (MTLStorageMode)storageMode {
  return MTLStorageModeShared;
}
- (MTLResourceOptions)resourceOptions {
  return MTLResourceStorageModeShared;
}
- (NSString*)label {
  return @"";
}
- (void)setLabel:(NSString*)label {
}
- (void)didModifyRange:(NSRange)range {
}
- (NSString*)description {
  return @"<memory of a tensor on the simulated mps device>";
}
@end

static Class class_of_storage(id object) { return storage_bytes(object) != 0 ? [SimulatedStorage class] : nil; }

extern "C" __attribute__((visibility("default"))) void metal_host_set_storage(
    uint64_t (*bytes)(const void*), void (*hold)(const void*, int64_t), const std::atomic<bool>* anywhere) {
  storage_bytes = bytes;
  storage_hold = hold;
  objc_simulator_set_foreign_objects(&class_of_storage, anywhere);
}
