// Messages: method lookup, and the trampolines that jump to methods.
#include "runtime.h"

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

namespace objc {

ForeignObjects foreign_objects;

namespace {

// Leaked, like all tables here, because objects outlive static objects.
std::mutex& tables_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::unordered_map<Class, std::vector<const MethodList*>>& category_methods() {
  static auto* methods = new std::unordered_map<Class, std::vector<const MethodList*>>;
  return *methods;
}

IMP method_in(const MethodList* methods, const char* name) {
  for (uint32_t i = 0; methods != nullptr && i < methods->count; ++i) {
    if (std::strcmp((*methods)[i].name, name) == 0) {
      return (*methods)[i].function;
    }
  }
  return nullptr;
}

// With the tables' mutex.
IMP search_method(Class of, const char* name) {
  for (; of != nullptr; of = of->superclass) {
    const auto more = category_methods().find(of);
    if (more != category_methods().end()) {
      for (auto list = more->second.rbegin(); list != more->second.rend(); ++list) {
        if (IMP found = method_in(*list, name)) {
          return found;
        }
      }
    }
    if (IMP found = own_method(of, name)) {
      return found;
    }
  }
  return nullptr;
}

// A method that was looked up, or null. Rows are never changed or freed, so that they are read without a lock.
struct Row {
  Class of;
  SEL name;
  IMP function;
};
using Rows = std::map<std::pair<Class, SEL>, Row>;
// Hundreds are in use, and each collision costs a search.
std::array<std::atomic<const Row*>, 4096> recent_rows;
std::atomic<const Row*>& recent_row(Class of, SEL name) {
  const uint64_t both = reinterpret_cast<uintptr_t>(of) * 31 + reinterpret_cast<uintptr_t>(name);
  return recent_rows[both * 0x9E3779B97F4A7C15 >> 52]; // the golden ratio: classes and names are evenly spaced
}
// All rows since the last category. With the tables' mutex.
Rows& rows() {
  static auto* all = new Rows;
  return *all;
}

IMP find_method(Class of, SEL name) {
  const std::lock_guard<std::mutex> guard(tables_mutex());
  auto found = rows().find({of, name});
  if (found == rows().end()) {
    const IMP function = search_method(of, reinterpret_cast<const char*>(name));
    found = rows().emplace(std::pair{of, name}, Row{of, name, function}).first;
  }
  recent_row(of, name).store(&found->second, std::memory_order_release);
  return found->second.function;
}

[[noreturn]] void unrecognized(Class of, id self, SEL name) {
  const char* message = reinterpret_cast<const char*>(name);
  if (self != nullptr && is_released(self)) {
    throw std::runtime_error(
        std::string("Metal, simulated: a released object was used again: -[") + header_of(self)->former->data()->name +
        " " + message + "]");
  }
  throw std::runtime_error(
      std::string(of->is_meta() ? "+[" : "-[") + of->data()->name + " " + message +
      "]: the simulated Metal host has no such method");
}
void unrecognized_message(id self, SEL name) { unrecognized(class_of(self), self, name); }
void unrecognized_message_stret(void*, id self, SEL name) { unrecognized(class_of(self), self, name); }

IMP found_or(IMP function, void (*otherwise)(id, SEL)) {
  return function ? function : reinterpret_cast<IMP>(otherwise);
}
IMP found_or(IMP function, void (*otherwise)(void*, id, SEL)) {
  return function ? function : reinterpret_cast<IMP>(otherwise);
}

} // namespace

IMP own_method(Class of, const char* name) { return method_in(of->data()->methods, name); }

IMP method_or_null(Class of, SEL name) {
  const Row* row = recent_row(of, name).load(std::memory_order_acquire);
  return row != nullptr && row->of == of && row->name == name ? row->function : find_method(of, name);
}

void add_category(const Category* category) {
  const std::lock_guard<std::mutex> guard(tables_mutex());
  if (category->instance_methods != nullptr) {
    category_methods()[category->of].push_back(category->instance_methods);
  }
  if (category->class_methods != nullptr) {
    category_methods()[category->of->isa].push_back(category->class_methods);
  }
  // It may replace methods. Other threads may still read the rows.
  static auto* former = new std::vector<Rows>;
  former->push_back(std::move(rows()));
  rows().clear();
  for (auto& row : recent_rows) {
    row.store(nullptr, std::memory_order_release);
  }
}

} // namespace objc

extern "C" {

char _objc_empty_cache, _objc_empty_vtable;

struct Super {
  id receiver;
  Class of;
};
IMP objc_simulator_lookup(id receiver, SEL name) {
  return objc::found_or(objc::method_or_null(objc::class_of(receiver), name), &objc::unrecognized_message);
}
IMP objc_simulator_lookup_stret(id receiver, SEL name) {
  return objc::found_or(objc::method_or_null(objc::class_of(receiver), name), &objc::unrecognized_message_stret);
}
IMP objc_simulator_lookup_super(Super* super, SEL name) {
  return objc::found_or(objc::method_or_null(super->of->superclass, name), &objc::unrecognized_message);
}
IMP objc_simulator_lookup_super_stret(Super* super, SEL name) {
  return objc::found_or(objc::method_or_null(super->of->superclass, name), &objc::unrecognized_message_stret);
}

void objc_simulator_set_foreign_objects(objc::ForeignClass class_of, const std::atomic<bool>* anywhere) {
  objc::foreign_objects = {class_of, anywhere};
}

} // extern "C"

