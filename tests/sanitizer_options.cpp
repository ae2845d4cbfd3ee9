// Options of the sanitizers, which every test program carries.

// The sanitizer's own name. An allocation that is refused gives null, as in a release: rlx turns that into an Error,
// which tests check.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
