// The part of os/log.h that PyTorch's headers name, declared by hand for type checking only.
#pragma once
#include <stdbool.h>
#include <stdint.h>
typedef struct os_log_s *os_log_t;
typedef uint8_t os_log_type_t;
extern "C" os_log_t os_log_create(const char *subsystem, const char *category);
#define os_log(log, ...) ((void)(log))
