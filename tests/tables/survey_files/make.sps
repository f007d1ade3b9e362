* Writes the files of PSPP 1.6.2: pspp make.sps.
DATA LIST LIST NOTABLE /smokes (F8.0) weight (F8.2) text (A6) day (DATE11) moment (DATETIME23.2) clock (TIME11.2) range (F8.0) sex (A1) twice (F4.0) long (A20).
BEGIN DATA
1 .5 "a" 31-DEC-1999 "29-FEB-2020 13:14:15.25" 01:02:03.50 1 m 1 abcdefghijkl
2 1.25 "b" 29-FEB-2020 . 23:59:59.00 97 f 2 b
3 2 "äst" 01-JAN-1960 "31-DEC-1999 23:59:59.00" 25:00:00.00 98 x 8 b
9 1 "" . "31-DEC-1999 23:59:59.00" . 1 m 1 c
. 1 "b" 29-FEB-2020 "31-DEC-1999 23:59:59.00" 00:00:00.00 2 f 2 b
2 3 "a" 20-OCT-1582 "31-DEC-1999 23:59:59.00" 12:00:00.00 . m 8 b
END DATA.
VARIABLE LABELS smokes "Do you smoke?" day "Born".
VALUE LABELS smokes 1 "never" 2 "sometimes" 3 "daily" 9 "refused" 5 "other"
  /sex "m" "male" "f" "female" /twice 1 "yes" 2 "yes" 8 "don't know" /long "abcdefghijkl" "twelve".
MISSING VALUES smokes (9) /range (97 THRU HIGHEST) /sex ("x").
VARIABLE LEVEL smokes (ORDINAL) /weight (SCALE) /text (NOMINAL).
VARIABLE WIDTH smokes (12) /text (9).
WEIGHT BY weight.
SAVE OUTFILE='pspp-compressed.sav' /COMPRESSED.
SAVE OUTFILE='pspp-plain.sav' /UNCOMPRESSED.
SAVE OUTFILE='pspp-zipped.zsav' /ZCOMPRESSED.
SAVE OUTFILE='pspp-old.sav' /VERSION=2.
EXPORT OUTFILE='pspp.por' /DROP=long.
MISSING VALUES smokes (LO THRU 1, 9).
SAVE OUTFILE='pspp-lowest.sav'.
