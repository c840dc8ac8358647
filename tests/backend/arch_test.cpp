// The int8 matrix products of every family on the host platform, against a plain triple loop. Usage:
//
//     arch_test products           exit code 1 and a line on stderr if a product is wrong
//     arch_test steps              the same for steps of 32 values, in one part and in two
//     arch_test dot4
//     arch_test layouts            prints "name m n k operand_bytes lane operand_row operand_k", then, as "name lane
//                                  register row column", where results lie
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "arch/all.h"
#include "platform/host/launch.h"
#include "platform/host/simt.h"
#include "single_instruction.h"

using namespace wavesmith;

namespace {

[[noreturn]] void wrong(const std::string & what) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
}

// C += A B^T, three times over, with rows of LDS further apart than they are long. Each wave has its own matrices.
template <class Matrix> struct Product {
    static constexpr int      repeats  = 3;
    static constexpr uint32_t stride   = Matrix::k + 16;
    static constexpr uint32_t a_bytes  = Matrix::m * stride;
    static constexpr uint32_t all_bytes = a_bytes + Matrix::n * stride;

    struct Arguments {
        const int8_t *  a;  // [waves][m][k]
        const int8_t *  b;  // [waves][n][k]
        int32_t *       c;  // [waves][m][n]
    };

    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        const uint32_t base = simt.wave() * all_bytes;
        for (uint32_t i = 4 * simt.lane(); i < uint32_t(Matrix::m * Matrix::k); i += 4 * Simt::wave_size) {
            const int32_t four = simt.template load<int32_t>(arguments.a + simt.wave() * Matrix::m * Matrix::k + i);
            simt.lds_store(base + i / Matrix::k * stride + i % Matrix::k, four);
        }
        for (uint32_t i = 4 * simt.lane(); i < uint32_t(Matrix::n * Matrix::k); i += 4 * Simt::wave_size) {
            const int32_t four = simt.template load<int32_t>(arguments.b + simt.wave() * Matrix::n * Matrix::k + i);
            simt.lds_store(base + a_bytes + i / Matrix::k * stride + i % Matrix::k, four);
        }
        simt.barrier();
        const typename Matrix::A a = Matrix::load_a(simt, base, stride);
        const typename Matrix::B b = Matrix::load_b(simt, base + a_bytes, stride);
        typename Matrix::C       c;
        for (int r = 0; r < Matrix::registers; r++) {
            c.value[r] = simt.template load<int32_t>(place(simt, arguments, r));
        }
        for (int i = 0; i < repeats; i++) {
            Matrix::multiply(simt, a, b, c);
        }
        for (int r = 0; r < Matrix::registers; r++) {
            simt.template store<int32_t>(place(simt, arguments, r), c.value[r]);
        }
    }

    template <class Simt> static int32_t * place(const Simt & simt, const Arguments & arguments, int r) {
        return arguments.c + (int(simt.wave()) * Matrix::m + Matrix::row(simt.lane(), r)) * Matrix::n + Matrix::column(simt.lane(), r);
    }
};

enum class Values { random, low, high, mixed, one_hot };

int8_t value_of(Values values, int row, int i, int k, std::mt19937 & random) {
    switch (values) {
        case Values::random:
            return int8_t(random());
        case Values::low:
            return -128;
        case Values::high:
            return 127;
        case Values::mixed:
            return random() % 2 != 0 ? -128 : 127;
        case Values::one_hot:
            return i == row % k ? 1 : 0;
    }
    return 0;
}

template <class Arch, class Matrix, bool checked> void check_product(const std::string & name, Values a_values, Values b_values) {
    constexpr int        m = Matrix::m, n = Matrix::n, k = Matrix::k, waves = 3;
    std::mt19937         random(m * 31 + k + int(a_values) * 7 + int(b_values));
    std::vector<int8_t>  a(waves * m * k), b(waves * n * k);
    std::vector<int32_t> c(waves * m * n);
    for (size_t i = 0; i < a.size(); i++) {
        a[i] = value_of(a_values, int(i) / k, int(i) % k, k, random);
    }
    for (size_t i = 0; i < b.size(); i++) {
        b[i] = value_of(b_values, int(i) / k, int(i) % k, k, random);
    }
    for (int32_t & value : c) {
        value = random() % 4 == 0 ? INT32_MAX - int(random() % 100) : int32_t(random());  // sums wrap
    }
    std::vector<int32_t> want = c;
    for (int w = 0; w < waves; w++) {
        for (int i = 0; i < m; i++) {
            for (int j = 0; j < n; j++) {
                uint32_t sum = 0;
                for (int x = 0; x < k; x++) {
                    sum += uint32_t(a[(w * m + i) * k + x] * b[(w * n + j) * k + x]);
                }
                int32_t & value = want[(w * m + i) * n + j];
                value           = int32_t(uint32_t(value) + Product<Matrix>::repeats * sum);
            }
        }
    }
    const host::Region regions[] = { { a.data(), a.size(), false, "a" }, { b.data(), b.size(), false, "b" }, { c.data(), 4 * c.size(), true, "c" } };
    const host::Launch launch    = { name.c_str(), { 1, 1, 1 }, waves * Arch::wave_size, waves * Product<Matrix>::all_bytes, regions, 3, 1 };
    const std::string  fault     = host::launch<Product<Matrix>, host::HostSimt<Arch, checked>>(launch, { a.data(), b.data(), c.data() });
    if (fault != "") {
        wrong(fault);
    }
    for (size_t i = 0; i < c.size(); i++) {
        if (c[i] != want[i]) {
            wrong(name + ": C[" + std::to_string(i / n % m) + "][" + std::to_string(i % n) + "] is " + std::to_string(c[i]) + ", expected " +
                  std::to_string(want[i]));
        }
    }
}

