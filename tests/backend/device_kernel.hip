// A device kernel that uses every member of the Simt and the Int8Step of the family named by TEST_FAMILY, through the
// same templates as the real kernels. Compiled for each target and looked at as assembly.
#include "arch/all.h"
#include "platform/hip/simt.h"
#include "single_instruction.h"

using namespace wavesmith;
using Arch = arch::TEST_FAMILY;
using Simt = hip::DeviceSimt<Arch>;

template <class Matrix> struct Product {
    struct Arguments {
        const int8_t * a;  // [m][k]
        const int8_t * b;  // [n][k]
        int32_t *      c;  // [m][n], the product is added
    };

    template <class S> WAVESMITH_DEVICE static void run(const S & simt, const Arguments & arguments) {
        constexpr uint32_t a_bytes = Matrix::m * Matrix::k;
        constexpr uint32_t b_bytes = Matrix::n * Matrix::k;
        for (uint32_t i = 16 * simt.thread(); i < a_bytes; i += 16 * simt.thread_count()) {
            simt.lds_store(i, simt.template load<Bytes16>(arguments.a + i));
        }
        for (uint32_t i = 16 * simt.thread(); i < b_bytes; i += 16 * simt.thread_count()) {
            simt.lds_store(a_bytes + i, simt.template load<Bytes16>(arguments.b + i));
        }
        simt.barrier();
        typename Matrix::C c;
        WAVESMITH_UNROLL
        for (int r = 0; r < Matrix::registers; r++) {
            c.value[r] = simt.template load<int32_t>(place(simt, arguments, r));
        }
        Matrix::multiply(simt, Matrix::load_a(simt, 0, Matrix::k), Matrix::load_b(simt, a_bytes, Matrix::k), c);
        WAVESMITH_UNROLL
        for (int r = 0; r < Matrix::registers; r++) {
            simt.template store<int32_t>(place(simt, arguments, r), c.value[r]);
        }
    }

    template <class S> WAVESMITH_DEVICE static int32_t * place(const S & simt, const Arguments & arguments, int r) {
        return arguments.c + Matrix::row(simt.lane(), r) * Matrix::n + Matrix::column(simt.lane(), r);
    }
};

#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256))) void

#define PRODUCT(name, Matrix)                                      \
    KERNEL name(const int8_t * a, const int8_t * b, int32_t * c) { \
        Product<Matrix>::run(Simt(), { a, b, c });                 \
    }

// A dot4 step as if it were an instruction of 32 values.
struct Dot4 : Arch::Int8Step<1> {
    using Step = Arch::Int8Step<1>;
    static constexpr int k = 32;
    template <class S> WAVESMITH_DEVICE static auto load_a(const S & simt, uint32_t offset, uint32_t stride) { return Step::load(simt, offset, stride); }
    template <class S> WAVESMITH_DEVICE static auto load_b(const S & simt, uint32_t offset, uint32_t stride) { return Step::load(simt, offset, stride); }
    template <class S, class Operand> WAVESMITH_DEVICE static void multiply(const S & simt, const Operand & a, const Operand & b, C & c) {
        C parts[1] = { c };
        Step::multiply<1>(simt, a, b, parts);
        c = parts[0];
    }
};

#if defined(__gfx90a__)
PRODUCT(product, arch::Mfma16x16x16)
PRODUCT(product_32x32x8, arch::Mfma32x32x8)
#elif defined(__gfx942__)
PRODUCT(product, arch::Mfma16x16x32)
PRODUCT(product_32x32x16, arch::Mfma32x32x16)
#elif defined(__gfx950__)
PRODUCT(product, arch::Mfma32x32x32)
PRODUCT(product_32x32x16, arch::Mfma32x32x16)
PRODUCT(product_16x16x32, arch::Mfma16x16x32)
PRODUCT(product_16x16x64, arch::Mfma16x16x64)
#elif defined(__GFX11__)
PRODUCT(product, arch::Wmma16x16x16Rdna3)
#elif defined(__GFX12__)
PRODUCT(product, arch::Wmma16x16x16Rdna4)
#else
PRODUCT(product, Dot4)
#endif

KERNEL ids(uint32_t * out) {
    const Simt     simt;
    const uint32_t block  = simt.block_x() + simt.grid_x() * (simt.block_y() + simt.grid_y() * simt.block_z());
    const uint32_t place  = block * simt.thread_count() + simt.thread();
    const uint32_t fields = simt.lane() | simt.wave() << 8 | simt.grid_x() << 16 | simt.grid_y() << 20 | simt.grid_z() << 24;
    simt.store<uint32_t>(out + place, fields);
}

KERNEL exchange(const float * in, float * out) {
    const Simt  simt;
    const float own = simt.load<float>(in + simt.thread());
    float       sum = own;
    for (uint32_t mask = 1; mask < Simt::wave_size; mask *= 2) {
        sum += simt.shuffle_xor(sum, mask);
    }
    simt.store<float>(out + 2 * simt.thread(), sum);
    simt.store<float>(out + 2 * simt.thread() + 1, simt.shuffle(own, (simt.lane() + 1) % Simt::wave_size));
}

KERNEL reverse(const Bytes16 * in, Bytes16 * out) {
    const Simt simt;
    simt.lds_store(16 * simt.thread(), simt.load<Bytes16>(in + simt.thread()));
    simt.barrier();
    simt.store(out + simt.thread(), simt.lds_load<Bytes16>(16 * (simt.thread_count() - 1 - simt.thread())));
}

// The same with LDS that belongs to the kernel.
KERNEL reverse_static(const Bytes16 * in, Bytes16 * out) {
    const hip::DeviceSimt<Arch, 4096> simt;
    simt.lds_store(16 * simt.thread(), simt.load<Bytes16>(in + simt.thread()));
    simt.barrier();
    simt.store(out + simt.thread(), simt.lds_load<Bytes16>(16 * (simt.thread_count() - 1 - simt.thread())));
}

// Blocks of 18 bytes, as in some weight types: 2 bytes, then 16 at an odd place.
KERNEL unaligned(const uint8_t * in, uint8_t * out) {
    const Simt      simt;
    const uint8_t * from = in + 18 * simt.thread();
    uint8_t *       to   = out + 18 * simt.thread();
    simt.store<uint16_t>(to, simt.load<uint16_t>(from));
    simt.store<Bytes16, 2>(to + 2, simt.load<Bytes16, 2>(from + 2));
}

KERNEL dot(const int32_t * a, const int32_t * b, int32_t * c) {
    const Simt     simt;
    const uint32_t i = simt.thread();
    simt.store<int32_t>(c + i, Arch::dot4(simt, simt.load<int32_t>(a + i), simt.load<int32_t>(b + i), simt.load<int32_t>(c + i)));
}

struct Odd {
    uint16_t part[5];
};

// A size that no single access has.
KERNEL odd_size(const Odd * in, Odd * out) {
    const Simt simt;
    simt.lds_store(10 * simt.thread(), simt.load<Odd>(in + simt.thread()));
    simt.store<Odd>(out + simt.thread(), simt.lds_load<Odd>(10 * simt.thread()));
}
