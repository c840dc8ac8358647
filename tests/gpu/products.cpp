// Runs matrix products on the GPU backend of the llama.cpp that it is linked with: their time, and their output for comparing.
//
//     products DEVICE OUTPUT_DIR CASE…      CASE = type:m:n:k[:save]
//
// Prints one JSON object a line: {"type", "m", "n", "k", "us"}; with `save` the output (f32 [n][m]) is written to
// OUTPUT_DIR/<type>-<m>-<n>-<k>.f32. Inputs are OUTPUT_DIR/../inputs/<type>-<m>-<n>-<k>.w (rows of whole blocks) and .x (f32
// [n][k]) where these exist, else made up from the case alone. Exit code 1 with one line on stderr if something fails.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

namespace {

struct Case {
    ggml_type type = GGML_TYPE_COUNT;
    int64_t   m = 0, n = 0, k = 0;
    bool      save = false;
};

[[noreturn]] void fail(const std::string & what) {
    fprintf(stderr, "products: %s\n", what.c_str());
    exit(1);
}

Case parse(const std::string & text) {
    Case             result;
    char             name[32] = "", save[8] = "";
    long             m = 0, n = 0, k = 0;
    if (sscanf(text.c_str(), "%31[^:]:%ld:%ld:%ld:%7s", name, &m, &n, &k, save) < 4 || m < 1 || n < 1 || k < 1) {
        fail("bad case " + text);
    }
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        if (ggml_type_name(ggml_type(i)) && strcmp(ggml_type_name(ggml_type(i)), name) == 0) {
            result.type = ggml_type(i);
        }
    }
    if (result.type == GGML_TYPE_COUNT || k % ggml_blck_size(result.type) != 0) {
        fail("bad type or K in " + text);
    }
    result.m    = m;
    result.n    = n;
    result.k    = k;
    result.save = strcmp(save, "save") == 0;
    return result;
}

std::string name_of(const Case & one) {
    return std::string(ggml_type_name(one.type)) + "-" + std::to_string(one.m) + "-" + std::to_string(one.n) + "-" + std::to_string(one.k);
}

// A file of exactly so many bytes; false if there is none.
bool read_file(const std::string & path, void * data, size_t bytes) {
    FILE * file = fopen(path.c_str(), "rb");
    if (!file) {
        return false;
    }
    const bool whole = fread(data, 1, bytes, file) == bytes && fgetc(file) == EOF;
    fclose(file);
    if (!whole) {
        fail(path + " has another size than " + std::to_string(bytes) + " bytes");
    }
    return true;
}

// Normal values from the numbers of mt19937 alone, since the standard distributions differ between libraries.
std::vector<float> normal_values(size_t count, uint32_t seed) {
    std::mt19937       random(seed);
    std::vector<float> values(count);
    const size_t       distinct = std::min<size_t>(count, 1 << 20);
    for (size_t i = 0; i < distinct; ++i) {
        double sum = 0;
        for (int i = 0; i < 4; ++i) {
            sum += random() / 4294967296.0 - 0.5;
        }
        values[i] = float(sum * 1.7320508);
    }
    for (size_t i = distinct; i < count; ++i) {
        values[i] = values[i - distinct];
    }
    return values;
}

// Quantised rows; beyond the first `distinct` they repeat, which quantising does not have to.
std::vector<uint8_t> weights(const Case & one) {
    const int64_t            distinct = std::min<int64_t>(one.m, 32);
    const std::vector<float> values   = normal_values(size_t(distinct * one.k), uint32_t(one.type) * 1000 + 1);
    const size_t             row      = ggml_row_size(one.type, one.k);
    std::vector<uint8_t>     data(row * size_t(one.m));
    ggml_quantize_chunk(one.type, values.data(), data.data(), 0, distinct, one.k, nullptr);
    for (int64_t i = distinct; i < one.m; ++i) {
        memcpy(&data[size_t(i) * row], &data[size_t(i % distinct) * row], row);
    }
    return data;
}

class Product {
  public:
    static constexpr int repeats = 8;  // nodes of the timed graph

