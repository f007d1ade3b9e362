@HEADER@
-- One draw for each row: release a bare column into a table, once, and compute from that table.
--   CREATE TABLE released AS
--     SELECT @NAME@_release(answer) AS answer FROM people ORDER BY gen_random_uuid();
-- Within LATERAL the planner keeps a draw and gives it to all rows with the same value (Memoize in EXPLAIN),
-- although the function is VOLATILE. There give a key of the rows too, which no two rows share:
--   CROSS JOIN LATERAL (SELECT @NAME@_release(people.answer, people.id) AS answer) AS drawn
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
  -- by bytes: by the collation of a column, other letters may be equal to a value
  chosen CONSTANT integer := array_position(inputs, value COLLATE "C");
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

-- Draw the released outcome of a value, anew in each call, from the generator for cryptography of pgcrypto.
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

-- The same for a truth value, which is the letter True or False.
CREATE OR REPLACE FUNCTION @NAME@_release(value boolean) RETURNS text
LANGUAGE plpgsql VOLATILE AS $pmlopt$
BEGIN
  RETURN @NAME@_release(CASE WHEN value THEN 'True' WHEN NOT value THEN 'False' END);
END
$pmlopt$;

-- The same for the row with a key: a cache of results distinguishes rows by it, such as by the primary key.
CREATE OR REPLACE FUNCTION @NAME@_release(value text, row_key anyelement) RETURNS text
LANGUAGE plpgsql VOLATILE AS $pmlopt$
BEGIN
  IF row_key IS NULL THEN
    RAISE EXCEPTION 'a row without a key may share its draw with another row';
  END IF;
  RETURN @NAME@_release(value);
END
$pmlopt$;

CREATE OR REPLACE FUNCTION @NAME@_release(value boolean, row_key anyelement) RETURNS text
LANGUAGE plpgsql VOLATILE AS $pmlopt$
BEGIN
  RETURN @NAME@_release(CASE WHEN value THEN 'True' WHEN NOT value THEN 'False' END, row_key);
END
$pmlopt$;