template <class Arch, class Matrix> void check_products(const std::string & name) {
    for (Values a : { Values::random, Values::low, Values::high, Values::mixed, Values::one_hot }) {
        for (Values b : { Values::random, Values::low, Values::high, Values::mixed, Values::one_hot }) {
            check_product<Arch, Matrix, false>(name, a, b);
        }
    }
    check_product<Arch, Matrix, true>(name, Values::random, Values::random);
}

// Calls visit(Arch(), Matrix(), name) for every product.
template <class Visit> void for_each_product(Visit visit) {
    using namespace arch;
    visit(Rdna3(), Wmma16x16x16Rdna3(), "rdna3");
    visit(Rdna3_5(), Wmma16x16x16Rdna3(), "rdna3.5");
    visit(Rdna4(), Wmma16x16x16Rdna4(), "rdna4");
    visit(Cdna2(), Mfma16x16x16(), "cdna2");
    visit(Cdna2(), Mfma32x32x8(), "cdna2_32x32x8");
    visit(Cdna3(), Mfma16x16x32(), "cdna3");
    visit(Cdna3(), Mfma32x32x16(), "cdna3_32x32x16");
    visit(Cdna4(), Mfma32x32x32(), "cdna4");
    visit(Cdna4(), Mfma32x32x16(), "cdna4_32x32x16");
    visit(Cdna4(), Mfma16x16x64(), "cdna4_16x16x64");
}

// C = A B^T over a step of 32 values, in one part or two, through Int8Step: values placed in LDS where the step wants them.
template <class Step, int parts> struct StepProduct {
    static constexpr uint32_t stride    = 48;
    static constexpr uint32_t b_offset  = Step::m * stride;
    static constexpr uint32_t lds_bytes = b_offset + Step::n * stride;

    struct Arguments {
        const int8_t * a;  // [m][32]
        const int8_t * b;  // [n][32]
        int32_t *      c;  // [parts][m][n]
    };

    template <class Simt> static void place_rows(const Simt & simt, const int8_t * from, uint32_t to, int rows) {
        constexpr int run = Step::run(parts) < 8 ? Step::run(parts) : 8;
        for (int i = run * int(simt.lane()); i < rows * 32; i += run * int(Simt::wave_size)) {
            for (int byte = 0; byte < run; byte += 4) {
                const int32_t four = simt.template load<int32_t>(from + i + byte);
                simt.lds_store(to + uint32_t(i / 32 * int(stride) + Step::place(parts, i % 32) + byte), four);
            }
        }
    }

    template <class Simt> static void run(const Simt & simt, const Arguments & arguments) {
        place_rows(simt, arguments.a, 0, Step::m);
        place_rows(simt, arguments.b, b_offset, Step::n);
        simt.barrier();
        typename Step::C c[parts] = {};
        Step::template multiply<parts>(simt, Step::load(simt, 0, stride), Step::load(simt, b_offset, stride), c);
        for (int part = 0; part < parts; part++) {
            for (int r = 0; r < Step::registers; r++) {
                const int row = Step::row(simt.lane(), r), column = Step::column(simt.lane(), r);
                simt.template store<int32_t>(arguments.c + (part * Step::m + row) * Step::n + column, c[part].value[r]);
            }
        }
    }
};

