@HEADER@
CREATE EXTENSION IF NOT EXISTS pgcrypto;

-- The outcome of a whole number of @BITS@ bits, for tests: the first whose threshold is above.
CREATE OR REPLACE FUNCTION @NAME@_release_from_bits(bits bigint, value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $pmlopt$
DECLARE
  inputs CONSTANT text[] := @INPUTS@::text[];
  outputs CONSTANT text[] := @OUTPUTS@::text[];
  -- begin of the table
  written CONSTANT text[] := @THRESHOLDS@::text[];
  -- end of the table
  thresholds bigint[];
  chosen integer := array_position(inputs, value);
BEGIN
  IF chosen IS NULL OR value IS NULL THEN
    RAISE EXCEPTION 'this value is not one of the letters of the mechanism';
  END IF;
  IF bits IS NULL OR bits < 0 OR bits >= @SCALE@ THEN
    RAISE EXCEPTION 'the bits must be from 0 to 2^@BITS@ - 1';
  END IF;
  thresholds := written[chosen]::bigint[];
  FOR place IN 1 .. @M@ LOOP
    IF bits < thresholds[place] THEN
      RETURN outputs[place];
    END IF;
  END LOOP;
END
$pmlopt$;

-- Draw the released outcome of a value from the generator for cryptography of pgcrypto.
CREATE OR REPLACE FUNCTION @NAME@_release(value text) RETURNS text
LANGUAGE plpgsql VOLATILE AS $pmlopt$
DECLARE
  drawn CONSTANT bytea := gen_random_bytes(7);
  bits bigint := 0;
BEGIN
  FOR place IN 0 .. 6 LOOP
    bits := bits * 256 + get_byte(drawn, place);
  END LOOP;
  RETURN @NAME@_release_from_bits(bits >> (56 - @BITS@), value);
END
$pmlopt$;
