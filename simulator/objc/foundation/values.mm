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

// By default a version that is new enough for all checks in torch.
static NSOperatingSystemVersion simulated_macos = {26, 0, 0};
// Sets the version of macOS that host code sees. To be called before host code asks, which it does once.
extern "C" __attribute__((visibility("default"))) void foundation_simulator_set_macos(
    NSInteger major, NSInteger minor) {
  simulated_macos = {major, minor, 0};
}

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  static NSProcessInfo* info = [NSProcessInfo new];
  return info;
}
METHOD(NSOperatingSystemVersion, operatingSystemVersion, simulated_macos)
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version {
  return simulated_macos.majorVersion > version.majorVersion ||
      (simulated_macos.majorVersion == version.majorVersion && simulated_macos.minorVersion >= version.minorVersion);
}
@end
