// Data, URLs, errors and process information. Compiled with ARC.
#import <Foundation/Foundation.h>

#include <cstdlib>
#include <vector>

#include "methods.h"
#include "values.h"

@implementation NSBundle
+ (NSBundle*)mainBundle {
  static NSBundle* bundle = [NSBundle new];
  return bundle;
}
@end

@implementation NSDate
@end

@implementation NSData {
  std::vector<char> bytes_;
}
+ (instancetype)dataWithBytes:(const void*)bytes length:(NSUInteger)length {
  NSData* data = [self alloc];
  data->bytes_.assign((const char*)bytes, (const char*)bytes + length);
  return data;
}
+ (instancetype)dataWithBytesNoCopy:(void*)bytes length:(NSUInteger)length freeWhenDone:(BOOL)release {
  NSData* data = [self dataWithBytes:bytes length:length];
  if (release) {
    free(bytes);
  }
  return data;
}
METHOD(const void*, bytes, bytes_.data())
METHOD(NSUInteger, length, bytes_.size())
@end

@implementation NSURL {
  NSString* path_;
}
+ (instancetype)fileURLWithPath:(NSString*)path {
  NSURL* url = [self alloc];
  url->path_ = path;
  return url;
}
+ (instancetype)URLWithString:(NSString*)text {
  return [self fileURLWithPath:text];
}
METHOD(NSString*, path, path_)
@end

@implementation NSError {
  NSString *domain_, *message_;
  NSInteger code_;
}
+ (instancetype)simulatedErrorOf:(NSString*)domain message:(NSString*)message {
  NSError* error = [self alloc];
  error->domain_ = domain;
  error->code_ = 1;
  error->message_ = message;
  return error;
}
METHOD(NSString*, localizedDescription, message_)
METHOD(NSString*, localizedFailureReason, message_)
METHOD(NSString*, description, message_)
METHOD(NSInteger, code, code_)
METHOD(NSString*, domain, domain_)
METHOD(NSDictionary*, userInfo, [NSDictionary dictionary])
@end

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  static NSProcessInfo* info = [NSProcessInfo new];
  return info;
}
// A macOS version that is new enough for all checks in torch, as on the simulated device.
METHOD(NSOperatingSystemVersion, operatingSystemVersion, {26, 0, 0})
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version {
  return version.majorVersion <= 26;
}
@end
