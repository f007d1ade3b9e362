@decoder_object.js@
export const { inputs, outputs, estimate } = @NAME@_decoder;
