// Loads every backend that ggml finds, as any ggml program does, and multiplies matrices on the device WAVESMITH.
//
//   driver                  lists the devices, one "name: description" per line
//   driver TYPE M N K ...   also prints "TYPE MxNxK nmse" per product: the normalised mean square error of random weights
//                           of TYPE against the same product of the decoded weights in double
//
// Exit code: 0; 2 for a wrong argument; 3 where there is no device WAVESMITH; 4 where it does not compute a product.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

struct Product {
    ggml_type          type;
    int64_t            m, n, k;
    std::vector<char>  weights;
    std::vector<float> input;
};

static std::vector<float> random_values(size_t count, unsigned seed) {
    std::mt19937                          generator(seed);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    std::vector<float>                    values(count);
    for (float & value : values) {
        value = uniform(generator);
    }
    return values;
}

static std::vector<char> encode(ggml_type type, const std::vector<float> & values, int64_t rows, int64_t row_values) {
    std::vector<char> bytes(rows * ggml_row_size(type, row_values));
    const std::vector<float> importance(row_values, 1.0f);
    ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, row_values, ggml_quantize_requires_imatrix(type) ? importance.data() : nullptr);
    return bytes;
}

static ggml_type type_from_name(const char * name) {
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const char * known = ggml_type_name(static_cast<ggml_type>(type));
        if (known != nullptr && strcmp(known, name) == 0) {
            return static_cast<ggml_type>(type);
        }
    }
    fprintf(stderr, "no type %s\n", name);
    exit(2);
}

static Product make_product(char ** arguments) {
    Product product;
    product.type    = type_from_name(arguments[0]);
    product.m       = atoll(arguments[1]);
    product.n       = atoll(arguments[2]);
    product.k       = atoll(arguments[3]);
    product.weights = encode(product.type, random_values(product.m * product.k, 1), product.m, product.k);
    product.input   = random_values(product.n * product.k, 2);
    return product;
}

static std::vector<float> decode_row(const Product & product, int64_t row) {
    std::vector<float> values(product.k);
    const char *       encoded = product.weights.data() + row * ggml_row_size(product.type, product.k);
    if (product.type == GGML_TYPE_F32) {
        memcpy(values.data(), encoded, product.k * sizeof(float));
    } else {
        ggml_get_type_traits(product.type)->to_float(encoded, values.data(), product.k);
    }
    return values;
}

static std::vector<double> reference(const Product & product) {
    std::vector<double> result(product.m * product.n);
    for (int64_t row = 0; row < product.m; ++row) {
        const std::vector<float> weights = decode_row(product, row);
        for (int64_t column = 0; column < product.n; ++column) {
            double sum = 0;
            for (int64_t i = 0; i < product.k; ++i) {
                sum += double(weights[i]) * double(product.input[column * product.k + i]);
            }
            result[column * product.m + row] = sum;
        }
    }
    return result;
}

static std::vector<float> multiply(ggml_backend_dev_t device, const Product & product) {
    ggml_init_params parameters = {};
    parameters.mem_size         = 8 * ggml_tensor_overhead() + ggml_graph_overhead();
    parameters.no_alloc         = true;
    ggml_context * context      = ggml_init(parameters);
    ggml_tensor *  weights      = ggml_new_tensor_2d(context, product.type, product.k, product.m);
    ggml_tensor *  input        = ggml_new_tensor_2d(context, GGML_TYPE_F32, product.k, product.n);
    ggml_tensor *  output       = ggml_mul_mat(context, weights, input);
    ggml_cgraph *  graph        = ggml_new_graph(context);
    ggml_build_forward_expand(graph, output);

    ggml_backend_t        backend = ggml_backend_dev_init(device, nullptr);
    ggml_backend_buffer_t buffer  = ggml_backend_alloc_ctx_tensors(context, backend);
    ggml_backend_tensor_set(weights, product.weights.data(), 0, product.weights.size());
    ggml_backend_tensor_set(input, product.input.data(), 0, product.input.size() * sizeof(float));
    if (!ggml_backend_supports_op(backend, output) || ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS) {
        fprintf(stderr, "%s does not compute the product\n", ggml_backend_dev_name(device));
        exit(4);
    }
    std::vector<float> result(product.m * product.n);
    ggml_backend_tensor_get(output, result.data(), 0, result.size() * sizeof(float));
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(backend);
    ggml_free(context);
    return result;
}

static double normalised_error(const std::vector<float> & values, const std::vector<double> & expected) {
    double error = 0;
    double power = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        error += std::pow(values[i] - expected[i], 2);
        power += std::pow(expected[i], 2);
    }
    return error / power;
}

int main(int argc, char ** argv) {
    ggml_backend_load_all();
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        printf("%s: %s\n", ggml_backend_dev_name(device), ggml_backend_dev_description(device));
    }
    ggml_backend_dev_t device = ggml_backend_dev_by_name("WAVESMITH");
    if (device == nullptr) {
        return 3;
    }
    for (int i = 1; i + 3 < argc; i += 4) {
        const Product product = make_product(argv + i);
        printf("%s %sx%sx%s %.3e\n", argv[i], argv[i + 1], argv[i + 2], argv[i + 3], normalised_error(multiply(device, product), reference(product)));
    }
    return 0;
}
