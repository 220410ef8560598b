// Shared by the runtime: Apple's structures as clang writes them into an ELF file, and the header in front of each
// object.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

struct objc_class;
typedef objc_class* Class;
typedef struct objc_object { Class isa; }* id;
typedef struct objc_selector* SEL; // a pointer to the name; one for each name once an image is registered
typedef void (*IMP)();
typedef bool BOOL;
typedef unsigned long NSUInteger;

namespace objc {

struct Method {
  const char* name;
  const char* types;
  IMP function;
};
struct MethodList {
  uint32_t entry_size;
  uint32_t count;
  const Method& operator[](uint32_t i) const {
    const auto* first = reinterpret_cast<const char*>(this + 1);
    return *reinterpret_cast<const Method*>(first + i * (entry_size & 0xfffc));
  }
};
struct ClassData { // class_ro_t
  uint32_t flags, instance_start, instance_size, reserved;
  const uint8_t* ivar_layout;
  const char* name;
  const MethodList* methods;
  const void *protocols, *ivars, *weak_ivars, *properties;
};
constexpr uint32_t kMetaClass = 1;

struct Category { // category_t
  const char* name;
  Class of;
  const MethodList *instance_methods, *class_methods;
};

// The header in front of each object. Objects begin 16 bytes after a multiple of 64, unlike tensor memory: see class_of.
struct Header {
  std::atomic<long> references;
  Class former; // of a released object: its class
};
constexpr uintptr_t kBlock = 64;
static_assert(sizeof(Header) == 16);
inline Header* header_of(id object) { return reinterpret_cast<Header*>(object) - 1; }

// The class of addresses that are not objects, such as tensor memory; null for others.
using ForeignClass = Class (*)(id);
struct ForeignObjects {
  ForeignClass class_of = nullptr;
  // Whether one of them begins where objects do.
  const std::atomic<bool>* anywhere = nullptr;
};
extern ForeignObjects foreign_objects;

inline Class class_of(id object) {
  const bool may_be_foreign = (reinterpret_cast<uintptr_t>(object) & (kBlock - 1)) != sizeof(Header) ||
      (foreign_objects.anywhere != nullptr && foreign_objects.anywhere->load(std::memory_order_relaxed));
  if (may_be_foreign && foreign_objects.class_of != nullptr) {
    if (Class found = foreign_objects.class_of(object)) {
      return found;
    }
  }
  return object->isa;
}

// The method for a message, or null.
IMP method_or_null(Class of, SEL name);
// The function of the class itself, without categories and superclasses.
IMP own_method(Class of, const char* name);
// Adds the methods of a category, which may replace others.
void add_category(const Category* category);
bool is_released(id object);

// Records an error where exceptions are impossible, such as in a release. It is printed at once, and raised by the next
// call that can.
void note_misuse(const std::string& text);

} // namespace objc

struct objc_class { // class_t
  Class isa, superclass;
  void *cache, *vtable;
  uintptr_t bits;
  const objc::ClassData* data() const { return reinterpret_cast<const objc::ClassData*>(bits & ~uintptr_t(7)); }
  bool is_meta() const { return data()->flags & objc::kMetaClass; }
};

extern "C" {
IMP objc_simulator_lookup(id receiver, SEL name);
BOOL objc_opt_isKindOfClass(id object, Class of);
id objc_retain(id object);
void objc_release(id object);
id objc_autorelease(id object);
SEL sel_registerName(const char* name);
}
