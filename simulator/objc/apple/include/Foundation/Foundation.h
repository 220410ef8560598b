// The part of Foundation that Metal code uses, declared by hand for type checking only.
#pragma once
#include <stdarg.h>
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
#define NSNotFound NSIntegerMax
#ifndef MIN
#define MIN(A, B) ({ __typeof__(A) a_ = (A); __typeof__(B) b_ = (B); a_ < b_ ? a_ : b_; })
#endif
#ifndef MAX
#define MAX(A, B) ({ __typeof__(A) a_ = (A); __typeof__(B) b_ = (B); a_ < b_ ? b_ : a_; })
#endif
#ifndef ABS
#define ABS(A) ({ __typeof__(A) a_ = (A); a_ < 0 ? -a_ : a_; })
#endif
typedef NS_ENUM(NSInteger, NSComparisonResult) { NSOrderedAscending = -1, NSOrderedSame, NSOrderedDescending };
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

@class NSArray<__covariant Item>;
@class NSData, NSDictionary, NSError, NSNumber, NSSet, NSString, NSURL;

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
- (instancetype)initWithFormat:(NSString *)format arguments:(va_list)arguments;
- (BOOL)isEqualToString:(NSString *)other;
- (BOOL)containsString:(NSString *)part;
- (BOOL)hasPrefix:(NSString *)part;
- (NSString *)stringByAppendingString:(NSString *)other;
- (NSString *)stringByAppendingFormat:(NSString *)format, ...;
@end

@interface NSString (Text)
@property (readonly) int intValue;
@property (readonly) NSInteger integerValue;
@property (readonly) long long longLongValue;
@property (readonly) float floatValue;
@property (readonly) double doubleValue;
@property (readonly) BOOL boolValue;
@property (readonly) NSString *lowercaseString;
@property (readonly) NSString *uppercaseString;
- (instancetype)initWithString:(NSString *)text;
- (instancetype)initWithCString:(const char *)text encoding:(NSStringEncoding)encoding;
- (instancetype)initWithData:(NSData *)data encoding:(NSStringEncoding)encoding;
- (const char *)cStringUsingEncoding:(NSStringEncoding)encoding;
- (NSData *)dataUsingEncoding:(NSStringEncoding)encoding;
- (NSUInteger)lengthOfBytesUsingEncoding:(NSStringEncoding)encoding;
- (unichar)characterAtIndex:(NSUInteger)index;
- (BOOL)hasSuffix:(NSString *)part;
- (NSComparisonResult)compare:(NSString *)other;
- (NSRange)rangeOfString:(NSString *)part;
- (NSString *)substringFromIndex:(NSUInteger)index;
- (NSString *)substringToIndex:(NSUInteger)index;
- (NSString *)substringWithRange:(NSRange)range;
- (NSString *)stringByReplacingOccurrencesOfString:(NSString *)part withString:(NSString *)other;
- (NSArray<NSString *> *)componentsSeparatedByString:(NSString *)separator;
@end

@interface NSString (Files)
@property (readonly) NSArray<NSString *> *pathComponents;
@property (readonly, getter=isAbsolutePath) BOOL absolutePath;
@property (readonly) NSString *lastPathComponent;
@property (readonly) NSString *pathExtension;
@property (readonly) NSString *stringByDeletingLastPathComponent;
@property (readonly) NSString *stringByDeletingPathExtension;
@property (readonly) NSString *stringByStandardizingPath;
@property (readonly) NSString *stringByExpandingTildeInPath;
@property (readonly) const char *fileSystemRepresentation;
- (NSString *)stringByAppendingPathComponent:(NSString *)part;
- (NSString *)stringByAppendingPathExtension:(NSString *)part;
+ (instancetype)stringWithContentsOfFile:(NSString *)path
                                encoding:(NSStringEncoding)encoding
                                   error:(NSError **)error;
