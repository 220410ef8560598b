// libdispatch: queues run their blocks at once, in the calling thread, one at a time. Compiled with ARC.
#import <Foundation/Foundation.h>
#import <dispatch/dispatch.h>

#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "methods.h"

@interface SimulatedQueue : NSObject <OS_dispatch_queue> {
 @public
  std::recursive_mutex mutex_;
  std::string label_;
  std::map<const void*, void*> specific_;
}
@end
@implementation SimulatedQueue
@end

// A semaphore, and a group, which counts what has been entered. What is waited for has run already, or is not begun.
@interface SimulatedCounter : NSObject <OS_dispatch_semaphore, OS_dispatch_group> {
 @public
  std::atomic<intptr_t> value_;
  dispatch_block_t notified_;
}
@end
@implementation SimulatedCounter
@end

// Not an NSData, whose memory a subclass would not be given.
@interface BorrowedData : NSObject <OS_dispatch_data> {
 @public
  const void* bytes_;
  NSUInteger size_;
  dispatch_block_t end_;
}
@end
@implementation BorrowedData
METHOD(const void*, bytes, bytes_)
METHOD(NSUInteger, length, size_)
- (void)dealloc {
  end_();
}
@end

static thread_local std::vector<SimulatedQueue*> running;

namespace {

// While a block runs on a queue.
class Turn {
 public:
  explicit Turn(SimulatedQueue* queue) : lock_(queue->mutex_) { running.push_back(queue); }
  ~Turn() { running.pop_back(); }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Blocks run at once: nothing else would signal later, but another thread of the program.
intptr_t never_signalled(dispatch_time_t timeout, const char* function) {
  if (timeout == DISPATCH_TIME_FOREVER) {
    throw std::runtime_error(
        std::string(function) + " waits for what nothing has signalled: on a Mac this never returns");
  }
  return 1;
}

} // namespace

extern "C" {

void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block) {
  SimulatedQueue* serial = (SimulatedQueue*)queue;
  if (serial == nil) {
    throw std::runtime_error("dispatch_sync was given no queue");
  }
  for (SimulatedQueue* outer : running) {
    if (outer == serial) {
      throw std::runtime_error("dispatch_sync on the queue that is running: on a Mac this never returns");
    }
  }
  const Turn turn(serial);
  @autoreleasepool {
    block();
  }
}
void dispatch_barrier_sync(dispatch_queue_t queue, dispatch_block_t block) { dispatch_sync(queue, block); }
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block) {
  const Turn turn((SimulatedQueue*)queue);
  @autoreleasepool {
    block();
  }
}
void dispatch_apply(size_t iterations, dispatch_queue_t queue, void (^block)(size_t)) {
  dispatch_queue_t chosen = queue == nil ? dispatch_get_global_queue(0, 0) : queue;
  for (size_t i = 0; i < iterations; ++i) {
    dispatch_async(chosen, ^{
      block(i);
    });
  }
}

dispatch_semaphore_t dispatch_semaphore_create(intptr_t value) {
  SimulatedCounter* semaphore = [SimulatedCounter new];
  semaphore->value_ = value;
  return semaphore;
}
intptr_t dispatch_semaphore_signal(dispatch_semaphore_t semaphore) {
  return ++((SimulatedCounter*)semaphore)->value_ <= 0;
}
intptr_t dispatch_semaphore_wait(dispatch_semaphore_t semaphore, dispatch_time_t timeout) {
  auto& value = ((SimulatedCounter*)semaphore)->value_;
  if (--value >= 0) {
    return 0;
  }
  ++value;
  return never_signalled(timeout, "dispatch_semaphore_wait");
}

dispatch_group_t dispatch_group_create() { return [SimulatedCounter new]; }
void dispatch_group_enter(dispatch_group_t group) { ++((SimulatedCounter*)group)->value_; }
void dispatch_group_leave(dispatch_group_t group) {
  SimulatedCounter* entered = (SimulatedCounter*)group;
  if (--entered->value_ == 0 && entered->notified_ != nil) {
    dispatch_block_t notified = entered->notified_;
    entered->notified_ = nil;
    notified();
  }
}
void dispatch_group_async(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block) {
  dispatch_group_enter(group);
  dispatch_async(queue, block);
  dispatch_group_leave(group);
}
void dispatch_group_notify(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block) {
  dispatch_group_enter(group);
  ((SimulatedCounter*)group)->notified_ = ^{
    dispatch_async(queue, block);
  };
  dispatch_group_leave(group);
}
intptr_t dispatch_group_wait(dispatch_group_t group, dispatch_time_t timeout) {
  return ((SimulatedCounter*)group)->value_ == 0 ? 0 : never_signalled(timeout, "dispatch_group_wait");
}
dispatch_time_t dispatch_time(dispatch_time_t, int64_t nanoseconds) { return (dispatch_time_t)nanoseconds; }

void dispatch_once(dispatch_once_t* once, dispatch_block_t block) {
  static std::recursive_mutex mutex;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (*once == 0) {
    block();
    *once = -1;
  }
}

dispatch_data_t dispatch_data_create(const void* bytes, size_t size, dispatch_queue_t, dispatch_block_t end) {
  if (end == nil) {
    return (dispatch_data_t)[NSData dataWithBytes:bytes length:size];
  }
  BorrowedData* data = [BorrowedData alloc];
  data->bytes_ = bytes;
  data->size_ = size;
  data->end_ = end;
  return (dispatch_data_t)data;
}
size_t dispatch_data_get_size(dispatch_data_t data) { return ((NSData*)data).length; }
dispatch_queue_t dispatch_queue_create(const char* label, dispatch_queue_attr_t) {
  SimulatedQueue* queue = [SimulatedQueue new];
  queue->label_ = label ? label : "";
  return queue;
}
dispatch_queue_t dispatch_get_main_queue() {
  static dispatch_queue_t queue = dispatch_queue_create("main", nullptr);
  return queue;
}
dispatch_queue_t dispatch_get_global_queue(intptr_t, uintptr_t) {
  static dispatch_queue_t queue = dispatch_queue_create("global", nullptr);
  return queue;
}
const char* dispatch_queue_get_label(dispatch_queue_t queue) { return ((SimulatedQueue*)queue)->label_.c_str(); }
void dispatch_queue_set_specific(dispatch_queue_t queue, const void* key, void* value, dispatch_function_t) {
  ((SimulatedQueue*)queue)->specific_[key] = value;
}
void* dispatch_get_specific(const void* key) {
  if (running.empty()) {
    return nullptr;
  }
  const auto found = running.back()->specific_.find(key);
  return found == running.back()->specific_.end() ? nullptr : found->second;
}

} // extern "C"
