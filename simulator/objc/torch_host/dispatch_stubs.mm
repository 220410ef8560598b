// Dispatch stubs with support for mps. In a torch built for Linux, each stub has a pointer for mps, but
// DispatchStubImpl::get_call_ptr ignores it. All stubs call this function through one slot of libtorch_cpu's PLT, which
// this library replaces when it is loaded. Compiled without ARC.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/native/mps/OperationUtils.h>

#include <ATen/native/DispatchStub.h>
#include <c10/util/Exception.h>

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace {

using at::native::DispatchStubImpl;
// After the device there is a pointer for each instruction set of the build: at most four.
using GetCallPtr = void* (*)(DispatchStubImpl*, c10::DeviceType, void*, void*, void*, void*);

constexpr const char* kFunction = "_ZN2at6native16DispatchStubImpl12get_call_ptrE";
constexpr const char* kLibrary = "libtorch_cpu.so";

GetCallPtr original;

void* get_call_ptr(DispatchStubImpl* stub, c10::DeviceType device, void* a, void* b, void* c, void* d) {
  if (device != c10::DeviceType::MPS) {
    return original(stub, device, a, b, c, d);
  }
  TORCH_CHECK(stub->mps_dispatch_ptr != nullptr, "DispatchStub: missing kernel for ", device);
  return stub->mps_dispatch_ptr;
}

// The function table of a loaded library, from its dynamic section.
struct FunctionTable {
  const char* names = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const ElfW(Rela) * slots = nullptr;
  size_t count = 0;

  FunctionTable(ElfW(Addr) base, const ElfW(Dyn) * entries) {
    for (; entries->d_tag != DT_NULL; ++entries) {
      // The dynamic linker of glibc converts these offsets to addresses; others do not.
      const auto value = entries->d_un.d_ptr;
      const auto address = value < base ? base + value : value;
      switch (entries->d_tag) {
        case DT_STRTAB:
          names = reinterpret_cast<const char*>(address);
          break;
        case DT_SYMTAB:
          symbols = reinterpret_cast<const ElfW(Sym)*>(address);
          break;
        case DT_JMPREL:
          slots = reinterpret_cast<const ElfW(Rela)*>(address);
          break;
        case DT_PLTRELSZ:
          count = entries->d_un.d_val / sizeof(ElfW(Rela));
          break;
      }
    }
  }
};

void replace(void** slot, void* address) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* start = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page - 1));
  if (mprotect(start, page, PROT_READ | PROT_WRITE) == 0) {
    *slot = address;
  }
}

int point_stubs_here(dl_phdr_info* library, size_t, void*) {
  if (std::strstr(library->dlpi_name, kLibrary) == nullptr) {
    return 0;
  }
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) {
      continue;
    }
    const auto base = library->dlpi_addr;
    const FunctionTable table(base, reinterpret_cast<const ElfW(Dyn)*>(base + library->dlpi_phdr[i].p_vaddr));
    for (size_t k = 0; table.slots != nullptr && k < table.count; ++k) {
      const char* name = table.names + table.symbols[ELF64_R_SYM(table.slots[k].r_info)].st_name;
      if (std::strncmp(name, kFunction, std::strlen(kFunction)) == 0) {
        const auto& symbol = table.symbols[ELF64_R_SYM(table.slots[k].r_info)];
        original = reinterpret_cast<GetCallPtr>(base + symbol.st_value);
        replace(reinterpret_cast<void**>(base + table.slots[k].r_offset), reinterpret_cast<void*>(&get_call_ptr));
      }
    }
  }
  return 1;
}

__attribute__((constructor)) void point_all_stubs_here() { dl_iterate_phdr(point_stubs_here, nullptr); }

} // namespace
