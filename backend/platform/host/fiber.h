// Light-weight threads of control that are switched by hand: the threads of a block on the host platform.
//
// A switch saves and restores what the platform's calling convention asks a function to preserve and swaps the stack
// pointer: no system call. x86-64 and aarch64 (ELF) have a few lines of assembly, other systems use ucontext, which is
// slower (it makes a system call) but behaves the same. -DWAVESMITH_FIBER_UCONTEXT=1 forces the latter.
//
// A fiber must stay on the system thread it was started on. C++ exceptions may be thrown and caught inside a fiber as
// long as they are caught before the next switch and never leave the fiber's entry.
#pragma once

#include <stddef.h>

namespace wavesmith::host {

// `argument` is what prepare_fiber was given. Must never return: its last act is a switch to another fiber.
using FiberEntry = void (*)(void * argument);

// Makes a suspended fiber on the stack [stack_begin, stack_begin + stack_bytes) and returns its handle. The stack must
// stay valid as long as the fiber may be switched to. The handle is used up by the first switch to it.
void * prepare_fiber(void * stack_begin, size_t stack_bytes, FiberEntry entry, void * argument);

}  // namespace wavesmith::host

// Suspends the caller, stores its handle in *from and goes on with the fiber `to`. Returns when something switches to
// the stored handle. Keeps the floating point control words (rounding, traps) of each fiber its own.
extern "C" __attribute__((visibility("hidden"))) void wavesmith_fiber_switch(void ** from, void * to);
