// Small kernels that try the host platform. Usage: platform_test CASE [ARGUMENT …]
//
// A case either checks its own numbers (exit code 1 and a line on stderr if they are wrong) or prints what
// host::launch returned, for the caller to judge.
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "arch/cdna3.h"
#include "arch/rdna3.h"
#include "platform/host/launch.h"
#include "platform/host/options.h"
#include "platform/host/simt.h"
#include "single_instruction.h"

using namespace wavesmith;
using host::Launch;
using host::Region;

namespace {

template <bool checked> using Simt32 = host::HostSimt<arch::Rdna3, checked>;
template <bool checked> using Simt64 = host::HostSimt<arch::Cdna3, checked>;

[[noreturn]] void wrong(const std::string & what) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
}

void expect(bool holds, const std::string & what) {
    if (!holds) {
        wrong(what);
    }
}

Launch make_launch(const char * kernel, uint32_t blocks, uint32_t threads, uint32_t lds_bytes, const std::vector<Region> & regions, int workers = 1) {
    return { kernel, { blocks, 1, 1 }, threads, lds_bytes, regions.data(), int(regions.size()), workers };
}

template <class T> Region region(std::vector<T> & data, bool writable, const char * name) {
    return { data.data(), data.size() * sizeof(T), writable, name };
}

// Runs `test` for both wave sizes, fast and checked.
template <template <class> class Test> void everywhere() {
    Test<Simt32<false>>::run();
    Test<Simt32<true>>::run();
    Test<Simt64<false>>::run();
    Test<Simt64<true>>::run();
}

// ---- identity ----

struct Identity {
    struct Arguments {
        uint32_t * out;
    };
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        const uint32_t block  = simt.block_x() + simt.grid_x() * (simt.block_y() + simt.grid_y() * simt.block_z());
        const uint32_t values[8] = { simt.thread(),  simt.lane(),    simt.wave(),    simt.thread_count(),
                                     simt.block_x(), simt.block_y(), simt.block_z(), simt.grid_x() * 100 + simt.grid_y() * 10 + simt.grid_z() };
        for (uint32_t i = 0; i < 8; i++) {
            simt.template store<uint32_t>(arguments.out + (block * simt.thread_count() + simt.thread()) * 8 + i, values[i]);
        }
    }
};

template <class Simt> struct IdentityTest {
    static void run() {
        const uint32_t        threads = 192;
        std::vector<uint32_t> out(3 * 2 * 4 * threads * 8, ~0u);
        const Region          regions[] = { region(out, true, "out") };
        const Launch          launch    = { "identity", { 3, 2, 4 }, threads, 0, regions, 1, 2 };
        expect(host::launch<Identity, Simt>(launch, { out.data() }) == "", "identity: fault");
        const uint32_t * value = out.data();
        for (uint32_t z = 0; z < 4; z++) {
            for (uint32_t y = 0; y < 2; y++) {
                for (uint32_t x = 0; x < 3; x++) {
                    for (uint32_t t = 0; t < threads; t++, value += 8) {
                        const uint32_t want[8] = { t, t % Simt::wave_size, t / Simt::wave_size, threads, x, y, z, 324 };
                        for (int i = 0; i < 8; i++) {
                            expect(value[i] == want[i], "identity: value " + std::to_string(i) + " of thread " + std::to_string(t));
                        }
                    }
                }
            }
        }
    }
};

// ---- shuffle ----

struct Exchange {
    struct Arguments {
        const float * in;
        float *       out;
    };
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        const uint32_t i   = simt.block_x() * simt.thread_count() + simt.thread();
        const float    own = simt.template load<float>(arguments.in + i);
        float          sum = own;
        for (uint32_t mask = 1; mask < Simt::wave_size; mask *= 2) {
            sum += simt.shuffle_xor(sum, mask);
        }
        const uint32_t place = simt.shuffle(simt.thread(), (simt.lane() * 5 + 3) % Simt::wave_size);
        simt.template store<float>(arguments.out + 2 * i, sum);
        simt.template store<float>(arguments.out + 2 * i + 1, float(place));
    }
};

