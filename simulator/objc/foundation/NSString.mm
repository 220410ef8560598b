// Strings in UTF-8, and formatting. Compiled with ARC.
#import <Foundation/Foundation.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "methods.h"
#include "text.h"

namespace {

std::string printed(const std::string& format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char buffer[512];
  std::vsnprintf(buffer, sizeof(buffer), format.c_str(), arguments);
  va_end(arguments);
  return buffer;
}

// One conversion of a format, such as `%@` or `%5.2f`.
std::string converted(const std::string& piece, va_list* arguments) {
  const bool wide = piece.find_first_of("lzqtj") != std::string::npos;
  switch (piece.back()) {
    case '%':
      return "%";
    case '@': {
      id object = va_arg(*arguments, id);
      return object ? text_of([object description]) : "(null)";
    }
    case 's': {
      const char* text = va_arg(*arguments, const char*);
      return text ? text : "(null)";
    }
    case 'p':
      return printed("%p", va_arg(*arguments, void*));
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return printed(piece, va_arg(*arguments, double));
    default:
      return wide ? printed(piece, va_arg(*arguments, long)) : printed(piece, va_arg(*arguments, int));
  }
}

std::string formatted(NSString* format, va_list given) {
  va_list arguments;
  va_copy(arguments, given);
  const std::string text = text_of(format);
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      result += text[i++];
      continue;
    }
    const size_t end = text.find_first_of("@diouxXeEfFgGaAcsp%", i + 1);
    if (end == std::string::npos) {
      break;
    }
    result += converted(text.substr(i, end - i + 1), &arguments);
    i = end + 1;
  }
  va_end(arguments);
  return result;
}

} // namespace

@interface SimulatedString : NSString {
 @public
  std::string text_;
}
@end

@implementation NSString
CLASS_METHOD(instancetype, alloc, self == [NSString class] ? (id)[SimulatedString alloc] : [super alloc])
CLASS_METHOD(instancetype, string, [[self alloc] init])
+ (instancetype)stringWithUTF8String:(const char*)text {
  return [[self alloc] initWithUTF8String:text];
}
+ (instancetype)stringWithCString:(const char*)text encoding:(NSStringEncoding)encoding {
  return [[self alloc] initWithUTF8String:text];
}
+ (instancetype)stringWithString:(NSString*)text {
  return [[self alloc] initWithUTF8String:text.UTF8String];
}
+ (instancetype)stringWithFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  const std::string text = formatted(format, arguments);
  va_end(arguments);
  return [[self alloc] initWithUTF8String:text.c_str()];
}
- (instancetype)initWithFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  const std::string text = formatted(format, arguments);
  va_end(arguments);
  return [self initWithUTF8String:text.c_str()];
}
- (instancetype)initWithFormat:(NSString*)format arguments:(va_list)arguments {
  return [self initWithUTF8String:formatted(format, arguments).c_str()];
}
- (NSString*)stringByAppendingFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  NSString* text = [[NSString alloc] initWithFormat:format arguments:arguments];
  va_end(arguments);
  return [self stringByAppendingString:text];
}
- (instancetype)initWithUTF8String:(const char*)text {
  return [self initWithBytes:text length:strlen(text) encoding:NSUTF8StringEncoding];
}
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding {
  return self;
}
METHOD(const char*, UTF8String, "")
- (NSUInteger)length { // in UTF-16 units
  NSUInteger units = 0;
  for (const char* c = self.UTF8String; *c; ++c) {
    const auto byte = (unsigned char)*c;
    units += (byte & 0xc0) == 0x80 ? 0 : byte >= 0xf0 ? 2 : 1;
  }
  return units;
}
- (BOOL)isEqualToString:(NSString*)other {
  return other != nil && strcmp(self.UTF8String, other.UTF8String) == 0;
}
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSString class]] && [self isEqualToString:other];
}
METHOD(NSUInteger, hash, std::hash<std::string>()(self.UTF8String))
- (BOOL)containsString:(NSString*)part {
  return strstr(self.UTF8String, part.UTF8String) != nullptr;
}
- (BOOL)hasPrefix:(NSString*)part {
  return strncmp(self.UTF8String, part.UTF8String, strlen(part.UTF8String)) == 0;
}
- (NSString*)stringByAppendingString:(NSString*)other {
  return string_of(text_of(self) + text_of(other));
}
METHOD(NSString*, description, self)
METHOD(id, mutableCopy, [NSMutableString stringWithString:self])
@end

@implementation SimulatedString
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding {
  text_.assign((const char*)bytes, length);
  return self;
}
METHOD(const char*, UTF8String, text_.c_str())
@end

@implementation NSMutableString {
  std::string text_;
}
+ (instancetype)stringWithCapacity:(NSUInteger)capacity {
  return [[self alloc] init];
}
- (instancetype)initWithBytes:(const void*)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding {
  text_.assign((const char*)bytes, length);
  return self;
}
METHOD(const char*, UTF8String, text_.c_str())
METHOD(id, copy, string_of(text_))
- (void)appendString:(NSString*)text {
  text_ += text_of(text);
}
- (void)appendFormat:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  text_ += formatted(format, arguments);
  va_end(arguments);
}
- (void)setString:(NSString*)text {
  text_ = text_of(text);
}
@end

extern "C" void NSLog(NSString* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s\n", formatted(format, arguments).c_str());
  va_end(arguments);
}
