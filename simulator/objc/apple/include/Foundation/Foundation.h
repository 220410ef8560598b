// The part of Foundation that Metal code uses, declared by hand for type checking only.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <objc/objc.h>
#include <objc/NSObject.h>

#ifndef NS_ENUM
#define NS_ENUM(type, name) enum name : type name; enum name : type
// In C++ options are plain numbers, which can be joined with `|` and given as 0.
#define NS_OPTIONS(type, name) type name; enum : type
#endif
#ifndef NSUIntegerMax
#define NSUIntegerMax UINTPTR_MAX
#define NSIntegerMax INTPTR_MAX
#endif

typedef double NSTimeInterval;
typedef unsigned short unichar;
typedef NSUInteger NSStringEncoding;
enum { NSASCIIStringEncoding = 1, NSUTF8StringEncoding = 4 };
typedef struct _NSRange { NSUInteger location; NSUInteger length; } NSRange;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
  NSRange range; range.location = location; range.length = length; return range;
}
typedef struct {
  unsigned long state;
  __unsafe_unretained id *itemsPtr;
  unsigned long *mutationsPtr;
  unsigned long extra[5];
} NSFastEnumerationState;

@class NSArray, NSData, NSDictionary, NSError, NSNumber, NSSet, NSString, NSURL;

@protocol NSCopying
@end
@protocol NSFastEnumeration
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState *)state
                                  objects:(__unsafe_unretained id [])buffer
                                    count:(NSUInteger)length;
@end

@interface NSString : NSObject <NSCopying>
@property (readonly) NSUInteger length;
@property (readonly) const char *UTF8String;
+ (instancetype)string;
+ (instancetype)stringWithUTF8String:(const char *)text;
+ (instancetype)stringWithCString:(const char *)text encoding:(NSStringEncoding)encoding;
+ (instancetype)stringWithFormat:(NSString *)format, ...;
+ (instancetype)stringWithString:(NSString *)text;
- (instancetype)initWithUTF8String:(const char *)text;
- (instancetype)initWithBytes:(const void *)bytes length:(NSUInteger)length encoding:(NSStringEncoding)encoding;
- (instancetype)initWithFormat:(NSString *)format, ...;
- (BOOL)isEqualToString:(NSString *)other;
- (BOOL)containsString:(NSString *)part;
- (BOOL)hasPrefix:(NSString *)part;
- (NSString *)stringByAppendingString:(NSString *)other;
@end

@interface NSValue : NSObject <NSCopying>
@end

@interface NSNumber : NSValue
@property (readonly) int intValue;
@property (readonly) unsigned int unsignedIntValue;
@property (readonly) long longValue;
@property (readonly) unsigned long unsignedLongValue;
@property (readonly) long long longLongValue;
@property (readonly) unsigned long long unsignedLongLongValue;
@property (readonly) float floatValue;
@property (readonly) double doubleValue;
@property (readonly) NSInteger integerValue;
@property (readonly) NSUInteger unsignedIntegerValue;
@property (readonly) BOOL boolValue;
- (instancetype)initWithInteger:(NSInteger)value;
+ (NSNumber *)numberWithChar:(char)value;
+ (NSNumber *)numberWithUnsignedChar:(unsigned char)value;
+ (NSNumber *)numberWithShort:(short)value;
+ (NSNumber *)numberWithUnsignedShort:(unsigned short)value;
+ (NSNumber *)numberWithInt:(int)value;
+ (NSNumber *)numberWithUnsignedInt:(unsigned int)value;
+ (NSNumber *)numberWithLong:(long)value;
+ (NSNumber *)numberWithUnsignedLong:(unsigned long)value;
+ (NSNumber *)numberWithLongLong:(long long)value;
+ (NSNumber *)numberWithUnsignedLongLong:(unsigned long long)value;
+ (NSNumber *)numberWithFloat:(float)value;
+ (NSNumber *)numberWithDouble:(double)value;
+ (NSNumber *)numberWithBool:(BOOL)value;
+ (NSNumber *)numberWithInteger:(NSInteger)value;
+ (NSNumber *)numberWithUnsignedInteger:(NSUInteger)value;
@end

