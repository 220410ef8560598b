// Paths, files, bundles and the process. Compiled with ARC.
#import <Foundation/Foundation.h>

#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "methods.h"
#include "text.h"

namespace fs = std::filesystem;
extern char** environ;

namespace {

NSString* string_of_path(const fs::path& path) { return string_of(path.string()); }
// Without a slash at its end.
fs::path path_of(NSString* string) {
  std::string text = text_of(string);
  while (text.size() > 1 && text.back() == '/') {
    text.pop_back();
  }
  return text;
}
void put_error(NSError** error, const std::string& path, int code) {
  if (error) {
    const std::string text = path + ": " + strerror(code);
    *error = [NSError errorWithDomain:NSPOSIXErrorDomain
                                 code:code
                             userInfo:@{NSLocalizedDescriptionKey : string_of(text)}];
  }
}
// Whether the file could be read.
bool read_file(NSString* path, std::string* content, NSError** error) {
  errno = 0;
  std::ifstream file(text_of(path), std::ios::binary);
  std::stringstream read;
  if (!file || fs::is_directory(path_of(path)) || (read << file.rdbuf(), file.bad())) {
    put_error(error, text_of(path), fs::is_directory(path_of(path)) ? EISDIR : errno ? errno : EIO);
    return false;
  }
  *content = read.str();
  return true;
}
bool write_file(NSString* path, const void* bytes, size_t size, NSError** error) {
  errno = 0;
  std::ofstream file(text_of(path), std::ios::binary);
  if (!file.write((const char*)bytes, (std::streamsize)size) || !file.flush()) {
    put_error(error, text_of(path), errno ? errno : EIO);
    return false;
  }
  return true;
}

} // namespace

@implementation NSString (Files)
- (NSArray*)pathComponents {
  NSMutableArray* parts = [NSMutableArray array];
  for (const fs::path& part : path_of(self)) {
    [parts addObject:string_of_path(part)];
  }
  return parts;
}
METHOD(BOOL, isAbsolutePath, path_of(self).is_absolute() || text_of(self)[0] == '~')
METHOD(NSString*, lastPathComponent, path_of(self) == "/" ? @"/" : string_of_path(path_of(self).filename()))
- (NSString*)pathExtension {
  const std::string extension = path_of(self).extension().string();
  return string_of(extension.empty() ? "" : extension.substr(1));
}
METHOD(NSString*, stringByDeletingLastPathComponent, string_of_path(path_of(self).parent_path()))
METHOD(NSString*, stringByDeletingPathExtension, string_of_path(path_of(self).replace_extension()))
METHOD(
    NSString*, stringByStandardizingPath, string_of_path(path_of(self.stringByExpandingTildeInPath).lexically_normal()))
- (NSString*)stringByExpandingTildeInPath {
  const std::string text = text_of(self);
  const bool home = text == "~" || text.compare(0, 2, "~/") == 0;
  return home ? string_of(text_of(NSHomeDirectory()) + text.substr(1)) : self;
}
METHOD(const char*, fileSystemRepresentation, self.UTF8String)
- (NSString*)stringByAppendingPathComponent:(NSString*)part {
  std::string text = text_of(part);
  text.erase(0, text.find_first_not_of('/'));
  return self.length ? string_of_path(path_of(string_of_path(path_of(self) / text))) : string_of(text);
}
- (NSString*)stringByAppendingPathExtension:(NSString*)part {
  return string_of(path_of(self).string() + "." + text_of(part));
}
+ (instancetype)stringWithContentsOfFile:(NSString*)path encoding:(NSStringEncoding)encoding error:(NSError**)error {
  return [[self alloc] initWithContentsOfFile:path encoding:encoding error:error];
}
+ (instancetype)stringWithContentsOfURL:(NSURL*)url encoding:(NSStringEncoding)encoding error:(NSError**)error {
  return [[self alloc] initWithContentsOfFile:url.path encoding:encoding error:error];
}
- (instancetype)initWithContentsOfFile:(NSString*)path encoding:(NSStringEncoding)encoding error:(NSError**)error {
  std::string content;
  if (!read_file(path, &content, error)) {
    return nil;
  }
  return [self initWithBytes:content.data() length:content.size() encoding:encoding];
}
- (BOOL)writeToFile:(NSString*)path
         atomically:(BOOL)atomically
           encoding:(NSStringEncoding)encoding
              error:(NSError**)error {
  return write_file(path, self.UTF8String, text_of(self).size(), error);
}
@end

@implementation NSData (Files)
+ (instancetype)dataWithContentsOfFile:(NSString*)path {
  return [self dataWithContentsOfFile:path options:0 error:nil];
}
+ (instancetype)dataWithContentsOfURL:(NSURL*)url {
  return [self dataWithContentsOfFile:url.path options:0 error:nil];
}
+ (instancetype)dataWithContentsOfFile:(NSString*)path options:(NSUInteger)options error:(NSError**)error {
  std::string content;
  return read_file(path, &content, error) ? [self dataWithBytes:content.data() length:content.size()] : nil;
}
- (BOOL)writeToFile:(NSString*)path atomically:(BOOL)atomically {
  return write_file(path, self.bytes, self.length, nil);
}
@end

