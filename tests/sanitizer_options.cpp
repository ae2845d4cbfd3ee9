// Options of the sanitizers, which every test program carries.

// The sanitizer's own names. An allocation that is refused gives null, as in a release: rlx turns that into an Error,
// which tests check. Drivers that tests load keep memory until the process ends.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libpocl\nleak:libLLVM\nleak:libclang\nleak:libOpenCL\nleak:libnvrtc\n";
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