template <class Simt> struct ShuffleTest {
    static void run() {
        const uint32_t     threads = 256, blocks = 3;
        std::vector<float> in(threads * blocks), out(2 * threads * blocks);
        for (size_t i = 0; i < in.size(); i++) {
            in[i] = float(i * 7919 % 1000);
        }
        const std::vector<Region> regions = { region(in, false, "in"), region(out, true, "out") };
        expect(host::launch<Exchange, Simt>(make_launch("exchange", blocks, threads, 0, regions), { in.data(), out.data() }) == "", "shuffle: fault");
        for (uint32_t i = 0; i < threads * blocks; i++) {
            const uint32_t first = i / Simt::wave_size * Simt::wave_size;
            float          sum   = 0;
            for (uint32_t lane = 0; lane < Simt::wave_size; lane++) {
                sum += in[first + lane];
            }
            const uint32_t source = first % threads + (i % Simt::wave_size * 5 + 3) % Simt::wave_size;
            expect(out[2 * i] == sum, "shuffle_xor: sum of thread " + std::to_string(i));
            expect(out[2 * i + 1] == float(source), "shuffle: thread " + std::to_string(i));
        }
    }
};

// ---- barrier ----

// Sums all of the block's values by halving, through LDS.
struct BlockSum {
    struct Arguments {
        const uint32_t * in;
        uint32_t *       out;
    };
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        const uint32_t t = simt.thread();
        simt.lds_store(4 * t, simt.template load<uint32_t>(arguments.in + simt.block_x() * simt.thread_count() + t));
        for (uint32_t half = simt.thread_count() / 2; half > 0; half /= 2) {
            simt.barrier();
            if (t < half) {
                simt.lds_store(4 * t, simt.template lds_load<uint32_t>(4 * t) + simt.template lds_load<uint32_t>(4 * (t + half)));
            }
        }
        simt.barrier();
        if (t == simt.thread_count() - 1) {
            simt.template store<uint32_t>(arguments.out + simt.block_x(), simt.template lds_load<uint32_t>(0));
        }
    }
};

template <class Simt> void check_block_sums(uint32_t blocks, uint32_t threads, int workers) {
    std::vector<uint32_t> in(size_t(blocks) * threads), out(blocks);
    for (size_t i = 0; i < in.size(); i++) {
        in[i] = uint32_t(i * 2654435761u);
    }
    const std::vector<Region> regions = { region(in, false, "in"), region(out, true, "out") };
    const std::string fault = host::launch<BlockSum, Simt>(make_launch("block_sum", blocks, threads, 4 * threads, regions, workers), { in.data(), out.data() });
    expect(fault == "", fault);
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t sum = 0;
        for (uint32_t t = 0; t < threads; t++) {
            sum += in[size_t(b) * threads + t];
        }
        expect(out[b] == sum, "block_sum: block " + std::to_string(b));
    }
}

template <class Simt> struct BarrierTest {
    static void run() {
        check_block_sums<Simt>(5, 64, 1);
        check_block_sums<Simt>(5, 512, 1);
        check_block_sums<Simt>(2, 1024, 1);
    }
};

void many_blocks() {
    check_block_sums<Simt32<false>>(5000, 64, 2);
    check_block_sums<Simt64<true>>(2000, 64, 2);
}

void concurrent_launches() {
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; i++) {
        callers.emplace_back([i] {
            for (int repeat = 0; repeat < 20; repeat++) {
                check_block_sums<Simt32<false>>(40, i % 2 != 0 ? 64 : 256, 1 + i % 3);
            }
        });
    }
    for (std::thread & caller : callers) {
        caller.join();
    }
}

