@HEADER@
"use strict";
var @NAME@ = (function () {
  var inputs = @INPUTS@;
  var outputs = @OUTPUTS@;
  // begin of the table
  var thresholds = @THRESHOLDS@;
  // end of the table

  // A value as a letter: True or False, or the shortest decimal digits of a number that floats hold exactly.
  // Other values stay as they are, and are no letters.
  function toLetter(value) {
    if (typeof value === "boolean") {
      return value ? "True" : "False";
    }
    var exact = Number.isFinite(value) && (Number.isSafeInteger(value) || !Number.isInteger(value));
    return exact ? String(value) : value;
  }

  // The outcome of a whole number of @BITS@ bits, for tests: the first whose threshold is above.
  function releaseFromBits(bits, value) {
    var row = inputs.indexOf(toLetter(value));
    if (row < 0) {
      throw new RangeError("this value is not one of the letters of the mechanism");
    }
    if (!Number.isSafeInteger(bits) || bits < 0 || bits >= @SCALE@) {
      throw new RangeError("the bits must be a whole number from 0 to 2^@BITS@ - 1");
    }
    return outputs[thresholds[row].findIndex(function (threshold) { return bits < threshold; })];
  }

  // Draw the released outcome of a value from the generator for cryptography.
  function release(value) {
    var words = new Uint32Array(2);
    globalThis.crypto.getRandomValues(words);
    // 53 bits: all of the first word, and the upper 21 of the second
    var drawn = words[0] * 2097152 + (words[1] >>> 11);
    return releaseFromBits(Math.floor(drawn / @SURPLUS@), value);
  }

  return { inputs: inputs, outputs: outputs, release: release, releaseFromBits: releaseFromBits };
})();