template <class Arch, int parts> void check_step(const char * name) {
    using Step    = typename Arch::template Int8Step<parts>;
    using Product = StepProduct<Step, parts>;
    std::mt19937         random(parts);
    std::vector<int8_t>  a(Step::m * 32), b(Step::n * 32);
    std::vector<int32_t> c(parts * Step::m * Step::n, 12345);
    for (std::vector<int8_t> * values : { &a, &b }) {
        for (int8_t & value : *values) {
            value = int8_t(random());
        }
    }
    const host::Region regions[] = { { a.data(), a.size(), false, "a" }, { b.data(), b.size(), false, "b" }, { c.data(), 4 * c.size(), true, "c" } };
    const host::Launch launch    = { name, { 1, 1, 1 }, Arch::wave_size, Product::lds_bytes, regions, 3, 1 };
    const std::string  fault     = host::launch<Product, host::HostSimt<Arch, true>>(launch, { a.data(), b.data(), c.data() });
    if (fault != "") {
        wrong(fault);
    }
    for (size_t i = 0; i < c.size(); i++) {
        const int part = int(i) / (Step::m * Step::n), row = int(i) / Step::n % Step::m, column = int(i) % Step::n;
        int       sum  = 0;
        for (int k = part * 32 / parts; k < (part + 1) * 32 / parts; k++) {
            sum += a[row * 32 + k] * b[column * 32 + k];
        }
        if (c[i] != sum) {
            wrong(std::string(name) + ": part " + std::to_string(part) + " of C[" + std::to_string(row) + "][" + std::to_string(column) + "] is " +
                  std::to_string(c[i]) + ", expected " + std::to_string(sum));
        }
    }
    // A lane must find the scales of its registers side by side.
    for (uint32_t lane = 0; lane < Arch::wave_size; lane++) {
        for (int r = 0; r < Step::registers; r++) {
            if (Step::row_position(Step::row(lane, r)) != Step::first_row_position(lane) + r % Step::rows_per_lane) {
                wrong(std::string(name) + ": position of row " + std::to_string(Step::row(lane, r)));
            }
        }
    }
}

template <class Arch> void check_steps(const char * name) {
    check_step<Arch, 1>(name);
    check_step<Arch, 2>(name);
}

void check_dot4() {
    struct {
    } simt;
    const int8_t values[] = { -128, -127, -1, 0, 1, 5, 127 };
    std::mt19937 random(1);
    for (int i = 0; i < 20000; i++) {
        uint32_t a = 0, b = 0, want = uint32_t(random());
        const int32_t start = int32_t(want);
        for (int byte = 0; byte < 4; byte++) {
            const int8_t x = values[random() % 7], y = values[random() % 7];
            a |= uint32_t(uint8_t(x)) << 8 * byte;
            b |= uint32_t(uint8_t(y)) << 8 * byte;
            want += uint32_t(x * y);
        }
        if (arch::Gcn::dot4(simt, int32_t(a), int32_t(b), start) != int32_t(want) || arch::Rdna4::dot4(simt, int32_t(a), int32_t(b), start) != int32_t(want)) {
            wrong("dot4 of " + std::to_string(a) + " and " + std::to_string(b));
        }
    }
}

template <class Matrix> auto print_operands(const char * name, Matrix) -> decltype(typename Matrix::Layout(), void()) {
    using Layout = typename Matrix::Layout;
    for (uint32_t lane = 0; lane < uint32_t(Layout::wave_size); lane++) {
        printf("operand %s %d %d %d %d %u %d %d\n", name, Matrix::m, Matrix::n, Matrix::k, Layout::operand_bytes, lane, Layout::operand_row(lane),
               Layout::operand_k(lane));
    }
}
void print_operands(const char *, ...) {}

}  // namespace

int main(int count, char ** values) {
    const std::string mode = count > 1 ? values[1] : "";
    if (mode == "products") {
        for_each_product([](auto architecture, auto matrix, const char * name) { check_products<decltype(architecture), decltype(matrix)>(name); });
    } else if (mode == "steps") {
        check_steps<arch::Gcn>("gcn");
        check_steps<arch::Cdna2>("cdna2");
        check_steps<arch::Cdna3>("cdna3");
        check_steps<arch::Cdna4>("cdna4");
        check_steps<arch::Rdna2>("rdna2");
        check_steps<arch::Rdna3>("rdna3");
        check_steps<arch::Rdna3_5>("rdna3.5");
        check_steps<arch::Rdna4>("rdna4");
    } else if (mode == "dot4") {
        check_dot4();
    } else if (mode == "layouts") {
        for_each_product([](auto architecture, auto matrix, const char * name) {
            using Arch   = decltype(architecture);
            using Matrix = decltype(matrix);
            printf("shape %s %d %d %d %d %d\n", name, int(Arch::wave_size), Matrix::m, Matrix::n, Matrix::k, Matrix::registers);
            print_operands(name, matrix);
            for (uint32_t lane = 0; lane < Arch::wave_size; lane++) {
                for (int r = 0; r < Matrix::registers; r++) {
                    printf("result %s %u %d %d %d\n", name, lane, r, Matrix::row(lane, r), Matrix::column(lane, r));
                }
            }
        });
    } else {
        fprintf(stderr, "unknown mode\n");
        return 2;
    }
    return 0;
}