void fork_child() {
    check_block_sums<Simt32<false>>(50, 64, 3);  // the pool's threads exist now
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        check_block_sums<Simt32<false>>(50, 64, 3);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child cannot launch");
    check_block_sums<Simt32<false>>(50, 64, 3);
}

// ---- memory ----

struct Copy {
    struct Arguments {
        const uint8_t * in;
        uint8_t *       out;
    };
    template <class Simt, class T, int align> static uint32_t move(const Simt & simt, const Arguments & arguments, uint32_t at) {
        const T value = simt.template load<T, align>(arguments.in + at);
        simt.template lds_store<T>(16 * simt.thread(), value);
        simt.template store<T, align>(arguments.out + at, simt.template lds_load<T>(16 * simt.thread()));
        return at + uint32_t(sizeof(T));
    }
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        uint32_t at = 47 * simt.thread();
        at          = move<Simt, Bytes16, 1>(simt, arguments, at);
        at          = move<Simt, Bytes8, 1>(simt, arguments, at);
        at          = move<Simt, double, 1>(simt, arguments, at);
        at          = move<Simt, float, 1>(simt, arguments, at);
        at          = move<Simt, uint32_t, 1>(simt, arguments, at);
        at          = move<Simt, uint16_t, 1>(simt, arguments, at);
        at          = move<Simt, uint8_t, 1>(simt, arguments, at);
        move<Simt, int32_t, 1>(simt, arguments, at);
    }
};

template <class Simt> struct MemoryTest {
    static void run() {
        const uint32_t       threads = 64;
        std::vector<uint8_t> in(47 * threads), out(in.size(), 0);
        for (size_t i = 0; i < in.size(); i++) {
            in[i] = uint8_t(i * 197 >> 3);
        }
        const std::vector<Region> regions = { region(in, false, "in"), region(out, true, "out") };
        const std::string         fault   = host::launch<Copy, Simt>(make_launch("copy", 1, threads, 16 * threads, regions), { in.data(), out.data() });
        expect(fault == "", fault);
        expect(in == out, "copy: bytes differ");
    }
};

// ---- exceptions and control words ----

struct Exceptions {
    struct Arguments {
        uint32_t * out;
        uint32_t   escaping_thread;
    };
    __attribute__((noinline)) static void raise(uint32_t depth) {
        if (depth == 0) {
            throw std::runtime_error("deep down");
        }
        raise(depth - 1);
        asm volatile("");
    }
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        uint32_t caught = 0;
        for (uint32_t i = 0; i < 3; i++) {
            try {
                raise(simt.thread() % 7);
            } catch (const std::runtime_error &) {
                caught++;
            }
            simt.barrier();
        }
        if (simt.thread() == arguments.escaping_thread) {
            raise(3);
        }
        simt.template store<uint32_t>(arguments.out + simt.thread(), caught);
    }
};

template <class Simt> struct ExceptionTest {
    static void run() {
        std::vector<uint32_t>     out(128);
        const std::vector<Region> regions = { region(out, true, "out") };
        const Launch              launch  = make_launch("exceptions", 1, 128, 0, regions);
        expect(host::launch<Exceptions, Simt>(launch, { out.data(), ~0u }) == "", "exceptions: fault");
        expect(out == std::vector<uint32_t>(128, 3), "exceptions: not all caught");
        const std::string fault = host::launch<Exceptions, Simt>(launch, { out.data(), 70 });
        expect(fault == "kernel exceptions, block (0, 0, 0), thread 70: deep down", fault);
    }
};

struct Rounding {
    struct Arguments {
        uint32_t * wrong;
    };
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        const int own = simt.thread() % 3 == 0 ? FE_UPWARD : simt.thread() % 3 == 1 ? FE_TOWARDZERO : FE_TONEAREST;
        fesetround(own);
        uint32_t bad = 0;
        for (int i = 0; i < 4; i++) {
            simt.barrier();
            bad += fegetround() != own;
            simt.shuffle_xor(i, 1);
            bad += fegetround() != own;
        }
        simt.template store<uint32_t>(arguments.wrong + simt.thread(), bad);
    }
};