+ (instancetype)stringWithContentsOfURL:(NSURL *)url encoding:(NSStringEncoding)encoding error:(NSError **)error;
- (instancetype)initWithContentsOfFile:(NSString *)path encoding:(NSStringEncoding)encoding error:(NSError **)error;
- (BOOL)writeToFile:(NSString *)path
         atomically:(BOOL)atomically
           encoding:(NSStringEncoding)encoding
              error:(NSError **)error;
@end

@interface NSMutableString : NSString
+ (instancetype)stringWithCapacity:(NSUInteger)capacity;
- (void)appendString:(NSString *)text;
- (void)appendFormat:(NSString *)format, ...;
- (void)setString:(NSString *)text;
@end

@interface NSValue : NSObject <NSCopying>
@property (readonly) void *pointerValue;
+ (NSValue *)valueWithPointer:(const void *)pointer;
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
- (BOOL)containsObject:(Item)item;
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
- (void)removeObject:(Item)item;
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
- (void)setValue:(Item)item forKey:(NSString *)key;
@end

@interface NSSet<__covariant Item> : NSObject
@property (readonly) NSUInteger count;
@property (readonly) NSArray<Item> *allObjects;
+ (instancetype)setWithArray:(NSArray<Item> *)items;
- (BOOL)containsObject:(Item)item;
@end

@interface NSMutableSet<Item> : NSSet<Item>
- (void)addObject:(Item)item;
@end

@interface NSData : NSObject
@property (readonly) const void *bytes;
@property (readonly) NSUInteger length;
+ (instancetype)data;
+ (instancetype)dataWithData:(NSData *)other;
+ (instancetype)dataWithContentsOfFile:(NSString *)path;
+ (instancetype)dataWithContentsOfURL:(NSURL *)url;
+ (instancetype)dataWithContentsOfFile:(NSString *)path options:(NSUInteger)options error:(NSError **)error;
- (BOOL)isEqualToData:(NSData *)other;
- (BOOL)writeToFile:(NSString *)path atomically:(BOOL)atomically;
+ (instancetype)dataWithBytes:(const void *)bytes length:(NSUInteger)length;
+ (instancetype)dataWithBytesNoCopy:(void *)bytes length:(NSUInteger)length freeWhenDone:(BOOL)free;
@end

@interface NSMutableData : NSData
@property (readonly) void *mutableBytes;
+ (instancetype)dataWithLength:(NSUInteger)length;
+ (instancetype)dataWithCapacity:(NSUInteger)capacity;
- (void)appendBytes:(const void *)bytes length:(NSUInteger)length;
- (void)appendData:(NSData *)other;
@end

@interface NSURL : NSObject
@property (readonly) NSString *path;
@property (readonly) NSString *absoluteString;
@property (readonly) NSString *lastPathComponent;
@property (readonly) NSString *pathExtension;
@property (readonly) NSURL *URLByDeletingLastPathComponent;
@property (readonly) BOOL isFileURL;
- (BOOL)checkResourceIsReachableAndReturnError:(NSError **)error;
@property (readonly) const char *fileSystemRepresentation;
- (NSURL *)URLByAppendingPathComponent:(NSString *)part;
- (NSURL *)URLByAppendingPathExtension:(NSString *)part;
+ (instancetype)fileURLWithPath:(NSString *)path;
+ (instancetype)fileURLWithPath:(NSString *)path isDirectory:(BOOL)folder;
+ (instancetype)URLWithString:(NSString *)text;
@end

@interface NSError : NSObject
@property (readonly) NSString *localizedDescription;
@property (readonly) NSString *localizedFailureReason;
@property (readonly) NSInteger code;
@property (readonly) NSString *domain;
@property (readonly) NSDictionary *userInfo;
+ (instancetype)errorWithDomain:(NSString *)domain code:(NSInteger)code userInfo:(NSDictionary *)info;
@end

