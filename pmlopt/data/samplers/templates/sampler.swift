@HEADER@
public enum @CLASS@ {
    public struct UnknownValue: Error {}
    public struct TooManyBits: Error {}

    public static let inputs: [String] = @INPUTS@
    public static let outputs: [String] = @OUTPUTS@
    // begin of the table
    private static let thresholds: [[UInt64]] = @THRESHOLDS@
    // end of the table

    /// The outcome of a whole number of @BITS@ bits, for tests: the first whose threshold is above.
    public static func releaseFromBits(_ bits: UInt64, _ value: String) throws -> String {
        // by code points: Swift's own equality ignores how a letter is composed
        let wanted = Array(value.unicodeScalars)
        guard let row = inputs.firstIndex(where: { Array($0.unicodeScalars) == wanted }) else {
            throw UnknownValue()
        }
        guard let output = thresholds[row].firstIndex(where: { bits < $0 }) else {
            throw TooManyBits()
        }
        return outputs[output]
    }

    /// Draw the released outcome of a value from the system's generator for cryptography.
    public static func release(_ value: String) throws -> String {
        var generator = SystemRandomNumberGenerator()
        let word: UInt64 = generator.next()
        return try releaseFromBits(word >> (64 - @BITS@), value)
    }
}
