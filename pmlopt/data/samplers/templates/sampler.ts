@HEADER@
export const inputs: readonly string[] = @INPUTS@;
export const outputs: readonly string[] = @OUTPUTS@;
// begin of the table
const thresholds: readonly (readonly number[])[] = @THRESHOLDS@;
// end of the table

/**
 * A value as a letter: True or False, or the shortest decimal digits of a number that floats hold exactly.
 * Other values, which the types forbid and plain JavaScript may pass, are no letters.
 */
function toLetter(value: unknown): string | undefined {
  if (typeof value === "boolean") {
    return value ? "True" : "False";
  }
  if (typeof value === "number") {
    const exact = Number.isFinite(value) && (Number.isSafeInteger(value) || !Number.isInteger(value));
    return exact ? String(value) : undefined;
  }
  return typeof value === "string" ? value : undefined;
}

/** The outcome of a whole number of @BITS@ bits, for tests: the first whose threshold is above. */
export function releaseFromBits(bits: number, value: string | number | boolean): string {
  const letter = toLetter(value);
  const row = letter === undefined ? -1 : inputs.indexOf(letter);
  if (row < 0) {
    throw new RangeError("this value is not one of the letters of the mechanism");
  }
  if (!Number.isSafeInteger(bits) || bits < 0 || bits >= @SCALE@) {
    throw new RangeError("the bits must be a whole number from 0 to 2^@BITS@ - 1");
  }
  return outputs[thresholds[row].findIndex((threshold) => bits < threshold)];
}

/** Draw the released outcome of a value from the generator for cryptography. */
export function release(value: string | number | boolean): string {
  const words = new Uint32Array(2);
  globalThis.crypto.getRandomValues(words);
  // 53 bits: all of the first word, and the upper 21 of the second
  const drawn = words[0] * 2097152 + (words[1] >>> 11);
  return releaseFromBits(Math.floor(drawn / @SURPLUS@), value);
}