typedef NSString *NSExceptionName;
extern "C" NSExceptionName const NSGenericException, NSInternalInconsistencyException;
extern "C" NSExceptionName const NSInvalidArgumentException, NSRangeException;
extern "C" NSString *const NSLocalizedDescriptionKey, *const NSCocoaErrorDomain, *const NSPOSIXErrorDomain;

@interface NSException : NSObject
@property (readonly) NSExceptionName name;
@property (readonly) NSString *reason;
@property (readonly) NSDictionary *userInfo;
@property (readonly) NSArray<NSString *> *callStackSymbols;
+ (NSException *)exceptionWithName:(NSExceptionName)name reason:(NSString *)reason userInfo:(NSDictionary *)info;
+ (void)raise:(NSExceptionName)name format:(NSString *)format, ...;
- (instancetype)initWithName:(NSExceptionName)name reason:(NSString *)reason userInfo:(NSDictionary *)info;
- (void)raise;
@end

@interface NSBundle : NSObject
@property (class, readonly) NSBundle *mainBundle;
@property (readonly) NSString *bundlePath;
@property (readonly) NSString *resourcePath;
@property (readonly) NSString *bundleIdentifier;
@property (readonly) NSURL *bundleURL;
@property (readonly) NSURL *resourceURL;
+ (NSBundle *)bundleForClass:(Class)of;
+ (instancetype)bundleWithPath:(NSString *)path;
+ (NSBundle *)bundleWithIdentifier:(NSString *)identifier;
- (NSString *)pathForResource:(NSString *)name ofType:(NSString *)type;
- (NSURL *)URLForResource:(NSString *)name withExtension:(NSString *)type;
@end

@interface NSFileManager : NSObject
@property (class, readonly) NSFileManager *defaultManager;
@property (readonly) NSString *currentDirectoryPath;
@property (readonly) NSURL *temporaryDirectory;
- (BOOL)fileExistsAtPath:(NSString *)path;
- (BOOL)fileExistsAtPath:(NSString *)path isDirectory:(BOOL *)folder;
- (BOOL)isReadableFileAtPath:(NSString *)path;
- (NSData *)contentsAtPath:(NSString *)path;
- (NSArray<NSString *> *)contentsOfDirectoryAtPath:(NSString *)path error:(NSError **)error;
- (BOOL)createDirectoryAtPath:(NSString *)path
    withIntermediateDirectories:(BOOL)all
                     attributes:(NSDictionary *)attributes
                          error:(NSError **)error;
- (BOOL)removeItemAtPath:(NSString *)path error:(NSError **)error;
@end

@interface NSDate : NSObject
@property (readonly) NSTimeInterval timeIntervalSince1970;
@property (readonly) NSTimeInterval timeIntervalSinceNow;
@property (readonly) NSTimeInterval timeIntervalSinceReferenceDate;
+ (instancetype)date;
- (NSTimeInterval)timeIntervalSinceDate:(NSDate *)other;
@end

typedef struct { NSInteger majorVersion; NSInteger minorVersion; NSInteger patchVersion; } NSOperatingSystemVersion;

extern "C" Class NSClassFromString(NSString *name);
extern "C" NSString *NSTemporaryDirectory(void);
extern "C" NSString *NSHomeDirectory(void);

@interface NSProcessInfo : NSObject
@property (class, readonly) NSProcessInfo *processInfo;
@property (readonly) NSOperatingSystemVersion operatingSystemVersion;
@property (readonly) NSString *operatingSystemVersionString;
@property (readonly) NSDictionary<NSString *, NSString *> *environment;
@property (readonly) NSString *processName;
@property (readonly) int processIdentifier;
@property (readonly) NSUInteger processorCount;
@property (readonly) NSUInteger activeProcessorCount;
@property (readonly) unsigned long long physicalMemory;
@property (readonly) NSTimeInterval systemUptime;
- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version;
@end

extern "C" void NSLog(NSString *format, ...);
