// Objects: memory, reference counts and deallocation.
#include "runtime.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace {

using objc::Header;
using objc::header_of;

// Released objects are kept for a while with a class without methods, so that using one is an error with its name.
objc::ClassData released_data{0, 0, 0, 0, nullptr, "a released object", nullptr, nullptr, nullptr, nullptr, nullptr};
objc_class released_class{nullptr, nullptr, nullptr, nullptr, reinterpret_cast<uintptr_t>(&released_data)};

class Quarantine {
 public:
  void put(void* memory) {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::swap(memory, slots_[next_++ % slots_.size()]);
    std::free(memory);
  }

 private:
  std::mutex mutex_;
  std::array<void*, 4096> slots_{};
  size_t next_ = 0;
};
Quarantine& quarantine() {
  static auto* all = new Quarantine;
  return *all;
}

class WeakReferences {
 public:
  void store(id* place, id object) {
    const std::lock_guard<std::mutex> guard(mutex_);
    forget(place);
    note(place, object);
  }
  void initialize(id* place, id object) {
    const std::lock_guard<std::mutex> guard(mutex_);
    note(place, object);
  }
  void destroy(id* place) {
    const std::lock_guard<std::mutex> guard(mutex_);
    forget(place);
  }
  // A strong reference, under the lock that the last release needs.
  id load(id* place) {
    const std::lock_guard<std::mutex> guard(mutex_);
    return objc_retain(*place);
  }
  // Releases; returns whether it was the last, which sets all weak references to nil.
  bool last_release(id object) {
    auto& references = header_of(object)->references;
    for (long count = references; count > 1;) {
      if (references.compare_exchange_weak(count, count - 1)) {
        return false;
      }
    }
    const std::lock_guard<std::mutex> guard(mutex_);
    if (--references > 0) {
      return false;
    }
    const auto found = places_.find(object);
    if (found != places_.end()) {
      for (id* place : found->second) {
        *place = nullptr;
      }
      places_.erase(found);
    }
    return true;
  }

 private:
  void note(id* place, id object) {
    *place = object;
    if (object != nullptr) {
      places_[object].push_back(place);
    }
  }
  void forget(id* place) {
    const auto found = places_.find(*place);
    if (found != places_.end()) {
      std::erase(found->second, place);
      if (found->second.empty()) {
        places_.erase(found);
      }
    }
  }
  std::mutex mutex_;
  std::unordered_map<id, std::vector<id*>> places_;
};
WeakReferences& weak_references() {
  static auto* all = new WeakReferences;
  return *all;
}

std::vector<id>& autorelease_pools() {
  thread_local std::vector<id> objects;
  return objects;
}

// The functions that construct and destroy the C++ members of a class's objects, in the order of their calls.
struct Members {
  Class of;
  std::vector<IMP> constructors, destructors;
};
Members members_in(Class of) {
  Members members{of, {}, {}};
  for (Class c = of; c != nullptr; c = c->superclass) {
    if (IMP construct = objc::own_method(c, ".cxx_construct")) {
      members.constructors.insert(members.constructors.begin(), construct);
    }
    if (IMP destruct = objc::own_method(c, ".cxx_destruct")) {
      members.destructors.push_back(destruct);
    }
  }
  return members;
}
// Read without a lock, as the rows of methods are (messages.cpp); the runtime makes no class, and ends none.
std::array<std::atomic<const Members*>, 1024> recent_members;
const Members& members_of(Class of) {
  auto& recent = recent_members[reinterpret_cast<uintptr_t>(of) * 0x9E3779B97F4A7C15 >> 54];
  const Members* members = recent.load(std::memory_order_acquire);
  if (members == nullptr || members->of != of) {
    static auto* mutex = new std::mutex;
    static auto* all = new std::unordered_map<Class, Members>;
    const std::lock_guard<std::mutex> guard(*mutex);
    if (all->count(of) == 0) {
      all->emplace(of, members_in(of));
    }
    members = &all->at(of);
    recent.store(members, std::memory_order_release);
  }
  return *members;
}