template <class Simt> struct RoundingTest {
    static void run() {
        std::vector<uint32_t>     bad(128, 1);
        const std::vector<Region> regions = { region(bad, true, "wrong") };
        expect(host::launch<Rounding, Simt>(make_launch("rounding", 3, 128, 0, regions), { bad.data() }) == "", "rounding: fault");
        expect(bad == std::vector<uint32_t>(128, 0), "a thread's rounding mode was changed by another");
        expect(fegetround() == FE_TONEAREST, "the caller's rounding mode was changed");
    }
};

// ---- faults, by number ----

// Each kind is a mistake made by the thread `culprit` of block (2, 1, 0), or by all threads.
struct Mistake {
    struct Arguments {
        int       kind;
        uint32_t  culprit;
        uint8_t * in;
        uint8_t * out;
    };

    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        const uint32_t t       = simt.thread();
        const bool     culprit = t == arguments.culprit && simt.block_x() == 2 && simt.block_y() == 1;
        switch (arguments.kind) {
            case 0:  // LDS store past the end
                simt.template lds_store<uint32_t>(culprit ? 1024 : 0, 1);
                break;
            case 1:  // LDS load across the end; the sum of offset and size overflows
                simt.template lds_load<uint32_t>(culprit ? 0xfffffffcu : 0);
                break;
            case 2:  // misaligned LDS
                simt.template lds_load<Bytes16>(culprit ? 24 : 16);
                break;
            case 3:  // global load across the end
                simt.template load<uint32_t, 1>(arguments.in + (culprit ? 253 : 0));
                break;
            case 4:  // global store before the beginning
                simt.template store<uint8_t>(arguments.out - (culprit ? 1 : 0), 1);
                break;
            case 5:  // store to a read-only buffer
                simt.template store<uint8_t>(culprit ? arguments.in + 8 : arguments.out, 1);
                break;
            case 6:  // misaligned global load
                simt.template load<uint32_t>(arguments.in + (culprit ? 2 : 4));
                break;
            case 7:  // a lane at a barrier while the others shuffle
                if (culprit) {
                    simt.barrier();
                }
                simt.shuffle_xor(t, 1u);
                break;
            case 8:  // a lane gone while the others shuffle
                if (culprit) {
                    return;
                }
                simt.shuffle_xor(t, 1u);
                break;
            case 9:  // a thread gone while the others wait at a barrier
                if (culprit) {
                    return;
                }
                simt.barrier();
                break;
            case 10:  // two different wave operations
                if (culprit) {
                    using Matrix = arch::Select<Simt::wave_size == 32, arch::Wmma16x16x16Rdna3, arch::Mfma16x16x32>;
                    typename Matrix::A a = {};
                    typename Matrix::B b = {};
                    typename Matrix::C c = {};
                    Matrix::multiply(simt, a, b, c);
                } else {
                    simt.shuffle_xor(t, 1u);
                }
                break;
            case 11:  // a wave at a barrier more often than the others
                simt.barrier();
                if (simt.wave() == 1) {
                    simt.barrier();
                }
                break;
            case 12:  // a lane that does not exist
                simt.shuffle(t, culprit ? Simt::wave_size : 0);
                break;
            case 13:  // uses LDS before it is written
                if (simt.template lds_load<uint32_t>(4 * t) == 0xffffffffu) {
                    throw std::runtime_error("LDS is poisoned");
                }
                break;
            case 14: {  // RDNA3: lanes 16-31 must repeat lanes 0-15
                using Matrix = arch::Wmma16x16x16Rdna3;
                if constexpr (Simt::wave_size == 32) {
                    Matrix::A a = {};
                    Matrix::B b = {};
                    Matrix::C c = {};
                    b.words.word[3] = culprit;
                    Matrix::multiply(simt, a, b, c);
                }
                break;
            }
        }
    }
};