    Product(ggml_backend_t backend, const Case & one, const std::string & folder) : backend_(backend), case_(one) {
        ggml_init_params parameters = {};
        parameters.mem_size         = ggml_tensor_overhead() * (repeats + 8) + 2 * ggml_graph_overhead();
        parameters.no_alloc         = true;
        context_                    = ggml_init(parameters);
        w_                          = ggml_new_tensor_2d(context_, one.type, one.k, one.m);
        // Neighbouring nodes read different activations, so that each has to prepare its own.
        for (ggml_tensor *& x : x_) {
            x = ggml_new_tensor_2d(context_, GGML_TYPE_F32, one.k, one.n);
        }
        once_ = ggml_new_graph(context_);
        many_ = ggml_new_graph(context_);
        y_    = ggml_mul_mat(context_, w_, x_[0]);
        ggml_build_forward_expand(once_, y_);
        for (int i = 0; i < repeats; ++i) {
            ggml_build_forward_expand(many_, ggml_mul_mat(context_, w_, x_[i % 2]));
        }
        buffer_ = ggml_backend_alloc_ctx_tensors(context_, backend);
        if (!buffer_) {
            fail("no device memory");
        }
        const std::string    inputs = folder + "/../inputs/" + name_of(one);
        std::vector<uint8_t> w(ggml_nbytes(w_));
        std::vector<float>   x(size_t(one.n * one.k));
        if (!read_file(inputs + ".w", w.data(), w.size())) {
            w = weights(one);
        }
        if (!read_file(inputs + ".x", x.data(), x.size() * sizeof(float))) {
            x = normal_values(x.size(), 7);
        }
        ggml_backend_tensor_set(w_, w.data(), 0, w.size());
        for (ggml_tensor * tensor : x_) {
            ggml_backend_tensor_set(tensor, x.data(), 0, x.size() * sizeof(float));
        }
    }

    ~Product() {
        ggml_backend_buffer_free(buffer_);
        ggml_free(context_);
    }

    void save(const std::string & folder) {
        std::vector<float> y(size_t(case_.m * case_.n), NAN);
        ggml_backend_tensor_set(y_, y.data(), 0, y.size() * sizeof(float));
        compute(once_);
        ggml_backend_tensor_get(y_, y.data(), 0, y.size() * sizeof(float));
        const std::string path = folder + "/" + name_of(case_) + ".f32";
        FILE * file = fopen(path.c_str(), "wb");
        if (!file || fwrite(y.data(), sizeof(float), y.size(), file) != y.size() || fclose(file) != 0) {
            fail("cannot write " + path);
        }
    }

    // Microseconds for one product: median over rounds of a graph of several.
    double time() {
        for (int i = 0; i < 3; ++i) {
            compute(many_);
        }
        std::vector<double> times;
        for (int i = 0; i < 9; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            compute(many_);
            times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / repeats);
        }
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    }

  private:
    void compute(ggml_cgraph * graph) {
        if (ggml_backend_graph_compute(backend_, graph) != GGML_STATUS_SUCCESS) {
            fail("the graph failed");
        }
    }

    ggml_backend_t        backend_;
    Case                  case_;
    ggml_context *        context_ = nullptr;
    ggml_tensor *         w_ = nullptr, *x_[2] = {}, *y_ = nullptr;
    ggml_cgraph *         once_ = nullptr, *many_ = nullptr;
    ggml_backend_buffer_t buffer_ = nullptr;
};

}  // namespace

int main(int count, char ** arguments) {
    if (count < 4) {
        fail("usage: products DEVICE OUTPUT_DIR CASE…");
    }
    ggml_backend_load_all();
    ggml_backend_dev_t device = ggml_backend_dev_by_name(arguments[1]);
    if (!device) {
        fail(std::string("no device ") + arguments[1]);
    }
    ggml_backend_t backend = ggml_backend_dev_init(device, nullptr);
    for (int i = 3; i < count; ++i) {
        const Case one = parse(arguments[i]);
        Product    product(backend, one, arguments[2]);
        if (one.save) {
            product.save(arguments[2]);
        }
        printf("{\"type\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"us\": %.2f}\n", ggml_type_name(one.type), (long long) one.m,
               (long long) one.n, (long long) one.k, product.time());
        fflush(stdout);
    }
    ggml_backend_free(backend);
    return 0;
}
