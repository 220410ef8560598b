// What metal-cpp and IOKit need of Mach.
#pragma once
typedef int kern_return_t;
typedef unsigned mach_port_t;
typedef mach_port_t task_id_token_t;
#define KERN_SUCCESS 0
