// Classes that ARC cannot compile: the root class with reference counts, blocks, constant strings.
#import <Foundation/Foundation.h>
#import <dispatch/dispatch.h>

#include <mutex>
#include <string>
#include <unordered_map>

#include "methods.h"
#include "text.h"

extern "C" {
id class_createInstance(Class, size_t);
void object_dispose(id);
void objc_simulator_retain(id);
BOOL objc_simulator_release(id);
NSUInteger objc_simulator_references(id);
BOOL objc_opt_isKindOfClass(id, Class);
BOOL objc_opt_respondsToSelector(id, SEL);
id objc_autorelease(id);
IMP objc_simulator_lookup(id, SEL);
void* _Block_copy(const void*);
void _Block_release(const void*);
void* objc_autoreleasePoolPush();
void objc_autoreleasePoolPop(void*);
}

// Another symbol for a class.
#ifdef __APPLE__
#define ALIAS(SYMBOL, CLASS) asm(".globl _" #SYMBOL "\n.set _" #SYMBOL ", _OBJC_CLASS_$_" #CLASS)
#else
#define ALIAS(SYMBOL, CLASS) asm(".globl " #SYMBOL "\n.set " #SYMBOL ", \"OBJC_CLASS_$_" #CLASS "\"")
#endif

@implementation NSObject
+ (void)initialize {
}
CLASS_METHOD(instancetype, alloc, class_createInstance(self, 0))
CLASS_METHOD(instancetype, new, [[self alloc] init])
METHOD(instancetype, init, self)
- (void)dealloc {
  object_dispose(self);
}
- (instancetype)retain {
  objc_simulator_retain(self);
  return self;
}
- (oneway void)release {
  if (objc_simulator_release(self)) {
    [self dealloc];
  }
}
METHOD(instancetype, autorelease, objc_autorelease(self))
METHOD(NSUInteger, retainCount, objc_simulator_references(self))
// Classes are never freed.
CLASS_METHOD(instancetype, retain, (id)self)
+ (oneway void)release {
}
CLASS_METHOD(instancetype, autorelease, (id)self)
METHOD(Class, class, object_getClass(self))
CLASS_METHOD(Class, class, self)
METHOD(Class, superclass, class_getSuperclass(object_getClass(self)))
CLASS_METHOD(Class, superclass, class_getSuperclass(self))
METHOD(instancetype, self, self)
- (BOOL)isEqual:(id)other {
  return self == other;
}
METHOD(NSUInteger, hash, (NSUInteger)self >> 4)
CLASS_METHOD(NSUInteger, hash, (NSUInteger)self >> 4)
- (BOOL)isKindOfClass:(Class)other {
  return objc_opt_isKindOfClass(self, other);
}
- (BOOL)isMemberOfClass:(Class)other {
  return object_getClass(self) == other;
}
- (BOOL)conformsToProtocol:(Protocol*)protocol {
  return YES;
}
- (BOOL)respondsToSelector:(SEL)selector {
  return objc_opt_respondsToSelector(self, selector);
}
+ (BOOL)instancesRespondToSelector:(SEL)selector {
  return class_respondsToSelector(self, selector);
}
- (id)performSelector:(SEL)selector {
  return ((id (*)(id, SEL))objc_simulator_lookup(self, selector))(self, selector);
}
- (id)performSelector:(SEL)selector withObject:(id)object {
  return ((id (*)(id, SEL, id))objc_simulator_lookup(self, selector))(self, selector, object);
}
METHOD(NSString*, description, string_of(std::string("<") + class_getName(object_getClass(self)) + ">"))
CLASS_METHOD(NSString*, description, string_of(class_getName(self)))
METHOD(NSString*, debugDescription, [self description])
METHOD(id, copy, [self retain])
METHOD(id, mutableCopy, [self retain])
@end

@interface NSAutoreleasePool : NSObject
@end
@implementation NSAutoreleasePool {
  void* mark_;
}
- (instancetype)init {
  mark_ = objc_autoreleasePoolPush();
  return self;
}
- (void)drain {
  [self release];
}
- (void)dealloc {
  objc_autoreleasePoolPop(mark_);
  [super dealloc];
}
@end

// ------------------------------------------------------------------------------------------------ blocks
extern "C" void* objc_simulator_retain_block(const void* block);
@interface NSBlock : NSObject
@end
@implementation NSBlock
// retain returns the block itself: one on the stack stays there, as on a Mac.
METHOD(instancetype, retain, (id)objc_simulator_retain_block(self))
- (oneway void)release {
  _Block_release(self);
}
METHOD(id, copy, (id)_Block_copy(self))
@end
// The first word of each kind of block.
ALIAS(_NSConcreteStackBlock, NSBlock);
ALIAS(_NSConcreteMallocBlock, NSBlock);
ALIAS(_NSConcreteGlobalBlock, NSBlock);

extern "C" void dispatch_release(dispatch_object_t object) { [object release]; }
extern "C" void dispatch_retain(dispatch_object_t object) { [object retain]; }

// ------------------------------------------------------------------------------------------------ constant strings
static std::string utf8_of(const char16_t* units, long count) {
  std::string text;
  for (long i = 0; i < count; ++i) {
    uint32_t c = units[i];
    if (c >= 0xd800 && c < 0xdc00 && i + 1 < count) {
      c = 0x10000 + ((c - 0xd800) << 10) + (units[++i] - 0xdc00);
    }
    if (c < 0x80) {
      text += (char)c;
      continue;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; // bytes that follow the first
    text += (char)("\xc0\xe0\xf0"[more - 1] | c >> 6 * more);
    for (int shift = 6 * (more - 1); shift >= 0; shift -= 6) {
      text += (char)(0x80 | (c >> shift & 63));
    }
  }
  return text;
}

@interface NSConstantString : NSString { // laid out by clang
 @public
  int flags_;
  const char* bytes_;
  long length_;
}
@end

@implementation NSConstantString
METHOD(instancetype, retain, self)
- (oneway void)release {
}
METHOD(instancetype, autorelease, self)
METHOD(id, copy, self)
- (const char*)UTF8String {
  const bool is_utf16 = flags_ & 0x10; // text beyond ASCII
  if (!is_utf16) {
    return bytes_;
  }
  static std::mutex mutex;
  static auto* texts = new std::unordered_map<const void*, std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [place, is_new] = texts->try_emplace(bytes_);
  if (is_new) {
    place->second = utf8_of((const char16_t*)bytes_, length_);
  }
  return place->second.c_str();
}
@end
ALIAS(__CFConstantStringClassReference, NSConstantString);

extern "C" Class NSClassFromString(NSString* name) { return objc_getClass(text_of(name).c_str()); }
