#ifdef GGML_CUSTOM_KERNELS
                // Inside a concurrent region neighbouring nodes may be on different streams.
                const int custom_nodes_limit = is_concurrent_event_active ? 1 : cgraph->n_nodes - i;
                const int custom_nodes       = ggml_custom_kernels_try(*cuda_ctx, cgraph, i, custom_nodes_limit);
                if (custom_nodes > 0) {
                    if (custom_nodes == 1 && !is_concurrent_event_active) {
                        try_launch_concurrent_event(node);
                    }
                    i += custom_nodes - 1;
                    continue;
                }
#endif