// A trampoline saves the argument registers, looks up the method, and jumps to it. With NIL, a message to nil returns 0.
// clang-format off
#if defined(__x86_64__)
#define SEND(NAME, ARGUMENTS, LOOKUP, NIL, AFTER)                                                                     \
  asm(".text\n.globl " #NAME "\n.type " #NAME ", @function\n" #NAME ":\n.cfi_startproc\n" NIL                          \
      "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmovq %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"       \
      "subq $192, %rsp\n"                                                                                              \
      "movq %rdi, (%rsp)\nmovq %rsi, 8(%rsp)\nmovq %rdx, 16(%rsp)\nmovq %rcx, 24(%rsp)\nmovq %r8, 32(%rsp)\n"          \
      "movq %r9, 40(%rsp)\nmovq %rax, 48(%rsp)\nmovups %xmm0, 64(%rsp)\nmovups %xmm1, 80(%rsp)\n"                      \
      "movups %xmm2, 96(%rsp)\nmovups %xmm3, 112(%rsp)\nmovups %xmm4, 128(%rsp)\nmovups %xmm5, 144(%rsp)\n"            \
      "movups %xmm6, 160(%rsp)\nmovups %xmm7, 176(%rsp)\n" ARGUMENTS "call " #LOOKUP "@PLT\n"                          \
      "movq %rax, %r11\nmovq (%rsp), %rdi\nmovq 8(%rsp), %rsi\nmovq 16(%rsp), %rdx\nmovq 24(%rsp), %rcx\n"             \
      "movq 32(%rsp), %r8\nmovq 40(%rsp), %r9\nmovq 48(%rsp), %rax\nmovups 64(%rsp), %xmm0\n"                          \
      "movups 80(%rsp), %xmm1\nmovups 96(%rsp), %xmm2\nmovups 112(%rsp), %xmm3\nmovups 128(%rsp), %xmm4\n"             \
      "movups 144(%rsp), %xmm5\nmovups 160(%rsp), %xmm6\nmovups 176(%rsp), %xmm7\n" AFTER                              \
      "leave\n.cfi_def_cfa %rsp, 8\njmp *%r11\n.cfi_endproc\n.size " #NAME ", .-" #NAME "\n")
#define IF_NIL(REGISTER)                                                                                               \
  "testq %" REGISTER ", %" REGISTER "\njnz 1f\nxorl %eax, %eax\nxorl %edx, %edx\nxorps %xmm0, %xmm0\n"                 \
  "xorps %xmm1, %xmm1\nret\n1:\n"
// For structures returned in memory, the first argument is their address, then receiver and selector.
#define SHIFTED "movq %rsi, %rdi\nmovq %rdx, %rsi\n"
SEND(objc_msgSend, "", objc_simulator_lookup, IF_NIL("rdi"), "");
SEND(objc_msgSend_fpret, "", objc_simulator_lookup, IF_NIL("rdi"), "");
SEND(objc_msgSend_stret, SHIFTED, objc_simulator_lookup_stret, IF_NIL("rsi"), "");
SEND(objc_msgSendSuper2, "", objc_simulator_lookup_super, "", "movq (%rdi), %rdi\n");
SEND(objc_msgSendSuper2_stret, SHIFTED, objc_simulator_lookup_super_stret, "", "movq (%rsi), %rsi\n");
#elif defined(__aarch64__)
// Mach-O symbols begin with an underscore, and have no type and size.
#ifdef __APPLE__
#define BEGIN(NAME) ".text\n.p2align 2\n.globl _" #NAME "\n_" #NAME ":\n.cfi_startproc\n"
#define END(NAME) ".cfi_endproc\n"
#define TO(NAME) "_" #NAME
#else
#define BEGIN(NAME) ".text\n.globl " #NAME "\n.type " #NAME ", @function\n" #NAME ":\n.cfi_startproc\n"
#define END(NAME) ".cfi_endproc\n.size " #NAME ", .-" #NAME "\n"
#define TO(NAME) #NAME
#endif
#define SEND(NAME, LOOKUP, NIL, AFTER)                                                                                 \
  asm(BEGIN(NAME) NIL                                                                                                  \
      "stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset w30, -8\n.cfi_offset w29, -16\n"                 \
      "mov x29, sp\n.cfi_def_cfa w29, 16\nsub sp, sp, #208\n"                                                          \
      "stp x0, x1, [sp]\nstp x2, x3, [sp, #16]\nstp x4, x5, [sp, #32]\nstp x6, x7, [sp, #48]\nstr x8, [sp, #64]\n"     \
      "stp q0, q1, [sp, #80]\nstp q2, q3, [sp, #112]\nstp q4, q5, [sp, #144]\nstp q6, q7, [sp, #176]\n"                \
      "bl " TO(LOOKUP) "\nmov x16, x0\n"                                                                                  \
      "ldp x0, x1, [sp]\nldp x2, x3, [sp, #16]\nldp x4, x5, [sp, #32]\nldp x6, x7, [sp, #48]\nldr x8, [sp, #64]\n"     \
      "ldp q0, q1, [sp, #80]\nldp q2, q3, [sp, #112]\nldp q4, q5, [sp, #144]\nldp q6, q7, [sp, #176]\n" AFTER          \
      "mov sp, x29\nldp x29, x30, [sp], #16\n.cfi_def_cfa wsp, 0\nbr x16\n" END(NAME))
SEND(objc_msgSend, objc_simulator_lookup,
     "cbnz x0, 1f\nmov x1, #0\nmovi d0, #0\nmovi d1, #0\nmovi d2, #0\nmovi d3, #0\nret\n1:\n", "");
SEND(objc_msgSendSuper2, objc_simulator_lookup_super, "", "ldr x0, [x0]\n");
#endif
