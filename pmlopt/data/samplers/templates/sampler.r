@HEADER@
@NAME@ <- local({
  inputs <- @INPUTS@
  outputs <- @OUTPUTS@
  # the letters that are numbers
  numbers <- @NUMBERS@
  # begin of the table
  thresholds <- @THRESHOLDS@
  # end of the table

@places.r@

  # The outcome of each whole number of @BITS@ bits, for tests: the first whose threshold is above.
  release_from_bits <- function(bits, value) {
    row <- find_places(value, inputs, numbers)
    if (anyNA(row)) {
      stop("a value is not one of the letters of the mechanism")
    }
    if (anyNA(bits) || any(bits < 0 | bits >= @SCALE@ | bits != floor(bits))) {
      stop("the bits must be whole numbers from 0 to 2^@BITS@ - 1")
    }
    draw <- function(one, bit) outputs[which(bit < thresholds[[one]])[1]]
    if (length(row)) unname(mapply(draw, row, bits)) else character(0)
  }

  # Draw the released outcome of each value from the generator for cryptography of OpenSSL.
  release <- function(value) {
    drawn <- matrix(as.integer(openssl::rand_bytes(7 * length(value))), nrow = 7)
    # 53 bits: six bytes, and the upper five bits of the seventh; doubles hold them exactly
    bits <- as.numeric(2^(5 + 8 * (5:0)) %*% drawn[1:6, , drop = FALSE]) + drawn[7, ] %/% 8
    release_from_bits(floor(bits / @SURPLUS@), value)
  }

  list(inputs = inputs, outputs = outputs, release = release, release_from_bits = release_from_bits)
})
