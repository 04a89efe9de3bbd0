#pragma once
// The scenario language: what a test can make a fake vendor library do. All of them export it.
//
// Durations are ns of the simulated device. Work is pending until it is delivered; only then does the
// tool under test see its record. API calls run the tool's callbacks on the calling thread.
#include <cstdint>

extern "C" {

/// Forget everything; the tool must have stopped.
void fake_reset();
/// Behave as this version of the vendor's library; numbers are the vendor's own.
void fake_set_version(uint32_t version);
/// Let a function of the vendor's interface return `code` from now on; 0 heals it. A name may end in
/// ":<argument>", as in "cuptiActivityEnable:1".
void fake_fail(const char *function, int code);
/// Let a function take `ns` of real time before it does anything.
void fake_hang(const char *function, uint64_t ns);
/// Another tool holds the interface; it may or may not share it.
void fake_hold(const char *tool, int is_sharing);
/// The vendor's run time starts now: AMD's tools can no longer register.
void fake_start_runtime();
/// Hand a buffer over when it holds so many records.
void fake_set_buffer_records(uint64_t most);
/// The number the next API call gets.
void fake_set_next_correlation(uint32_t id);
/// Let the records of the next `launches` launches carry no correlation id, as roctracer does for RCCL.
void fake_lose_correlation(uint64_t launches);
/// Lose the next `records` records.
void fake_drop(uint64_t records);

/// What the calling thread launches from now on is for this GPU, as the vendor's driver counts them
/// when nothing hides any; fakes have four.
void fake_set_device(uint32_t device);
/// Kernels that the calling thread launches from now on have so many blocks of so many threads.
void fake_set_shape(uint32_t grid, uint32_t block);
/// From now on the first launch of a kernel loads its code, inside the launch: a module is told of, and
/// the code is copied to the device; with CUDA by a call of its own, and after a wait for the context.
void fake_set_lazy_loading(int is_lazy);
void fake_launch(const char *kernel, uint32_t stream, uint64_t ns);
void fake_launch_many(const char *kernel, uint32_t stream, uint64_t ns, uint64_t count);
/// direction: HtoD, DtoH, DtoD, HtoH or PtoP.
void fake_copy(const char *direction, uint64_t bytes, uint64_t ns, int is_blocking);
/// Host memory of the calling thread's next copies: "pageable", "pinned", "managed", or "" where the vendor
/// does not say; 0 for another name. AMD copies pageable memory in parts of 4 MiB, a record each.
int fake_set_memory(const char *kind);
/// Move pages of managed memory: no launch, and no record that the tool asked for.
void fake_prefetch(uint64_t bytes);
void fake_memset(uint64_t bytes, uint64_t ns);
/// Dispatch a kernel outside of any call, as AMD's newer library does with what other threads have put into
/// a queue.
void fake_dispatch(const char *kernel, uint64_t ns);
/// Take memory from the driver, of the device or of the host. AMD's newer library alone tells of it.
void fake_allocate(uint64_t bytes, int is_host);
/// The host waits `ns` of real time for the device.
void fake_synchronize(uint64_t ns);

/// Launches on a capturing stream become nodes of a graph.
void fake_capture_begin(uint32_t stream);
uint32_t fake_capture_end(uint32_t stream);
uint32_t fake_graph_instantiate(uint32_t graph);
/// The same with the flag that lets the device launch it: by cuGraphInstantiateWithFlags, or ...WithParams.
/// CUDA's alone.
uint32_t fake_graph_instantiate_for_device(uint32_t graph, int with_parameters);
void fake_graph_launch(uint32_t executable, uint32_t stream);
void fake_graph_destroy(uint32_t graph);
/// A graph that a library makes node by node, without a capture: fake_graph_add puts a kernel into it.
uint32_t fake_graph_create();
void fake_graph_add(uint32_t graph, const char *kernel, uint64_t ns);
/// Clone a graph into a node of another one. Instantiating the other one moves the clone's nodes into
/// the executable graph, where they have other ids.
void fake_graph_add_child(uint32_t graph, uint32_t child);
/// Give an executable graph the kernels of a graph (cudaGraphExecUpdate); 0 where their shapes differ,
/// which changes nothing.
int fake_graph_update(uint32_t executable, uint32_t graph);
/// Give one node of an executable graph another kernel.
void fake_graph_set_node(uint32_t executable, uint32_t place, const char *kernel, uint64_t ns);

/// A range that the program marks on the calling thread.
void fake_range_push(const char *message);
void fake_range_pop();

/// Complete what is pending: in order of launch, or shuffled by a seed that is not 0.
void fake_deliver(int seed);
/// The same, from several threads at once.
void fake_deliver_on_threads(int seed, uint32_t threads);
/// Keep buffers that are full or flushed until held no more.
void fake_hold_buffers(int is_holding);
/// Step through the held buffers as a client would; for benchmarks.
uint64_t fake_walk_held();
/// Records of a kind that no tool knows.
void fake_unknown_records(uint64_t count);
/// Launch a kernel and deliver a record of it that ends before it begins, or has no times at all.
void fake_bad_times(int has_start);

/// The calling thread launches through this function of the vendor from now on ("cuLaunchKernelEx"); 0
/// for a name that is not known.
int fake_set_launch_function(const char *name);

// -- NVIDIA only

/// Put a function of the host on a stream: it leaves no record.
void fake_host_function();
/// A capturing stream gets a node that leaves no record: "memory", "host", "event" or "child graph", which
/// is empty; 0 for another kind.
int fake_node(uint32_t stream, const char *kind);
/// What `body_stream` captures until the end is the body of a conditional node that the capturing
/// `stream` takes; a replay runs the bodies of its graph so many times, at first once.
void fake_conditional_begin(uint32_t stream, uint32_t body_stream);
void fake_conditional_end(uint32_t body_stream);
void fake_set_iterations(uint32_t executable, uint32_t times);
/// What the calling thread launches from now on is in this context of its device; frameworks share 0,
/// green contexts are further ones. Streams are numbered within a context. CUPTI samples one context of
/// a device at a time.
void fake_set_context(uint32_t number);

/// Load a module with line information; the client sees its image only now.
void fake_load_module();
/// The device's next window of PC sampling finds `samples` of `kernel` waiting for `reason`
/// ("long_scoreboard"), at `line` of /src/kernel.cu, or without line information for 0.
void fake_stall(const char *kernel, const char *reason, uint32_t samples, uint32_t line);
/// Another tool registers its buffers over the ones registered: records go to it from now on.
void fake_take_over();
/// torch.profiler begins to record: Kineto since August 2026 registers its buffers and a clock of raw
/// ticks; before, it subscribed once for good, and recorded nothing where it could not.
void fake_profiler_begin(int is_older);
/// torch.profiler stops: it disables the kinds, and leaves its buffers and its clock.
void fake_profiler_end();
/// A tool that must subscribe begins, as Proton; CUPTI's result.
int fake_subscriber_begin();
/// It hands over its records and ends its subscription.
void fake_subscriber_end();
/// The other tool registers the buffers again that it replaced; its own are still being filled.
void fake_give_back();
/// Each buffer holds a record that is not complete: only a forced flush hands it over.
void fake_hold_incomplete(int is_incomplete);
/// Create the calling thread's context, as frameworks do at the first use of a device.
void fake_create_context();
/// Destroy the context; the next call makes a new one.
void fake_destroy_context();
/// cuKernelGetFunction: the first one of a kernel loads its code, below CUPTI's lock and the driver's.
void fake_get_function(const char *kernel);
/// A call that takes the driver's lock and no callback tells of, as the runtime makes through export tables.
void fake_call_without_callback(uint64_t ns);

/// launched, delivered, dropped (records); callbacks made; buffers_out (at the library); subscribed;
/// services (enabled kinds of records and callbacks, sampled contexts); misuses (calls that the
/// interface forbids); device_pool_limit (buffers that CUPTI may take on the device);
/// profiler_records (that torch.profiler got), profiler_unknown_buffers (that were not its own);
/// left_enabled (contexts that were destroyed while PC sampling was enabled for them);
/// sampled (contexts that PC sampling is enabled for); hanging (calls that take the time a test gave them).
uint64_t fake_count(const char *what);
}
