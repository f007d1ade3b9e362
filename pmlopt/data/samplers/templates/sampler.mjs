@sampler_object.js@
export const { inputs, outputs, release, releaseFromBits } = @NAME@;
