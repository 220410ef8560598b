// Conversions between std::string and NSString.
#pragma once
#import <Foundation/Foundation.h>

#include <string>

inline NSString* string_of(const std::string& text) {
  return [[NSString alloc] initWithBytes:text.data() length:text.size() encoding:NSUTF8StringEncoding]
#if !__has_feature(objc_arc)
      .autorelease
#endif
      ;
}
inline std::string text_of(NSString* string) { return string ? std::string(string.UTF8String) : std::string(); }
