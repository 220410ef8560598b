// Data, URLs, dates, errors, exceptions and process information. Compiled with ARC.
#import <Foundation/Foundation.h>

#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "methods.h"
#include "values.h"

NSString* const NSLocalizedDescriptionKey = @"NSLocalizedDescription";
NSString* const NSCocoaErrorDomain = @"NSCocoaErrorDomain";
NSString* const NSPOSIXErrorDomain = @"NSPOSIXErrorDomain";
NSExceptionName const NSGenericException = @"NSGenericException";
NSExceptionName const NSInternalInconsistencyException = @"NSInternalInconsistencyException";
NSExceptionName const NSInvalidArgumentException = @"NSInvalidArgumentException";
NSExceptionName const NSRangeException = @"NSRangeException";

@implementation NSException {
  NSString *name_, *reason_;
  NSDictionary* info_;
}
+ (NSException*)exceptionWithName:(NSExceptionName)name reason:(NSString*)reason userInfo:(NSDictionary*)info {
  return [[self alloc] initWithName:name reason:reason userInfo:info];
}
+ (void)raise:(NSExceptionName)name format:(NSString*)format, ... {
  va_list arguments;
  va_start(arguments, format);
  NSString* reason = [[NSString alloc] initWithFormat:format arguments:arguments];
  va_end(arguments);
  @throw [self exceptionWithName:name reason:reason userInfo:nil];
}
- (instancetype)initWithName:(NSExceptionName)name reason:(NSString*)reason userInfo:(NSDictionary*)info {
  name_ = name;
  reason_ = reason;
  info_ = info;
  return self;
}
- (void)raise {
  @throw self;
}
METHOD(NSExceptionName, name, name_)
METHOD(NSString*, reason, reason_)
METHOD(NSDictionary*, userInfo, info_)
METHOD(NSArray*, callStackSymbols, [NSArray array])
METHOD(NSString*, description, reason_)
@end

@implementation NSDate {
  NSTimeInterval since1970_;
}
+ (instancetype)date {
  NSDate* date = [self alloc];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  date->since1970_ = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
  return date;
}
METHOD(NSTimeInterval, timeIntervalSince1970, since1970_)
METHOD(NSTimeInterval, timeIntervalSinceReferenceDate, since1970_ - 978307200)
METHOD(NSTimeInterval, timeIntervalSinceNow, [self timeIntervalSinceDate:[NSDate date]])
- (NSTimeInterval)timeIntervalSinceDate:(NSDate*)other {
  return since1970_ - other->since1970_;
}
@end

@implementation NSData {
 @public
  std::vector<char> bytes_;
}
CLASS_METHOD(instancetype, data, [self alloc])
+ (instancetype)dataWithData:(NSData*)other {
  return [self dataWithBytes:other.bytes length:other.length];
}
- (BOOL)isEqualToData:(NSData*)other {
  return other != nil && bytes_ == other->bytes_;
}
- (BOOL)isEqual:(id)other {
  return [other isKindOfClass:[NSData class]] && [self isEqualToData:other];
}
METHOD(id, mutableCopy, [NSMutableData dataWithData:self])
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

@implementation NSMutableData
+ (instancetype)dataWithLength:(NSUInteger)length {
  NSMutableData* data = [self alloc];
  data->bytes_.resize(length);
  return data;
}
+ (instancetype)dataWithCapacity:(NSUInteger)capacity {
  return [self alloc];
}
METHOD(void*, mutableBytes, bytes_.data())
METHOD(id, copy, [NSData dataWithData:self])
- (void)appendBytes:(const void*)bytes length:(NSUInteger)length {
  bytes_.insert(bytes_.end(), (const char*)bytes, (const char*)bytes + length);
}
- (void)appendData:(NSData*)other {
  const std::vector<char> added = other->bytes_;
  [self appendBytes:added.data() length:added.size()];
}
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
  return [self fileURLWithPath:[text hasPrefix:@"file://"] ? [text substringFromIndex:7] : text];
}
+ (instancetype)fileURLWithPath:(NSString*)path isDirectory:(BOOL)folder {
  return [self fileURLWithPath:path];
}
METHOD(NSString*, path, path_)
METHOD(BOOL, isFileURL, YES)
- (BOOL)checkResourceIsReachableAndReturnError:(NSError* __autoreleasing*)error {
  const BOOL there = [[NSFileManager defaultManager] fileExistsAtPath:path_];
  if (!there && error) {
    *error = [NSError simulatedErrorOf:@"NSCocoaErrorDomain"
                               message:[path_ stringByAppendingString:@" does not exist"]];
  }
  return there;
}
METHOD(NSString*, absoluteString, [@"file://" stringByAppendingString:path_])
FORWARDED(NSString*, lastPathComponent, path_)
FORWARDED(NSString*, pathExtension, path_)
FORWARDED(const char*, fileSystemRepresentation, path_)
METHOD(NSString*, description, self.absoluteString)
METHOD(NSURL*, URLByDeletingLastPathComponent, [NSURL fileURLWithPath:path_.stringByDeletingLastPathComponent])
- (NSURL*)URLByAppendingPathComponent:(NSString*)part {
  return [NSURL fileURLWithPath:[path_ stringByAppendingPathComponent:part]];
}
- (NSURL*)URLByAppendingPathExtension:(NSString*)part {
  return [NSURL fileURLWithPath:[path_ stringByAppendingPathExtension:part]];
}
@end

@implementation NSError {
  NSString *domain_, *message_;
  NSInteger code_;
  NSDictionary* info_;
}
+ (instancetype)errorWithDomain:(NSString*)domain code:(NSInteger)code userInfo:(NSDictionary*)info {
  NSString* said = info[NSLocalizedDescriptionKey];
  NSString* otherwise =
      [NSString stringWithFormat:@"The operation couldn’t be completed. (%@ error %ld.)", domain, code];
  NSError* error = [self simulatedErrorOf:domain message:said ? said : otherwise];
  error->code_ = code;
  error->info_ = info;
  return error;
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
METHOD(NSString*, localizedRecoverySuggestion, info_[@"NSLocalizedRecoverySuggestion"])
METHOD(NSArray*, localizedRecoveryOptions, info_[@"NSLocalizedRecoveryOptions"])
METHOD(NSString*, description, message_)
METHOD(NSInteger, code, code_)
METHOD(NSString*, domain, domain_)
METHOD(NSDictionary*, userInfo, info_ ? info_ : [NSDictionary dictionary])
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
