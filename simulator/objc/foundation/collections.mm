// Arrays and dictionaries. Compiled with ARC.
#import <Foundation/Foundation.h>

#include <algorithm>
#include <cstdarg>
#include <stdexcept>
#include <string>
#include <vector>

#include "methods.h"
#include "text.h"

static unsigned long no_mutations;

// Returns all items at once.
static NSUInteger enumerate(NSFastEnumerationState* state, std::vector<id>& items) {
  if (state->state) {
    return 0;
  }
  state->state = 1;
  state->mutationsPtr = &no_mutations;
  state->itemsPtr = (__unsafe_unretained id*)(void*)items.data();
  return items.size();
}
static id item_at(const std::vector<id>& items, NSUInteger index) {
  if (index >= items.size()) {
    throw std::out_of_range(
        "NSRangeException: index " + std::to_string(index) + " beyond the " + std::to_string(items.size()) +
        " items of an NSArray");
  }
  return items[index];
}
static id checked(id item) {
  if (item == nil) {
    throw std::invalid_argument("NSInvalidArgumentException: an attempt to put nil into a collection");
  }
  return item;
}

@implementation NSArray {
 @public
  std::vector<id> items_;
}
CLASS_METHOD(instancetype, array, [[self alloc] init])
+ (instancetype)arrayWithObject:(id)item {
  NSArray* array = [self alloc];
  array->items_.push_back(checked(item));
  return array;
}
+ (instancetype)arrayWithObjects:(const id[])items count:(NSUInteger)count {
  NSArray* array = [self alloc];
  for (NSUInteger i = 0; i < count; ++i) {
    array->items_.push_back(checked(items[i]));
  }
  return array;
}
+ (instancetype)arrayWithObjects:(id)item, ... {
  NSArray* array = [self alloc];
  va_list arguments;
  va_start(arguments, item);
  for (id next = item; next; next = va_arg(arguments, id)) {
    array->items_.push_back(next);
  }
  va_end(arguments);
  return array;
}
+ (instancetype)arrayWithArray:(NSArray*)other {
  NSArray* array = [self alloc];
  array->items_ = other->items_;
  return array;
}
- (instancetype)initWithArray:(NSArray*)other {
  items_ = other->items_;
  return self;
}
- (NSArray*)arrayByAddingObject:(id)item {
  NSArray* array = [NSArray arrayWithArray:self];
  array->items_.push_back(checked(item));
  return array;
}
METHOD(NSUInteger, count, items_.size())
METHOD(id, firstObject, items_.empty() ? nil : items_.front())
METHOD(id, lastObject, items_.empty() ? nil : items_.back())
- (id)objectAtIndex:(NSUInteger)index {
  return item_at(items_, index);
}
- (id)objectAtIndexedSubscript:(NSUInteger)index {
  return item_at(items_, index);
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(__unsafe_unretained id[])buffer
                                    count:(NSUInteger)length {
  return enumerate(state, items_);
}
- (BOOL)isEqual:(id)other {
  if (![other isKindOfClass:[NSArray class]] || [other count] != items_.size()) {
    return NO;
  }
  for (NSUInteger i = 0; i < items_.size(); ++i) {
    if (![items_[i] isEqual:other[i]]) {
      return NO;
    }
  }
  return YES;
}
- (BOOL)containsObject:(id)item {
  return std::any_of(items_.begin(), items_.end(), [item](id other) { return [other isEqual:item]; });
}
METHOD(NSUInteger, hash, items_.size())
METHOD(id, mutableCopy, [NSMutableArray arrayWithArray:self])
- (NSString*)componentsJoinedByString:(NSString*)separator {
  std::string text;
  for (NSUInteger i = 0; i < items_.size(); ++i) {
    text += (i > 0 ? text_of(separator) : "") + text_of([items_[i] description]);
  }
  return string_of(text);
}
// Of all keys, only `description` is simulated.
- (id)valueForKey:(NSString*)key {
  if (![key isEqualToString:@"description"]) {
    throw std::invalid_argument("-[NSArray valueForKey:] is simulated for description only, not " + text_of(key));
  }
  NSMutableArray* values = [NSMutableArray array];
  for (id item : items_) {
    [values addObject:[item description]];
  }
  return values;
}
- (NSString*)description {
  std::string text = "(";
  for (id item : items_) {
    text += (text.size() > 1 ? ", " : "") + text_of([item description]);
  }
  return string_of(text + ")");
}
@end

@implementation NSMutableArray
+ (instancetype)arrayWithCapacity:(NSUInteger)capacity {
  return [[self alloc] init];
}
- (instancetype)initWithCapacity:(NSUInteger)capacity {
  return self;
}
METHOD(id, copy, [NSArray arrayWithArray:self])
- (void)addObject:(id)item {
  items_.push_back(checked(item));
}
- (void)addObjectsFromArray:(NSArray*)other {
  const std::vector<id> added = other->items_;
  items_.insert(items_.end(), added.begin(), added.end());
}
- (void)removeObjectAtIndex:(NSUInteger)index {
  item_at(items_, index);
  items_.erase(items_.begin() + (NSInteger)index);
}
- (void)removeObject:(id)item {
  const auto is_equal = [item](id other) { return [other isEqual:item]; };
  items_.erase(std::remove_if(items_.begin(), items_.end(), is_equal), items_.end());
}
- (void)removeLastObject {
  [self removeObjectAtIndex:items_.size() - 1];
}
- (void)replaceObjectAtIndex:(NSUInteger)index withObject:(id)item {
  item_at(items_, index);
  items_[index] = checked(item);
}
- (void)insertObject:(id)item atIndex:(NSUInteger)index {
  if (index < items_.size()) {
    item_at(items_, index);
  }
  items_.insert(items_.begin() + (NSInteger)index, checked(item));
}
- (void)setObject:(id)item atIndexedSubscript:(NSUInteger)index {
  if (index == items_.size()) {
    items_.push_back(checked(item));
    return;
  }
  item_at(items_, index);
  items_[index] = checked(item);
}
@end

@implementation NSDictionary {
 @public
  std::vector<id> keys_, values_;
}
CLASS_METHOD(instancetype, dictionary, [[self alloc] init])
+ (instancetype)dictionaryWithObject:(id)item forKey:(id)key {
  return [self dictionaryWithObjects:&item forKeys:&key count:1];
}
+ (instancetype)dictionaryWithObjects:(const id[])items forKeys:(const id[])keys count:(NSUInteger)count {
  NSDictionary* dictionary = [self alloc];
  for (NSUInteger i = 0; i < count; ++i) {
    [dictionary setSimulatedItem:items[i] forKey:keys[i]];
  }
  return dictionary;
}
+ (instancetype)dictionaryWithDictionary:(NSDictionary*)other {
  NSDictionary* dictionary = [self alloc];
  dictionary->keys_ = other->keys_;
  dictionary->values_ = other->values_;
  return dictionary;
}
METHOD(id, mutableCopy, [NSMutableDictionary dictionaryWithDictionary:self])
- (void)setSimulatedItem:(id)item forKey:(id)key {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if ([keys_[i] isEqual:key]) {
      values_[i] = checked(item);
      return;
    }
  }
  keys_.push_back(checked(key));
  values_.push_back(checked(item));
}
METHOD(NSUInteger, count, keys_.size())
- (NSArray*)allKeys {
  NSArray* array = [NSArray alloc];
  array->items_ = keys_;
  return array;
}
- (NSArray*)allValues {
  NSArray* array = [NSArray alloc];
  array->items_ = values_;
  return array;
}
- (id)objectForKey:(id)key {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if ([keys_[i] isEqual:key]) {
      return values_[i];
    }
  }
  return nil;
}
- (id)objectForKeyedSubscript:(id)key {
  return [self objectForKey:key];
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(__unsafe_unretained id[])buffer
                                    count:(NSUInteger)length {
  return enumerate(state, keys_);
}
@end

@implementation NSMutableDictionary
+ (instancetype)dictionaryWithCapacity:(NSUInteger)capacity {
  return [[self alloc] init];
}
- (instancetype)initWithCapacity:(NSUInteger)capacity {
  return self;
}
METHOD(id, copy, [NSDictionary dictionaryWithDictionary:self])
- (void)addEntriesFromDictionary:(NSDictionary*)other {
  for (id key in other) {
    [self setSimulatedItem:[other objectForKey:key] forKey:key];
  }
}
- (void)setObject:(id)item forKey:(id)key {
  [self setSimulatedItem:item forKey:key];
}
- (void)setObject:(id)item forKeyedSubscript:(id)key {
  [self setSimulatedItem:item forKey:key];
}
- (void)setValue:(id)item forKey:(NSString*)key {
  [self setSimulatedItem:item forKey:key];
}
@end

// The array literal without items.
NSArray* __NSArray0__ = [[NSArray alloc] init];

@implementation NSSet {
 @public
  NSMutableDictionary* items_;
}
- (instancetype)init {
  items_ = [NSMutableDictionary dictionary];
  return self;
}
+ (instancetype)setWithArray:(NSArray*)items {
  NSSet* set = [[self alloc] init];
  for (id item in items) {
    set->items_[item] = item;
  }
  return set;
}
- (BOOL)containsObject:(id)item {
  return items_[item] != nil;
}
METHOD(NSArray*, allObjects, items_.allKeys)
METHOD(NSUInteger, count, items_.count)
@end

@implementation NSMutableSet
- (void)addObject:(id)item {
  items_[item] = item;
}
@end
