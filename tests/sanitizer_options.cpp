// Options of the sanitizers, which every test program carries.

// An allocation that is refused gives null, as without AddressSanitizer: rlx turns that into an Error, which tests
// check.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
