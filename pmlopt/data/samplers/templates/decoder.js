@decoder_object.js@
if (typeof module !== "undefined" && module.exports) {
  module.exports = @NAME@_decoder;
}