@implementation NSFileManager
+ (NSFileManager*)defaultManager {
  static NSFileManager* files = [NSFileManager new];
  return files;
}
METHOD(NSString*, currentDirectoryPath, string_of_path(fs::current_path()))
METHOD(NSURL*, temporaryDirectory, [NSURL fileURLWithPath:NSTemporaryDirectory()])
- (BOOL)fileExistsAtPath:(NSString*)path {
  return access(text_of(path).c_str(), F_OK) == 0;
}
- (BOOL)fileExistsAtPath:(NSString*)path isDirectory:(BOOL*)folder {
  if (folder) {
    std::error_code failed;
    *folder = fs::is_directory(path_of(path), failed);
  }
  return [self fileExistsAtPath:path];
}
- (BOOL)isReadableFileAtPath:(NSString*)path {
  return access(text_of(path).c_str(), R_OK) == 0;
}
- (NSData*)contentsAtPath:(NSString*)path {
  return [NSData dataWithContentsOfFile:path];
}
- (NSArray*)contentsOfDirectoryAtPath:(NSString*)path error:(NSError**)error {
  std::error_code failed;
  NSMutableArray* names = [NSMutableArray array];
  for (fs::directory_iterator file(path_of(path), failed), end; !failed && file != end; file.increment(failed)) {
    [names addObject:string_of_path(file->path().filename())];
  }
  if (failed) {
    put_error(error, text_of(path), failed.value());
  }
  return failed ? nil : names;
}
- (BOOL)createDirectoryAtPath:(NSString*)path
    withIntermediateDirectories:(BOOL)all
                     attributes:(NSDictionary*)attributes
                          error:(NSError**)error {
  std::error_code failed;
  const bool made = all ? fs::create_directories(path_of(path), failed) : fs::create_directory(path_of(path), failed);
  if (!failed && !made && !all) {
    failed = std::make_error_code(std::errc::file_exists);
  }
  if (failed) {
    put_error(error, text_of(path), failed.value());
  }
  return !failed;
}
- (BOOL)removeItemAtPath:(NSString*)path error:(NSError**)error {
  std::error_code failed;
  if (fs::remove_all(path_of(path), failed) == 0 && !failed) {
    failed = std::make_error_code(std::errc::no_such_file_or_directory);
  }
  if (failed) {
    put_error(error, text_of(path), failed.value());
  }
  return !failed;
}
@end

// The main bundle of a program without one, as Python is, is the folder of its executable.
@implementation NSBundle {
  NSString* path_;
}
+ (NSBundle*)mainBundle {
  static NSBundle* bundle = [NSBundle bundleWithPath:string_of_path(fs::read_symlink("/proc/self/exe").parent_path())];
  return bundle;
}
+ (NSBundle*)bundleForClass:(Class)of {
  return [NSBundle mainBundle];
}
+ (instancetype)bundleWithPath:(NSString*)path {
  if (![NSFileManager.defaultManager fileExistsAtPath:path]) {
    return nil;
  }
  NSBundle* bundle = [self alloc];
  bundle->path_ = path;
  return bundle;
}
+ (NSBundle*)bundleWithIdentifier:(NSString*)identifier {
  return nil;
}
METHOD(NSString*, bundlePath, path_)
METHOD(NSString*, resourcePath, path_)
METHOD(NSString*, bundleIdentifier, nil)
METHOD(NSURL*, bundleURL, [NSURL fileURLWithPath:path_])
METHOD(NSURL*, resourceURL, [NSURL fileURLWithPath:path_])
- (NSString*)pathForResource:(NSString*)name ofType:(NSString*)type {
  NSString* file = type.length ? [name stringByAppendingPathExtension:type] : name;
  NSString* path = [path_ stringByAppendingPathComponent:file];
  return [NSFileManager.defaultManager fileExistsAtPath:path] ? path : nil;
}
- (NSURL*)URLForResource:(NSString*)name withExtension:(NSString*)type {
  NSString* path = [self pathForResource:name ofType:type];
  return path ? [NSURL fileURLWithPath:path] : nil;
}
@end

@implementation NSProcessInfo (System)
METHOD(NSString*, processName, string_of(program_invocation_short_name))
METHOD(int, processIdentifier, getpid())
METHOD(NSUInteger, processorCount, std::thread::hardware_concurrency())
METHOD(NSUInteger, activeProcessorCount, std::thread::hardware_concurrency())
METHOD(unsigned long long, physicalMemory, (unsigned long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE))
- (NSTimeInterval)systemUptime {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
- (NSString*)operatingSystemVersionString {
  const NSOperatingSystemVersion version = self.operatingSystemVersion;
  return [NSString stringWithFormat:@"Version %ld.%ld", version.majorVersion, version.minorVersion];
}
- (NSDictionary*)environment {
  NSMutableDictionary* variables = [NSMutableDictionary dictionary];
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    variables[string_of(text.substr(0, equals))] = string_of(text.substr(equals + 1));
  }
  return variables;
}
@end

extern "C" NSString* NSTemporaryDirectory() { return string_of(fs::temp_directory_path().string() + "/"); }
extern "C" NSString* NSHomeDirectory() {
  const char* home = getenv("HOME");
  return string_of(home ? home : "/");
}
