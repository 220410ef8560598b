// What metal-cpp needs, with the headers that CoreFoundation brings on a Mac.
#pragma once
#include <dispatch/dispatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef double CFTimeInterval;
typedef unsigned long CFTypeID;
typedef const void* CFTypeRef;
typedef const struct __CFAllocator* CFAllocatorRef;
typedef const struct __CFString* CFStringRef;
typedef const struct __CFNumber* CFNumberRef;
typedef const struct __CFDictionary* CFDictionaryRef;
typedef struct __CFDictionary* CFMutableDictionaryRef;
#define kCFAllocatorDefault ((CFAllocatorRef) nullptr)
#ifdef __OBJC__
#import <Foundation/Foundation.h>
#define CFSTR(text) ((__bridge CFStringRef) @text)
enum { kCFNumberSInt32Type = 3, kCFNumberSInt64Type = 4, kCFNumberIntType = 9, kCFNumberDoubleType = 13 };
// Objects are those of Foundation. Of their types only numbers have an identifier.
static inline CFTypeID CFNumberGetTypeID(void) { return 22; }
static inline CFTypeID CFGetTypeID(CFTypeRef object) {
  return [(__bridge id)object isKindOfClass:[NSNumber class]] ? CFNumberGetTypeID() : 0;
}
static inline bool CFNumberGetValue(CFNumberRef object, long type, void* value) {
  NSNumber* number = (__bridge NSNumber*)object;
  switch (type) {
    case kCFNumberSInt32Type:
    case kCFNumberIntType:
      *(int*)value = number.intValue;
      return true;
    case kCFNumberSInt64Type:
      *(long long*)value = number.longLongValue;
      return true;
    case kCFNumberDoubleType:
      *(double*)value = number.doubleValue;
      return true;
    default:
      return false;
  }
}
#if __has_feature(objc_arc)
static inline void CFRelease(CFTypeRef object) { (void)(__bridge_transfer id)object; }
#else
static inline void CFRelease(CFTypeRef object) { [(id)object release]; }
#endif
#endif