template <class Simt> std::string make_mistake(int kind, uint32_t culprit, int workers) {
    // Guard bytes round the buffers, since some mistakes are real in the fast build.
    std::vector<uint8_t> in_storage(512), out_storage(512);
    uint8_t *            in        = in_storage.data() + 128;
    uint8_t *            out       = out_storage.data() + 128;
    const Region         regions[] = { { nullptr, 0, false, "nothing" }, { in, 256, false, "weights" }, { out, 256, true, "output" } };
    const Launch         launch    = { "mistake", { 4, 3, 2 }, 128, 1024, regions, 3, workers };
    return host::launch<Mistake, Simt>(launch, { kind, culprit, in, out });
}

void mistake(const std::vector<std::string> & arguments) {
    const int  kind    = atoi(arguments[0].c_str());
    const bool checked = arguments[1] == "checked";
    const bool wide    = arguments[2] == "64";
    for (int workers : { 1, 2, 2, 2 }) {
        const std::string fault = wide ? (checked ? make_mistake<Simt64<true>>(kind, 77, workers) : make_mistake<Simt64<false>>(kind, 77, workers))
                                       : (checked ? make_mistake<Simt32<true>>(kind, 77, workers) : make_mistake<Simt32<false>>(kind, 77, workers));
        printf("%s\n", fault.c_str());
        check_block_sums<Simt64<true>>(3, 256, 2);  // the platform still works
    }
}

// ---- races ----

// Threads 40 and 3 touch one word, with a barrier between or not. In the default order thread 40 comes first, since the
// wave that completes a barrier goes on from there.
struct Race {
    struct Arguments {
        bool first_writes, second_writes, barrier_between;
    };
    template <class Simt> static void touch(const Simt & simt, bool write) {
        if (write) {
            simt.template lds_store<uint16_t>(22, 7);
        } else {
            simt.template lds_load<uint32_t>(20);
        }
    }
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        if (simt.thread() == 0) {
            simt.template lds_store<uint32_t>(20, 1);
        }
        simt.barrier();
        if (simt.thread() == 40) {
            touch(simt, arguments.first_writes);
        }
        if (arguments.barrier_between) {
            simt.barrier();
        }
        if (simt.thread() == 3) {
            touch(simt, arguments.second_writes);
            touch(simt, arguments.second_writes);
        }
    }
};

void race(const std::vector<std::string> & arguments) {
    const Launch launch = { "race", { 2, 1, 1 }, 64, 64, nullptr, 0, 1 };
    const bool   first = arguments[0] == "write", second = arguments[1] == "write", barrier = arguments[2] == "barrier";
    const bool   checked = arguments.size() < 4;
    printf("%s\n", (checked ? host::launch<Race, Simt32<true>>(launch, { first, second, barrier })
                            : host::launch<Race, Simt32<false>>(launch, { first, second, barrier }))
                       .c_str());
}

// ---- order ----

// Writes the threads of each block in the order in which they came by.
struct Order {
    struct Arguments {
        uint32_t * out;
        bool       racy;
    };
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        uint32_t * out = arguments.out + simt.block_x() * simt.thread_count();
        if (simt.thread() == 0) {
            simt.template lds_store<uint32_t>(0, 0);
        }
        simt.barrier();
        simt.shuffle_xor(simt.thread(), 1u);
        uint32_t place = simt.thread();
        if (arguments.racy) {
            place = simt.template lds_load<uint32_t>(0);
            simt.template lds_store<uint32_t>(0, place + 1);
        }
        simt.template store<uint32_t>(out + place, simt.thread());
        simt.barrier();
    }
};

// Prints a hash of all results, for one and for several workers.
void order(const std::vector<std::string> & arguments) {
    for (int workers : { 1, 3 }) {
        std::vector<uint32_t>     out(20 * 128, ~0u);
        const std::vector<Region> regions = { region(out, true, "out") };
        const std::string fault = host::launch<Order, Simt32<false>>(make_launch("order", 20, 128, 4, regions, workers), { out.data(), arguments[0] == "racy" });
        expect(fault == "", fault);
        uint64_t hash = 14695981039346656037ull;
        for (uint32_t value : out) {
            hash = (hash ^ value) * 1099511628211ull;
        }
        printf("%016llx\n", (unsigned long long) hash);
    }
}

