#include "fiber.h"

#include <stdint.h>
#include <string.h>

#if !defined(WAVESMITH_FIBER_UCONTEXT)
#    if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(__ILP32__)
#        define WAVESMITH_FIBER_UCONTEXT 0
#    else
#        define WAVESMITH_FIBER_UCONTEXT 1
#    endif
#endif

#if WAVESMITH_FIBER_UCONTEXT

#    include <ucontext.h>

#    include <new>

// makecontext passes ints only; pointers travel as two halves.
static void start(unsigned entry_high, unsigned entry_low, unsigned argument_high, unsigned argument_low) {
    const uint64_t entry    = (uint64_t(entry_high) << 32) | entry_low;
    const uint64_t argument = (uint64_t(argument_high) << 32) | argument_low;
    reinterpret_cast<wavesmith::host::FiberEntry>(uintptr_t(entry))(reinterpret_cast<void *>(uintptr_t(argument)));
}

void * wavesmith::host::prepare_fiber(void * stack_begin, size_t stack_bytes, FiberEntry entry, void * argument) {
    // The context lies at the top of the stack it describes.
    const uintptr_t top     = (uintptr_t(stack_begin) + stack_bytes - sizeof(ucontext_t)) & ~uintptr_t(63);
    ucontext_t *    context = new (reinterpret_cast<void *>(top)) ucontext_t;
    getcontext(context);
    context->uc_link          = nullptr;
    context->uc_stack.ss_sp   = stack_begin;
    context->uc_stack.ss_size = top - uintptr_t(stack_begin);
    const uint64_t e          = uint64_t(reinterpret_cast<uintptr_t>(entry));
    const uint64_t a          = uint64_t(reinterpret_cast<uintptr_t>(argument));
    makecontext(context, reinterpret_cast<void (*)()>(&start), 4, unsigned(e >> 32), unsigned(e), unsigned(a >> 32), unsigned(a));
    return context;
}

extern "C" void wavesmith_fiber_switch(void ** from, void * to) {
    ucontext_t here;  // lives on the suspended fiber's own stack
    *from = &here;
    swapcontext(&here, static_cast<ucontext_t *>(to));
}

#elif defined(__x86_64__)

// System V ABI: rbx, rbp, r12-r15, the control bits of MXCSR and the x87 control word are preserved by a function. The
// control words are written back only where they differ, since loading them is slow; bits 0-5 of MXCSR are status.
asm(R"(
    .text
    .p2align 4
    .globl wavesmith_fiber_switch
    .hidden wavesmith_fiber_switch
    .type wavesmith_fiber_switch, @function
wavesmith_fiber_switch:
    .cfi_startproc
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movl (%rsp), %eax
    movzwl 4(%rsp), %ecx
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    xorl (%rsp), %eax
    xorw 4(%rsp), %cx
    testl $0xffc0, %eax
    jne 1f
    testw %cx, %cx
    jne 1f
2:  addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
1:  ldmxcsr (%rsp)
    fldcw 4(%rsp)
    jmp 2b
    .cfi_endproc
    .size wavesmith_fiber_switch, . - wavesmith_fiber_switch

    .p2align 4
    .globl wavesmith_fiber_start
    .hidden wavesmith_fiber_start
    .type wavesmith_fiber_start, @function
wavesmith_fiber_start:
    .cfi_startproc
    .cfi_undefined rip
    movq %r12, %rdi
    callq *%r13
    ud2
    .cfi_endproc
    .size wavesmith_fiber_start, . - wavesmith_fiber_start
)");

extern "C" __attribute__((visibility("hidden"))) void wavesmith_fiber_start();

namespace {

// What wavesmith_fiber_switch takes off the stack, lowest address first.
struct Frame {
    uint32_t mxcsr;
    uint16_t x87_control;
    uint16_t padding;
    uint64_t r15, r14, r13, r12, rbx, rbp;
    void (*return_address)();
};

}  // namespace

void * wavesmith::host::prepare_fiber(void * stack_begin, size_t stack_bytes, FiberEntry entry, void * argument) {
    // wavesmith_fiber_start makes a call, so the stack must be aligned to 16 bytes when it is reached.
    const uintptr_t top = (uintptr_t(stack_begin) + stack_bytes) & ~uintptr_t(15);
    Frame *         frame = reinterpret_cast<Frame *>(top - sizeof(Frame));
    static_assert(sizeof(Frame) == 64, "matches the assembly");
    memset(static_cast<void *>(frame), 0, sizeof(Frame));
    asm volatile("stmxcsr %0" : "=m"(frame->mxcsr));
    asm volatile("fnstcw %0" : "=m"(frame->x87_control));
    frame->r12            = reinterpret_cast<uint64_t>(argument);
    frame->r13            = reinterpret_cast<uint64_t>(entry);
    frame->return_address = wavesmith_fiber_start;
    return frame;
}

#else  // aarch64

// AAPCS64: x19-x30, the low halves of v8-v15 and the control bits of FPCR are preserved by a function.
asm(R"(
    .text
    .p2align 4
    .globl wavesmith_fiber_switch
    .hidden wavesmith_fiber_switch
    .type wavesmith_fiber_switch, %function
wavesmith_fiber_switch:
    .cfi_startproc
    sub sp, sp, #176
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mrs x9, fpcr
    str x9, [sp, #160]
    mov x10, sp
    str x10, [x0]
    mov sp, x1
    ldr x11, [sp, #160]
    cmp x9, x11
    b.eq 1f
    msr fpcr, x11
1:  ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #176
    ret
    .cfi_endproc
    .size wavesmith_fiber_switch, . - wavesmith_fiber_switch

    .p2align 4
    .globl wavesmith_fiber_start
    .hidden wavesmith_fiber_start
    .type wavesmith_fiber_start, %function
wavesmith_fiber_start:
    .cfi_startproc
    .cfi_undefined x30
    mov x0, x19
    blr x20
    brk #0
    .cfi_endproc
    .size wavesmith_fiber_start, . - wavesmith_fiber_start
)");

extern "C" __attribute__((visibility("hidden"))) void wavesmith_fiber_start();

namespace {

// What wavesmith_fiber_switch takes off the stack, lowest address first.
struct Frame {
    uint64_t x19, x20, x21_to_x28[8], x29;
    void (*x30)();
    uint64_t d8_to_d15[8];
    uint64_t fpcr;
    uint64_t padding;
};

}  // namespace

void * wavesmith::host::prepare_fiber(void * stack_begin, size_t stack_bytes, FiberEntry entry, void * argument) {
    const uintptr_t top   = (uintptr_t(stack_begin) + stack_bytes) & ~uintptr_t(15);
    Frame *         frame = reinterpret_cast<Frame *>(top - sizeof(Frame));
    static_assert(sizeof(Frame) == 176, "matches the assembly");
    memset(static_cast<void *>(frame), 0, sizeof(Frame));
    asm volatile("mrs %0, fpcr" : "=r"(frame->fpcr));
    frame->x19 = reinterpret_cast<uint64_t>(argument);
    frame->x20 = reinterpret_cast<uint64_t>(entry);
    frame->x30 = wavesmith_fiber_start;
    return frame;
}

#endif
