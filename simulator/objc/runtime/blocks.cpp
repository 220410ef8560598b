// Blocks: copies on the heap, and captured variables.
#include "runtime.h"

#include <cstdlib>
#include <cstring>

namespace {

struct BlockDescriptor {
  unsigned long reserved, size;
  void (*copy)(void* to, const void* from);
  void (*dispose)(const void*);
};
struct Block {
  void* isa;
  std::atomic<int> flags;
  int reserved;
  void (*invoke)(void*, ...);
  BlockDescriptor* descriptor;
};
// A variable that is marked __block: shared by its function and all blocks that capture it.
struct SharedVariable {
  void* isa;
  SharedVariable* forwarding;
  std::atomic<int> flags;
  uint32_t size;
  void (*keep)(SharedVariable* to, SharedVariable* from);
  void (*destroy)(SharedVariable*);
};
enum : int {
  kReferences = 0xfffe,
  kOneReference = 2,
  kNeedsFree = 1 << 24,
  kHasCopy = 1 << 25,
  kGlobal = 1 << 28,
};
enum : int { kObject = 3, kBlock = 7, kShared = 8, kWeak = 16, kOfSharedVariable = 128 };

// Blocks are aligned like objects and unlike tensor memory: see class_of.
void* allocate_block(size_t size) {
  const size_t bytes = size + sizeof(objc::Header);
  void* memory = std::aligned_alloc(objc::kBlock, (bytes + objc::kBlock - 1) / objc::kBlock * objc::kBlock);
  return static_cast<objc::Header*>(memory) + 1;
}
void free_block(void* block) { std::free(static_cast<objc::Header*>(block) - 1); }

SharedVariable* copy_of(SharedVariable* from) {
  if (from->forwarding->flags & kNeedsFree) {
    from->forwarding->flags += kOneReference;
    return from->forwarding;
  }
  auto* copy = static_cast<SharedVariable*>(std::malloc(from->size));
  std::memcpy(static_cast<void*>(copy), from, from->size);
  copy->flags = from->flags | kNeedsFree | 2 * kOneReference; // for the function and the block
  copy->forwarding = copy;
  from->forwarding = copy;
  if (from->flags & kHasCopy) {
    from->keep(copy, from);
  }
  return copy;
}

void release(SharedVariable* variable) {
  variable = variable->forwarding;
  if ((variable->flags & kNeedsFree) && ((variable->flags -= kOneReference) & kReferences) == 0) {
    if (variable->flags & kHasCopy) {
      variable->destroy(variable);
    }
    std::free(variable);
  }
}

} // namespace

extern "C" {

extern void* _NSConcreteMallocBlock[];

void* _Block_copy(const void* argument) {
  auto* block = static_cast<Block*>(const_cast<void*>(argument));
  if (block == nullptr || (block->flags & kGlobal)) {
    return block;
  }
  if (block->flags & kNeedsFree) {
    block->flags += kOneReference;
    return block;
  }
  auto* copy = static_cast<Block*>(allocate_block(block->descriptor->size));
  std::memcpy(static_cast<void*>(copy), block, block->descriptor->size);
  copy->flags = (block->flags & ~kReferences) | kNeedsFree | kOneReference;
  copy->isa = _NSConcreteMallocBlock;
  if (block->flags & kHasCopy) {
    block->descriptor->copy(copy, block);
  }
  return copy;
}
void* objc_simulator_retain_block(const void* argument) {
  auto* block = static_cast<Block*>(const_cast<void*>(argument));
  if (block->flags & kNeedsFree) {
    block->flags += kOneReference;
  }
  return block;
}
void _Block_release(const void* argument) {
  auto* block = static_cast<Block*>(const_cast<void*>(argument));
  if (block == nullptr || (block->flags & kGlobal) || !(block->flags & kNeedsFree)) {
    return;
  }
  if (((block->flags -= kOneReference) & kReferences) == 0) {
    if (block->flags & kHasCopy) {
      block->descriptor->dispose(block);
    }
    free_block(block);
  }
}
id objc_retainBlock(id block) { return static_cast<id>(_Block_copy(block)); }

void _Block_object_assign(void* to, const void* captured, int flags) {
  auto& place = *static_cast<const void**>(to);
  auto* object = const_cast<void*>(captured);
  switch (flags & ~kOfSharedVariable & ~kWeak) {
    case kObject:
      place = flags & kOfSharedVariable ? object : objc_retain(static_cast<id>(object));
      break;
    case kBlock:
      place = flags & kOfSharedVariable ? object : _Block_copy(object);
      break;
    case kShared:
      place = copy_of(static_cast<SharedVariable*>(object));
      break;
    default:
      place = object;
  }
}
void _Block_object_dispose(const void* captured, int flags) {
  if (flags & kOfSharedVariable) {
    return;
  }
  auto* object = const_cast<void*>(captured);
  switch (flags & ~kWeak) {
    case kObject:
      objc_release(static_cast<id>(object));
      break;
    case kBlock:
      _Block_release(object);
      break;
    case kShared:
      release(static_cast<SharedVariable*>(object));
      break;
    default:
      break;
  }
}

} // extern "C"