// Prints the order in which the blocks of one worker ran.
struct BlockOrder {
    struct Arguments {
        uint32_t * count;
        uint32_t * out;
    };
    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        if (simt.thread() == 0) {
            const uint32_t place = simt.template load<uint32_t>(arguments.count);
            simt.template store<uint32_t>(arguments.count, place + 1);
            simt.template store<uint32_t>(arguments.out + place, simt.block_x());
        }
    }
};

void block_order() {
    std::vector<uint32_t>     count(1), out(16, ~0u);
    const std::vector<Region> regions = { region(count, true, "count"), region(out, true, "out") };
    expect(host::launch<BlockOrder, Simt32<true>>(make_launch("block_order", 16, 32, 0, regions), { count.data(), out.data() }) == "", "fault");
    for (uint32_t block : out) {
        printf("%u ", block);
    }
    printf("\n");
}

// ---- launches ----

void launches() {
    const auto run = [](uint32_t x, uint32_t y, uint32_t z, uint32_t threads, uint32_t lds, int workers) {
        const Launch launch = { "mistake", { x, y, z }, threads, lds, nullptr, 0, workers };
        printf("%s\n", host::launch<Mistake, Simt64<true>>(launch, { -1, 0, nullptr, nullptr }).c_str());
    };
    run(0, 5, 5, 64, 0, 2);
    run(5, 0, 5, 64, 0, 2);
    run(1u << 31, 1u << 31, 0, 64, 0, 2);
    run(1, 1, 1, 64, 65536, 0);
    run(3, 1, 1, 64, 0, -5);
    run(1, 1, 1, 96, 0, 1);
    run(1, 1, 1, 0, 0, 1);
    run(1, 1, 1, 2048, 0, 1);
    run(1, 1, 1, 64, 65537, 1);
    run(1u << 31, 1u << 31, 1u << 31, 64, 0, 1);
}

void options() {
    host::Options     options;
    const std::string error = host::read_options(options);
    printf("%s|%d|%d|%d|%llu\n", error.c_str(), host::checked_requested(), options.race_check, options.random_order, (unsigned long long) options.seed);
}

}  // namespace

int main(int argument_count, char ** argument_values) {
    using Arguments = std::vector<std::string>;
    const std::map<std::string, std::function<void(const Arguments &)>> cases = {
        { "identity", [](const Arguments &) { everywhere<IdentityTest>(); } },
        { "shuffle", [](const Arguments &) { everywhere<ShuffleTest>(); } },
        { "barrier", [](const Arguments &) { everywhere<BarrierTest>(); } },
        { "memory", [](const Arguments &) { everywhere<MemoryTest>(); } },
        { "exceptions", [](const Arguments &) { everywhere<ExceptionTest>(); } },
        { "rounding", [](const Arguments &) { everywhere<RoundingTest>(); } },
        { "many_blocks", [](const Arguments &) { many_blocks(); } },
        { "concurrent", [](const Arguments &) { concurrent_launches(); } },
        { "fork", [](const Arguments &) { fork_child(); } },
        { "mistake", mistake },
        { "race", race },
        { "order", order },
        { "block_order", [](const Arguments &) { block_order(); } },
        { "launches", [](const Arguments &) { launches(); } },
        { "options", [](const Arguments &) { options(); } },
    };
    const auto found = argument_count > 1 ? cases.find(argument_values[1]) : cases.end();
    if (found == cases.end()) {
        fprintf(stderr, "unknown case\n");
        return 2;
    }
    found->second(Arguments(argument_values + 2, argument_values + argument_count));
    return 0;
}
