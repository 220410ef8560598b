#include "programs.h"

#import <Block.h>
#import <IOKit/IOKitLib.h>
#import <dispatch/dispatch.h>
#import <objc/runtime.h>

#include <vector>

PROGRAM(strings) {
  NSString* made = [NSString stringWithFormat:@"%@ %d %.2f %s %lu %5d%% %x", @"é€😀", -7, 1.5, "c", 1ul << 40, 42, 255];
  return text(made) + "|" + std::to_string(@"é€😀".length) + "|" + ([made hasPrefix:@"é"] ? "prefix" : "") + "|" +
      ([@"ab" isEqual:[@"a" stringByAppendingString:@"b"]] ? "equal" : "");
}
PROGRAM(numbers) { return text(@[ @1, @2.5, @YES, @(-3ll), @0.1f, @0.1 ]); }
PROGRAM(dictionaries) {
  NSMutableDictionary* table = [NSMutableDictionary dictionaryWithCapacity:2];
  table[@"a"] = @1;
  table[@"b"] = @2;
  table[@"a"] = @3;
  int sum = 0;
  for (NSString* key in table) {
    sum += [table[key] intValue];
  }
  return std::to_string(table.count) + " " + std::to_string(sum) + " " + text(table[@"none"]);
}
PROGRAM(arrays) {
  NSMutableArray* list = [NSMutableArray arrayWithObjects:@"b", @"c", nil];
  [list insertObject:@"a" atIndex:0];
  list[2] = @"d";
  const bool equal = [list containsObject:[@"" stringByAppendingString:@"b"]];
  return text(list) + " " + text(list.lastObject) + (equal && ![list containsObject:@"c"] ? " yes" : " no");
}
PROGRAM(array_index) { return text(@[ @1 ][1]); }
PROGRAM(nil_in_array) {
  id nothing = nil;
  return text(@[ nothing ]);
}

@interface Counter : NSObject {
 @public
  std::vector<int> values_; // constructed and destroyed with the object
}
@property(copy) NSString* name;
@property(weak) Counter* other;
+ (int)alive;
@end
static int counters_alive = 0;
@implementation Counter
- (instancetype)init {
  ++counters_alive;
  values_.resize(3, 7);
  return self;
}
- (void)dealloc {
  --counters_alive;
}
+ (int)alive {
  return counters_alive;
}
- (int)sum {
  int sum = 0;
  for (int value : values_) {
    sum += value;
  }
  return sum;
}
@end
@interface Counter (More)
- (int)twice;
@end
@implementation Counter (More)
- (int)twice {
  return 2 * [(id)self sum];
}
@end
@interface Named : Counter
@end
@implementation Named
- (NSString*)description {
  return [@"named " stringByAppendingString:self.name];
}
- (int)sum {
  return 100 + [super sum];
}
@end

