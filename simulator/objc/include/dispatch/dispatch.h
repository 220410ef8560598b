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
@protocol OS_dispatch_data <OS_dispatch_object>
@end
typedef NSObject<OS_dispatch_object>* dispatch_object_t;
typedef NSObject<OS_dispatch_queue>* dispatch_queue_t;
typedef NSObject<OS_dispatch_queue>* dispatch_queue_attr_t;
typedef NSObject<OS_dispatch_data>* dispatch_data_t;
#define NEW_DISPATCH_OBJECT __attribute__((ns_returns_retained))
#else
#define NEW_DISPATCH_OBJECT
typedef struct dispatch_queue_s* dispatch_queue_t;
typedef struct dispatch_queue_s* dispatch_queue_attr_t;
typedef struct dispatch_object_s* dispatch_object_t;
typedef struct dispatch_data_s* dispatch_data_t;
#endif
#define DISPATCH_QUEUE_SERIAL nullptr
#define DISPATCH_QUEUE_CONCURRENT nullptr
#define DISPATCH_TIME_FOREVER (~0ull)
typedef intptr_t dispatch_once_t;
typedef void (*dispatch_function_t)(void*);
extern "C" {
#ifdef __BLOCKS__
typedef void (^dispatch_block_t)(void);
void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_barrier_sync(dispatch_queue_t queue, dispatch_block_t block);
void dispatch_once(dispatch_once_t* once, dispatch_block_t block);
// With another block the bytes are not copied, and it runs when the data goes.
#define DISPATCH_DATA_DESTRUCTOR_DEFAULT ((dispatch_block_t) nullptr)
dispatch_data_t dispatch_data_create(const void* bytes, size_t size, dispatch_queue_t queue, dispatch_block_t end)
    NEW_DISPATCH_OBJECT;
#endif
size_t dispatch_data_get_size(dispatch_data_t data);
dispatch_queue_t dispatch_queue_create(const char* label, dispatch_queue_attr_t attributes) NEW_DISPATCH_OBJECT;
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
