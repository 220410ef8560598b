// The registry of services, which has none: nothing matches.
#pragma once
#include <CoreFoundation/CoreFoundation.h>
#include <mach/mach.h>
typedef mach_port_t io_object_t;
typedef io_object_t io_iterator_t, io_service_t, io_registry_entry_t;
#define IO_OBJECT_NULL 0
#define kIOMainPortDefault 0
#define kIOMasterPortDefault 0
static inline CFMutableDictionaryRef IOServiceMatching(const char*) { return nullptr; }
static inline kern_return_t IOServiceGetMatchingServices(mach_port_t, CFDictionaryRef, io_iterator_t* existing) {
  *existing = IO_OBJECT_NULL;
  return KERN_SUCCESS;
}
static inline io_service_t IOServiceGetMatchingService(mach_port_t, CFDictionaryRef) { return IO_OBJECT_NULL; }
static inline io_object_t IOIteratorNext(io_iterator_t) { return IO_OBJECT_NULL; }
static inline kern_return_t IOObjectRelease(io_object_t) { return KERN_SUCCESS; }
static inline CFTypeRef IORegistryEntryCreateCFProperty(io_registry_entry_t, CFStringRef, CFAllocatorRef, uint32_t) {
  return nullptr;
}
