// Prints what the compiler makes of the tile plans, for test_mmq_rows.py to compare with the planner's numbers.
//     arch <architecture> <wave_size> <lds_bytes> <m> <n> <rows> <columns> <operand words> <copies> <sums>
//     row <type> <architecture> <parts> <plan> <LDS bytes>
//     choice <type> <architecture> <limit> <m> <n> <plan, or none>
// mmq_quants.inc, written by the test, includes the headers of the types and defines MMQ_QUANTS as MMQ_QUANT(<struct>) of each.
#include <stdio.h>

#include <vector>

#include "arch/all.h"
#include "kernels/mmq.h"
#include "mmq_quants.inc"
#include "plan/mmq_choice.h"

using namespace wavesmith;

namespace {

struct Row : MmqRow {
    const char * architecture;
};

template <class Arch, int parts> void print_architecture(const char * name) {
    using Step = typename Arch::template Int8Step<parts>;
    printf("arch %s %d %d %d %d %d %d %d %d %d\n", name, int(Arch::wave_size), int(Arch::lds_bytes), Step::m, Step::n, Step::rows_per_lane,
           Step::columns_per_lane, int(sizeof(typename Step::Operand) / 4), Step::dual_issue ? 2 : 1, Step::runs_beside_vector ? 2 : 1);
}

template <class Quant, class Arch, int parts, class Tile> void add_row(std::vector<Row> & rows, const char * architecture, const char * plan) {
    if constexpr (parts == Quant::parts) {
        rows.push_back({ { Arch::family, plan, Tile::tile_m, Tile::tile_n, Mmq<Arch, Quant, Tile>::lds_bytes }, architecture });
        printf("row %s %s %d %s %u\n", Quant::name, architecture, parts, plan, rows.back().lds_bytes);
    }
}

template <class Quant> void print_choices(const std::vector<Row> & rows) {
    const char * done = "";
    for (const Row & first : rows) {
        if (strcmp(first.architecture, done) == 0) {
            continue;
        }
        done = first.architecture;
        for (const uint32_t limit : { UINT32_MAX, uint32_t(40000), uint32_t(1000) }) {
            for (const int64_t m : { 64, 100, 4096 }) {
                for (int64_t n = 1; n <= 200; n += 1 + n / 20) {
                    const Row * row = choose_mmq(rows, first.family, { m, n, 4096 }, limit);
                    printf("choice %s %s %u %d %d %s\n", Quant::name, done, limit, int(m), int(n), row ? row->plan : "none");
                }
            }
        }
    }
}

template <class Quant> void print_type() {
    std::vector<Row> rows;
#define MMQ_PLAN(architecture, parts, tile_m, tile_n, waves_m, waves_n, stages, host)                                                \
    add_row<Quant, arch::architecture, parts, MmqTile<tile_m, tile_n, waves_m, waves_n, stages>>(rows, #architecture, #tile_m "x" #tile_n);
#include "plan/mmq_plans.inc"
#undef MMQ_PLAN
    print_choices<Quant>(rows);
}

}  // namespace

int main() {
#define MMQ_PLAN(architecture, parts, tile_m, tile_n, waves_m, waves_n, stages, host) print_architecture<arch::architecture, parts>(#architecture);
#include "plan/mmq_plans.inc"
#undef MMQ_PLAN
#define MMQ_QUANT(name) print_type<quants::name>();
    MMQ_QUANTS
    printf("tallest %d\n", tallest_mmq_tile());
    return 0;
}
