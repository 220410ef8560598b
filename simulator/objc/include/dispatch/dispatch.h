// The part of libdispatch that Metal host code uses. Queues run their blocks at once, one at a time.
#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __OBJC__
#include <objc/NSObject.h>
@protocol OS_dispatch_object <NSObject>
@end
@protocol OS_dispatch_queue <OS_dispatch_object>
@end
@protocol OS_dispatch_semaphore <OS_dispatch_object>
@end
@protocol OS_dispatch_group <OS_dispatch_object>
@end
@protocol OS_dispatch_data <OS_dispatch_object>
@end
typedef NSObject<OS_dispatch_object>* dispatch_object_t;
typedef NSObject<OS_dispatch_queue>* dispatch_queue_t;
typedef NSObject<OS_dispatch_queue>* dispatch_queue_attr_t;
typedef NSObject<OS_dispatch_semaphore>* dispatch_semaphore_t;
typedef NSObject<OS_dispatch_group>* dispatch_group_t;
typedef NSObject<OS_dispatch_data>* dispatch_data_t;
#define NEW_DISPATCH_OBJECT __attribute__((ns_returns_retained))
#else
#define NEW_DISPATCH_OBJECT
#ifdef __cplusplus
#define DISPATCH_CLASS(NAME) \
  struct NAME##_s : dispatch_object_s {}
typedef struct dispatch_object_s {
}* dispatch_object_t;
#else
#define DISPATCH_CLASS(NAME) struct NAME##_s
typedef void* dispatch_object_t;
#endif
typedef DISPATCH_CLASS(dispatch_queue) * dispatch_queue_t;
typedef struct dispatch_queue_s* dispatch_queue_attr_t;
typedef DISPATCH_CLASS(dispatch_semaphore) * dispatch_semaphore_t;
typedef DISPATCH_CLASS(dispatch_group) * dispatch_group_t;
typedef DISPATCH_CLASS(dispatch_data) * dispatch_data_t;
#endif
#define DISPATCH_QUEUE_SERIAL nullptr
#define DISPATCH_QUEUE_CONCURRENT nullptr
#define DISPATCH_QUEUE_PRIORITY_HIGH 2
#define DISPATCH_QUEUE_PRIORITY_DEFAULT 0
#define DISPATCH_QUEUE_PRIORITY_LOW (-2)
#define DISPATCH_QUEUE_PRIORITY_BACKGROUND INT16_MIN
#if __has_include(<sys/qos.h>) // Darwin's own, where the release's process is built
#include <sys/qos.h>
#else
#define QOS_CLASS_USER_INTERACTIVE 0x21
#define QOS_CLASS_USER_INITIATED 0x19
#define QOS_CLASS_DEFAULT 0x15
#define QOS_CLASS_UTILITY 0x11
#define QOS_CLASS_BACKGROUND 0x09
typedef unsigned qos_class_t;
#endif
#define NSEC_PER_SEC 1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define DISPATCH_TIME_NOW 0ull
#define DISPATCH_TIME_FOREVER (~0ull)
typedef uint64_t dispatch_time_t;
typedef qos_class_t dispatch_qos_class_t;
typedef intptr_t dispatch_once_t;
typedef void (*dispatch_function_t)(void*);
extern "C" {
#ifdef __BLOCKS__
typedef void (^dispatch_block_t)(void);
void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_barrier_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_once(dispatch_once_t* once, dispatch_block_t block);
void dispatch_apply(size_t iterations, dispatch_queue_t queue, void (^block)(size_t));
void dispatch_group_async(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block);
void dispatch_group_notify(dispatch_group_t group, dispatch_queue_t queue, dispatch_block_t block);
// With another block the bytes are not copied, and it runs when the data goes.
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT ((dispatch_block_t) nullptr)
dispatch_data_t dispatch_data_create(const void* bytes, size_t size, dispatch_queue_t queue, dispatch_block_t end)
    NEW_DISPATCH_OBJECT;
#endif
dispatch_semaphore_t dispatch_semaphore_create(intptr_t value) NEW_DISPATCH_OBJECT;
intptr_t dispatch_semaphore_wait(dispatch_semaphore_t semaphore, dispatch_time_t timeout);
intptr_t dispatch_semaphore_signal(dispatch_semaphore_t semaphore);
dispatch_group_t dispatch_group_create(void) NEW_DISPATCH_OBJECT;
void dispatch_group_enter(dispatch_group_t group);
void dispatch_group_leave(dispatch_group_t group);
intptr_t dispatch_group_wait(dispatch_group_t group, dispatch_time_t timeout);
dispatch_time_t dispatch_time(dispatch_time_t when, int64_t nanoseconds);
size_t dispatch_data_get_size(dispatch_data_t data);
dispatch_queue_t dispatch_queue_create(const char* label, dispatch_queue_attr_t attributes) NEW_DISPATCH_OBJECT;
static inline dispatch_queue_attr_t dispatch_queue_attr_make_with_qos_class(
    dispatch_queue_attr_t attributes, dispatch_qos_class_t, int) {
  return attributes; // queues run their blocks at once
}
dispatch_queue_t dispatch_get_main_queue(void);
dispatch_queue_t dispatch_get_global_queue(intptr_t identifier, uintptr_t flags);
const char* dispatch_queue_get_label(dispatch_queue_t queue);
void dispatch_queue_set_specific(dispatch_queue_t queue, const void* key, void* value, dispatch_function_t destroy);
void* dispatch_get_specific(const void* key);
#if !defined(__OBJC__) || !__has_feature(objc_arc)
void dispatch_release(dispatch_object_t object);
void dispatch_retain(dispatch_object_t object);
#endif
}
