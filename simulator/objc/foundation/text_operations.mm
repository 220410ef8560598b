// What strings say and make of their text. Compiled with ARC.
#import <Foundation/Foundation.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "methods.h"
#include "text.h"

// Where the UTF-16 unit with this index begins in UTF-8.
static size_t byte_of(const std::string& text, NSUInteger unit) {
  NSUInteger units = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (units >= unit && (i == text.size() || (text[i] & 0xc0) != 0x80)) {
      return i;
    }
    const auto byte = i < text.size() ? (unsigned char)text[i] : 0;
    units += (byte & 0xc0) == 0x80 || i == text.size() ? 0 : byte >= 0xf0 ? 2 : 1;
  }
  throw std::out_of_range("NSRangeException: index " + std::to_string(unit) + " beyond the end of an NSString");
}
static std::string changed(NSString* string, int (*change)(int)) { // letters of ASCII
  std::string text = text_of(string);
  std::transform(text.begin(), text.end(), text.begin(), [change](unsigned char c) { return c < 128 ? change(c) : c; });
  return text;
}

@implementation NSString (Text)
METHOD(int, intValue, (int)atoll(self.UTF8String))
METHOD(NSInteger, integerValue, atoll(self.UTF8String))
METHOD(long long, longLongValue, atoll(self.UTF8String))
METHOD(float, floatValue, (float)atof(self.UTF8String))
METHOD(double, doubleValue, atof(self.UTF8String))
METHOD(BOOL, boolValue, self.length > 0 && strchr("YyTt123456789", self.UTF8String[0]) != nullptr)
METHOD(NSString*, lowercaseString, string_of(changed(self, tolower)))
METHOD(NSString*, uppercaseString, string_of(changed(self, toupper)))
- (instancetype)initWithString:(NSString*)text {
  return [self initWithUTF8String:text.UTF8String];
}
- (instancetype)initWithCString:(const char*)text encoding:(NSStringEncoding)encoding {
  return [self initWithUTF8String:text];
}
- (instancetype)initWithData:(NSData*)data encoding:(NSStringEncoding)encoding {
  return [self initWithBytes:data.bytes length:data.length encoding:encoding];
}
- (const char*)cStringUsingEncoding:(NSStringEncoding)encoding {
  return self.UTF8String;
}
- (NSData*)dataUsingEncoding:(NSStringEncoding)encoding {
  return [NSData dataWithBytes:self.UTF8String length:text_of(self).size()];
}
- (NSUInteger)lengthOfBytesUsingEncoding:(NSStringEncoding)encoding {
  return text_of(self).size();
}
- (unichar)characterAtIndex:(NSUInteger)index {
  const std::string text = text_of(self);
  const auto byte = (unsigned char)text.c_str()[byte_of(text, index)];
  if (byte == 0 || byte >= 128) {
    throw std::out_of_range("-[NSString characterAtIndex:] is simulated for the characters of ASCII");
  }
  return byte;
}
- (BOOL)hasSuffix:(NSString*)part {
  const std::string text = text_of(self), end = text_of(part);
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}
- (NSComparisonResult)compare:(NSString*)other {
  const int order = text_of(self).compare(text_of(other));
  return order < 0 ? NSOrderedAscending : order > 0 ? NSOrderedDescending : NSOrderedSame;
}
- (NSRange)rangeOfString:(NSString*)part {
  const std::string text = text_of(self);
  const size_t found = text.find(text_of(part));
  if (found == std::string::npos || part.length == 0) {
    return NSMakeRange(NSNotFound, 0);
  }
  return NSMakeRange(string_of(text.substr(0, found)).length, part.length);
}
- (NSString*)substringFromIndex:(NSUInteger)index {
  return string_of(text_of(self).substr(byte_of(text_of(self), index)));
}
- (NSString*)substringToIndex:(NSUInteger)index {
  return string_of(text_of(self).substr(0, byte_of(text_of(self), index)));
}
- (NSString*)substringWithRange:(NSRange)range {
  return [[self substringToIndex:range.location + range.length] substringFromIndex:range.location];
}
- (NSString*)stringByReplacingOccurrencesOfString:(NSString*)part withString:(NSString*)other {
  return part.length ? [[self componentsSeparatedByString:part] componentsJoinedByString:other] : self;
}
- (NSArray*)componentsSeparatedByString:(NSString*)separator {
  const std::string text = text_of(self), between = text_of(separator);
  NSMutableArray* parts = [NSMutableArray array];
  size_t begin = 0;
  for (size_t end; !between.empty() && (end = text.find(between, begin)) != std::string::npos;) {
    [parts addObject:string_of(text.substr(begin, end - begin))];
    begin = end + between.size();
  }
  [parts addObject:string_of(text.substr(begin))];
  return parts;
}
@end