@interface NSArray<__covariant Item> : NSObject <NSCopying, NSFastEnumeration>
@property (readonly) NSUInteger count;
@property (readonly) Item firstObject;
@property (readonly) Item lastObject;
+ (instancetype)array;
+ (instancetype)arrayWithObject:(Item)item;
+ (instancetype)arrayWithObjects:(const Item [])items count:(NSUInteger)count;
+ (instancetype)arrayWithObjects:(Item)item, ...;
+ (instancetype)arrayWithArray:(NSArray<Item> *)other;
- (instancetype)initWithArray:(NSArray<Item> *)other;
- (Item)objectAtIndex:(NSUInteger)index;
- (Item)objectAtIndexedSubscript:(NSUInteger)index;
- (NSArray<Item> *)arrayByAddingObject:(Item)item;
- (NSString *)componentsJoinedByString:(NSString *)separator;
- (id)valueForKey:(NSString *)key;
@end

@interface NSMutableArray<Item> : NSArray<Item>
+ (instancetype)arrayWithCapacity:(NSUInteger)capacity;
- (instancetype)initWithCapacity:(NSUInteger)capacity;
- (void)addObject:(Item)item;
- (void)addObjectsFromArray:(NSArray<Item> *)other;
- (void)removeLastObject;
- (void)removeObjectAtIndex:(NSUInteger)index;
- (void)replaceObjectAtIndex:(NSUInteger)index withObject:(Item)item;
- (void)insertObject:(Item)item atIndex:(NSUInteger)index;
- (void)setObject:(Item)item atIndexedSubscript:(NSUInteger)index;
@end

@interface NSDictionary<__covariant Key, __covariant Item> : NSObject <NSCopying, NSFastEnumeration>
@property (readonly) NSUInteger count;
@property (readonly) NSArray<Key> *allKeys;
@property (readonly) NSArray<Item> *allValues;
+ (instancetype)dictionary;
+ (instancetype)dictionaryWithDictionary:(NSDictionary<Key, Item> *)other;
+ (instancetype)dictionaryWithObject:(Item)item forKey:(Key)key;
+ (instancetype)dictionaryWithObjects:(const Item [])items forKeys:(const Key [])keys count:(NSUInteger)count;
- (Item)objectForKey:(Key)key;
- (Item)objectForKeyedSubscript:(Key)key;
@end

@interface NSMutableDictionary<Key, Item> : NSDictionary<Key, Item>
+ (instancetype)dictionaryWithCapacity:(NSUInteger)capacity;
- (instancetype)initWithCapacity:(NSUInteger)capacity;
- (void)addEntriesFromDictionary:(NSDictionary<Key, Item> *)other;
- (void)setObject:(Item)item forKey:(Key)key;
- (void)setObject:(Item)item forKeyedSubscript:(Key)key;
@end

@interface NSSet<__covariant Item> : NSObject
@property (readonly) NSUInteger count;
@end

@interface NSData : NSObject
@property (readonly) const void *bytes;
@property (readonly) NSUInteger length;
+ (instancetype)dataWithBytes:(const void *)bytes length:(NSUInteger)length;
+ (instancetype)dataWithBytesNoCopy:(void *)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free;
@end

@interface NSURL : NSObject
@property (readonly) NSString *path;
+ (instancetype)fileURLWithPath:(NSString *)path;
+ (instancetype)URLWithString:(NSString *)text;
@end

@interface NSError : NSObject
@property (readonly) NSString *localizedDescription;
@property (readonly) NSString *localizedFailureReason;
@property (readonly) NSInteger code;
@property (readonly) NSString *domain;
@property (readonly) NSDictionary *userInfo;
@end

@interface NSBundle : NSObject
+ (NSBundle *)mainBundle;
@end

@interface NSDate : NSObject
@end

typedef struct { NSInteger majorVersion; NSInteger minorVersion; NSInteger patchVersion; } NSOperatingSystemVersion;

extern "C" Class NSClassFromString(NSString *name);

@interface NSProcessInfo : NSObject
@property (class, readonly) NSProcessInfo *processInfo;
@property (readonly) NSOperatingSystemVersion operatingSystemVersion;
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version;
@end

extern "C" void NSLog(NSString *format, ...);