PROGRAM(classes) {
  Named* named = [Named new];
  named.name = @"x";
  return text(named) + " " + std::to_string([(id)named sum]) + " " + std::to_string([named twice]) + " " +
      ([named isKindOfClass:[Counter class]] ? "kind" : "") + " " + class_getName([named superclass]) +
      ([named respondsToSelector:@selector(twice)] ? " responds" : "") +
      ([named respondsToSelector:@selector(notThere)] ? " wrong" : "") +
      (objc_getClass("Named") == [Named class] ? " by name" : "");
}
PROGRAM(reference_counts) {
  Counter* outer = nil;
  __weak Counter* weak = nil;
  @autoreleasepool {
    Counter* first = [Counter new];
    outer = [Counter new];
    outer.other = first;
    weak = first;
    if (weak != first || outer.other != first || [Counter alive] != 2) {
      return "wrong";
    }
  }
  return std::to_string([Counter alive]) + (weak == nil && outer.other == nil ? " weak is nil" : " weak is kept");
}
PROGRAM(blocks) {
  __block int calls = 0;
  NSString* kept = [NSString stringWithFormat:@"%d", 5];
  int (^add)(int) = ^(int by) {
    calls += by;
    return calls + int([kept length]);
  };
  int (^copied)(int) = [add copy];
  NSArray* list = @[ copied ];
  add(1);
  copied(10);
  ((int (^)(int))list[0])(100);
  return std::to_string(calls);
}
PROGRAM(exceptions) {
  std::string said;
  @try {
    @throw @"thrown";
  } @catch (NSNumber* wrong) {
    said = "number";
  } @catch (NSString* right) {
    said = text(right);
  } @finally {
    said += " finally";
  }
  try {
    dispatch_sync(dispatch_queue_create("q", nullptr), ^{
      throw std::runtime_error(" through a block");
    });
  } catch (const std::exception& error) {
    said += error.what();
  }
  return said;
}
PROGRAM(queues) {
  dispatch_queue_t queue = dispatch_queue_create("q", DISPATCH_QUEUE_SERIAL);
  static dispatch_once_t once;
  static int key, runs;
  dispatch_queue_set_specific(queue, &key, &key, nullptr);
  __block bool here = false;
  dispatch_sync(queue, ^{
    here = dispatch_get_specific(&key) == &key;
  });
  for (int i = 0; i < 3; ++i) {
    dispatch_once(&once, ^{
      ++runs;
    });
  }
  return std::to_string(runs) + (here ? " specific " : " ") + dispatch_queue_get_label(queue);
}
PROGRAM(dispatch_data) {
  char bytes[] = "ab";
  __block int ended = 0;
  dispatch_data_t data = dispatch_data_create(bytes, 2, dispatch_get_main_queue(), ^{
    ended++;
  });
  bytes[0] = 'x';
  dispatch_data_t empty = dispatch_data_create(bytes, 0, nil, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
  const std::string held = std::string((const char*)((NSData*)data).bytes, dispatch_data_get_size(data)) + std::to_string(ended);
  data = nil;
  return held + " " + std::to_string(ended) + " " + std::to_string(dispatch_data_get_size(empty));
}
PROGRAM(semaphores_and_groups) {
  dispatch_semaphore_t semaphore = dispatch_semaphore_create(0);
  dispatch_queue_t queue = dispatch_get_global_queue(DISPATCH_QUEUE_PRIORITY_DEFAULT, 0);
  dispatch_async(queue, ^{
    dispatch_semaphore_signal(semaphore);
  });
  const intptr_t first = dispatch_semaphore_wait(semaphore, DISPATCH_TIME_FOREVER);
  const intptr_t second = dispatch_semaphore_wait(semaphore, dispatch_time(DISPATCH_TIME_NOW, NSEC_PER_SEC));
  __block size_t sum = 0;
  dispatch_group_t group = dispatch_group_create();
  dispatch_group_enter(group);
  dispatch_group_notify(group, queue, ^{
    sum *= 10;
  });
  dispatch_group_async(group, queue, ^{
    dispatch_apply(4, queue, ^(size_t i) {
      sum += i;
    });
  });
  const intptr_t entered = dispatch_group_wait(group, DISPATCH_TIME_NOW);
  dispatch_group_leave(group);
  const intptr_t left = dispatch_group_wait(group, DISPATCH_TIME_FOREVER);
  std::string said;
  for (size_t part : {(size_t)first, (size_t)second, (size_t)entered, (size_t)left, sum}) {
    said += std::to_string(part) + " ";
  }
  return said;
}
PROGRAM(semaphore_never_signalled) {
  dispatch_semaphore_wait(dispatch_semaphore_create(0), DISPATCH_TIME_FOREVER);
  return "ran";
}
PROGRAM(no_services) {
  io_iterator_t services = 1;
  const bool asked = IOServiceGetMatchingServices(0, IOServiceMatching("AGXAccelerator"), &services) == KERN_SUCCESS;
  CFTypeRef seven = (__bridge CFTypeRef) @7;
  int value = 0;
  if (CFGetTypeID(seven) == CFNumberGetTypeID() && CFGetTypeID(CFSTR("7")) != CFNumberGetTypeID()) {
    CFNumberGetValue((CFNumberRef)seven, kCFNumberIntType, &value);
  }
  return std::to_string(asked) + " " + std::to_string(services) + " " + std::to_string(value);
}
PROGRAM(nested_dispatch_sync) {
  dispatch_queue_t queue = dispatch_queue_create("q", nullptr);
  dispatch_sync(queue, ^{
    dispatch_sync(queue, ^{
                  });
  });
  return "ran";
}
PROGRAM(message_to_nil) {
  Counter* nothing = nil;
  return std::to_string([(id)nothing sum]) + " " + text(nothing.name);
}
PROGRAM(unknown_message) {
  [(id)[Counter new] performSelector:@selector(notThere)];
  return "ran";
}
PROGRAM(used_after_release) {
  void* address;
  @autoreleasepool {
    address = (__bridge void*)[Counter new];
  }
  return text((__bridge id)address);
}

PROGRAM(urls) {
  NSError* error = nil;
  NSURL* there = [NSURL fileURLWithPath:@"/tmp"];
  NSURL* gone = [there URLByAppendingPathComponent:@"no such file"];
  const bool reached = [there checkResourceIsReachableAndReturnError:nil] && there.isFileURL;
  return std::to_string(reached) + " " + std::to_string([gone checkResourceIsReachableAndReturnError:&error]) + " " +
      text(error);
}
PROGRAM(paths) {
  NSString* path = [@"/a/b/" stringByAppendingPathComponent:@"k.metal"];
  return text(path) + " " + text(path.lastPathComponent) + " " + text(path.pathExtension) + " " +
      text(path.stringByDeletingLastPathComponent) + " " + text(path.stringByDeletingPathExtension) + " " +
      text([@"lib" stringByAppendingPathExtension:@"metallib"]) + " " + text(path.pathComponents) +
      (path.absolutePath ? " absolute" : "");
}
PROGRAM(files) {
  NSFileManager* files = [NSFileManager defaultManager];
  NSString* folder = [NSTemporaryDirectory()
      stringByAppendingPathComponent:[NSString stringWithFormat:@"files-%d", NSProcessInfo.processInfo.processIdentifier]];
  NSString* path = [folder stringByAppendingPathComponent:@"é.txt"];
  NSError* error = nil;
  [files createDirectoryAtPath:folder withIntermediateDirectories:YES attributes:nil error:nil];
  [@"one\ntwo" writeToFile:path atomically:YES encoding:NSUTF8StringEncoding error:nil];
  NSString* read = [NSString stringWithContentsOfFile:path encoding:NSUTF8StringEncoding error:&error];
  NSBundle* bundle = [NSBundle bundleWithPath:folder];
  BOOL is_folder = NO;
  std::string said = text([read componentsSeparatedByString:@"\n"]) + (error ? " error" : "") + " " +
      std::to_string([files contentsAtPath:path].length) + " " +
      text([bundle pathForResource:@"é" ofType:@"txt"].lastPathComponent) + " " +
      text([bundle pathForResource:@"e" ofType:@"txt"]) +
      ([files fileExistsAtPath:folder isDirectory:&is_folder] && is_folder ? " folder " : " ");
  [files removeItemAtPath:folder error:nil];
  NSString* gone = [NSString stringWithContentsOfFile:path encoding:NSUTF8StringEncoding error:&error];
  return said + text(gone) + " " + std::to_string(error.code) + " " + text(error.domain);
}
PROGRAM(texts) {
  NSMutableString* made = [NSMutableString stringWithString:@"é"];
  [made appendFormat:@"%d-%@", MAX(2, 3), @"b"];
  NSRange found = [made rangeOfString:@"-"];
  return text(made) + " " + std::to_string(found.location) + " " + text([made substringFromIndex:found.location + 1]) +
      " " + text([made stringByReplacingOccurrencesOfString:@"3-" withString:@"__"]) + " " + text(@"aB".uppercaseString) +
      (@"x.metal".length == 7 && [@"x.metal" hasSuffix:@".metal"] ? " suffix " : " ") +
      std::to_string(@"12 threads".integerValue + MIN(1, 2));
}
PROGRAM(raised_exception) {
  std::string said;
  @try {
    [NSException raise:NSRangeException format:@"%d is too large", 7];
  } @catch (NSException* exception) {
    said = text(exception.name) + " " + text(exception.reason);
  }
  return said;
}
