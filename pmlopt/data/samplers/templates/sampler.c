@HEADER@
#define _DEFAULT_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/random.h>
#endif

enum { @NAME@_input_count = @N@, @NAME@_output_count = @M@ };
static const char *const @NAME@_inputs[@N@] = @INPUTS@;
static const char *const @NAME@_outputs[@M@] = @OUTPUTS@;
// begin of the table
static const uint64_t @NAME@_thresholds[@N@][@M@] = @THRESHOLDS@;
// end of the table

// The outcome of a whole number of @BITS@ bits, for tests: the first whose threshold is above.
// NULL where the value is not one of the letters of the mechanism, or there are too many bits.
const char *@NAME@_release_from_bits(uint64_t bits, const char *value) {
  if (value == NULL || bits >= @SCALE@) {
    return NULL;
  }
  for (size_t row = 0; row < @NAME@_input_count; row++) {
    if (strcmp(@NAME@_inputs[row], value) == 0) {
      size_t output = 0;
      while (bits >= @NAME@_thresholds[row][output]) {
        output++;
      }
      return @NAME@_outputs[output];
    }
  }
  return NULL;
}

// Draw the released outcome of a value from the system's generator for cryptography.
// NULL where the value is not one of the letters, or the system has no random bytes.
const char *@NAME@_release(const char *value) {
  uint64_t word;
  if (getentropy(&word, sizeof word) != 0) {
    return NULL;
  }
  return @NAME@_release_from_bits(word >> (64 - @BITS@), value);
}