id send(id object, SEL name) {
  return reinterpret_cast<id (*)(id, SEL)>(objc_simulator_lookup(object, name))(object, name);
}
// Registered once: a look-up of the name takes longer than a message.
#define SELECTOR(NAME) \
  ([] { \
    static const SEL name = sel_registerName(NAME); \
    return name; \
  }())

struct Misuse {
  std::mutex mutex;
  std::string text;
};
Misuse& misuse() {
  static auto* noted = new Misuse;
  return *noted;
}
std::atomic<int> misuse_noted{0};

} // namespace

bool objc::is_released(id object) {
  const auto offset = reinterpret_cast<uintptr_t>(object) & (kBlock - 1);
  return offset == sizeof(Header) && object->isa == &released_class;
}

void objc::note_misuse(const std::string& text) {
  std::fprintf(stderr, "mpsmith: %s\n", text.c_str());
  const std::lock_guard<std::mutex> guard(misuse().mutex);
  if (misuse().text.empty()) {
    misuse().text = text;
  }
  misuse_noted = 1;
}

extern "C" {

void objc_simulator_note_misuse(const char* text) { objc::note_misuse(text); }
// Nonzero if objc_simulator_raise_misuse will raise.
const std::atomic<int>* objc_simulator_misuse_noted() { return &misuse_noted; }
void objc_simulator_raise_misuse() {
  if (misuse_noted == 0) {
    return;
  }
  std::string text;
  {
    const std::lock_guard<std::mutex> guard(misuse().mutex);
    text.swap(misuse().text);
    misuse_noted = 0;
  }
  throw std::runtime_error(text);
}

// ---------------------------------------------------------------------------------------------- memory
id class_createInstance(Class of, size_t extra) {
  const size_t bytes = sizeof(Header) + of->data()->instance_size + extra;
  void* memory = std::aligned_alloc(objc::kBlock, (bytes + objc::kBlock - 1) / objc::kBlock * objc::kBlock);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  std::memset(memory, 0, bytes);
  auto* header = new (memory) Header{{1}, nullptr};
  id object = reinterpret_cast<id>(header + 1);
  object->isa = of;
  for (IMP construct : members_of(of).constructors) {
    reinterpret_cast<id (*)(id, SEL)>(construct)(object, nullptr);
  }
  return object;
}
void object_dispose(id object) {
  for (IMP destruct : members_of(object->isa).destructors) {
    reinterpret_cast<void (*)(id, SEL)>(destruct)(object, nullptr);
  }
  header_of(object)->former = object->isa;
  object->isa = &released_class;
  quarantine().put(header_of(object));
}

id objc_alloc(Class of) { return of ? send(reinterpret_cast<id>(of), SELECTOR("alloc")) : nullptr; }
id objc_allocWithZone(Class of) { return objc_alloc(of); }
id objc_alloc_init(Class of) {
  id object = objc_alloc(of);
  return object ? send(object, SELECTOR("init")) : nullptr;
}
id objc_opt_new(Class of) { return of ? send(reinterpret_cast<id>(of), SELECTOR("new")) : nullptr; }

// ---------------------------------------------------------------------------------------------- reference counts
void objc_simulator_retain(id object) { ++header_of(object)->references; }
BOOL objc_simulator_release(id object) { return weak_references().last_release(object); }
NSUInteger objc_simulator_references(id object) { return header_of(object)->references; }

// Neither of the two may throw: callers are compiled without a way to clean up.
id objc_retain(id object) {
  static const SEL name = sel_registerName("retain");
  if (object == nullptr) {
    return nullptr;
  }
  if (objc::is_released(object)) {
    objc::note_misuse(
        std::string("Metal, simulated: a released object was used again: ") + header_of(object)->former->data()->name +
        " was retained");
    return object;
  }
  return reinterpret_cast<id (*)(id, SEL)>(objc_simulator_lookup(object, name))(object, name);
}
void objc_release(id object) {
  static const SEL name = sel_registerName("release");
  if (object == nullptr) {
    return;
  }
  if (objc::is_released(object)) {
    objc::note_misuse(
        std::string("Metal, simulated: a released object was used again: ") + header_of(object)->former->data()->name +
        " was released once too often");
    return;
  }
  reinterpret_cast<void (*)(id, SEL)>(objc_simulator_lookup(object, name))(object, name);
}
id objc_autorelease(id object) {
  if (object != nullptr) {
    autorelease_pools().push_back(object);
  }
  return object;
}
id objc_retainAutorelease(id object) { return objc_autorelease(objc_retain(object)); }
id objc_autoreleaseReturnValue(id object) { return objc_autorelease(object); }
id objc_retainAutoreleaseReturnValue(id object) { return objc_retainAutorelease(object); }
id objc_retainAutoreleasedReturnValue(id object) { return objc_retain(object); }
id objc_unsafeClaimAutoreleasedReturnValue(id object) { return object; }
id objc_claimAutoreleasedReturnValue(id object) { return objc_retain(object); }
void objc_storeStrong(id* place, id object) {
  id old = *place;
  objc_retain(object);
  *place = object;
  objc_release(old);
}
void* objc_autoreleasePoolPush() { return reinterpret_cast<void*>(autorelease_pools().size()); }
void objc_autoreleasePoolPop(void* mark) {
  auto& objects = autorelease_pools();
  while (objects.size() > reinterpret_cast<size_t>(mark)) {
    id last = objects.back();
    objects.pop_back();
    objc_release(last);
  }
}

// ---------------------------------------------------------------------------------------------- weak references
id objc_initWeak(id* place, id object) {
  weak_references().initialize(place, object);
  return object;
}
id objc_storeWeak(id* place, id object) {
  weak_references().store(place, object);
  return object;
}
void objc_destroyWeak(id* place) { weak_references().destroy(place); }
id objc_loadWeakRetained(id* place) { return weak_references().load(place); }
id objc_loadWeak(id* place) { return objc_autorelease(objc_loadWeakRetained(place)); }
void objc_copyWeak(id* to, id* from) {
  id object = objc_loadWeakRetained(from);
  objc_initWeak(to, object);
  objc_release(object);
}
void objc_moveWeak(id* to, id* from) {
  objc_copyWeak(to, from);
  objc_destroyWeak(from);
}

// ---------------------------------------------------------------------------------------------- properties
id objc_getProperty(id self, SEL, ptrdiff_t offset, BOOL) {
  return objc_retainAutorelease(*reinterpret_cast<id*>(reinterpret_cast<char*>(self) + offset));
}
static void set_property(id self, ptrdiff_t offset, id value, bool copy) {
  auto* place = reinterpret_cast<id*>(reinterpret_cast<char*>(self) + offset);
  value = copy && value != nullptr ? send(value, SELECTOR("copy")) : objc_retain(value);
  id old = *place;
  *place = value;
  objc_release(old);
}
void objc_setProperty(id self, SEL, ptrdiff_t offset, id value, BOOL, signed char copy) {
  set_property(self, offset, value, copy == 1);
}
void objc_setProperty_atomic(id self, SEL, id value, ptrdiff_t offset) { set_property(self, offset, value, false); }
void objc_setProperty_nonatomic(id self, SEL, id value, ptrdiff_t offset) { set_property(self, offset, value, false); }
void objc_setProperty_atomic_copy(id self, SEL, id value, ptrdiff_t offset) { set_property(self, offset, value, true); }
void objc_setProperty_nonatomic_copy(id self, SEL, id value, ptrdiff_t offset) {
  set_property(self, offset, value, true);
}
void objc_copyStruct(void* to, const void* from, ptrdiff_t size, BOOL, BOOL) { std::memcpy(to, from, size); }

// ---------------------------------------------------------------------------------------------- @synchronized
static std::recursive_mutex& synchronized_mutex() { // one for all objects
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}
int objc_sync_enter(id) {
  synchronized_mutex().lock();
  return 0;
}
int objc_sync_exit(id) {
  synchronized_mutex().unlock();
  return 0;
}
void objc_enumerationMutation(id) { throw std::runtime_error("a collection was changed while it was enumerated"); }

} // extern "C"
