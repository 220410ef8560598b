// The part of os/signpost.h that PyTorch's headers name, declared by hand for type checking only.
#pragma once
#include <os/log.h>
typedef uint64_t os_signpost_id_t;
typedef uint8_t os_signpost_type_t;
extern "C" os_signpost_id_t os_signpost_id_generate(os_log_t log);
extern "C" bool os_signpost_enabled(os_log_t log);
