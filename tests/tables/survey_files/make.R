# Writes the files of R: Rscript make.R, with haven 2.5.1 and foreign 0.8.
# iris.sav is an example of haven (MIT license).
library(foreign)
library(haven)

codes <- c(1, 2, 3, 9, NA, 2)
weight <- c(0.5, 1.25, 2, 1, 1, 3)
text <- c("a", "b", "\u00e4st", "", "b", "a")
day <- as.Date(c("1999-12-31", "2020-02-29", "1960-01-01", NA, "2020-02-29", "1582-10-20"))
moment <- as.POSIXct(c("2020-02-29 13:14:15", NA, rep("1999-12-31 23:59:59", 4)), tz = "UTC")
labels <- c(never = 1, sometimes = 2, daily = 3, refused = 9, other = 5)

spss <- tibble::tibble(
  smokes = labelled_spss(codes, labels, na_values = 9, label = "Do you smoke?"),
  weight = weight, text = text, day = day, moment = moment,
  range = labelled_spss(c(1, 97, 98, 1, 2, NA), c(low = 1), na_range = c(97, Inf)),
  sex = labelled_spss(c("m", "f", "x", "m", "f", "m"), c(male = "m", female = "f"), na_values = "x"),
  twice = labelled(c(1, 2, 8, 1, 2, 8), c(yes = 1, yes = 2, "don't know" = 8))
)
write_sav(spss, "haven-byte.sav", compress = "byte")
write_sav(spss, "haven-none.sav", compress = "none")
write_sav(spss, "haven-zsav.zsav", compress = "zsav")

stata <- tibble::tibble(
  smokes = labelled(c(1, 2, 3, tagged_na("a"), NA, tagged_na("z")),
                    c(never = 1, sometimes = 2, daily = 3, refused = tagged_na("a"), other = 5),
                    label = "Do you smoke?"),
  weight = weight, text = text, day = day, moment = moment,
  twice = labelled(c(1, 2, 8, 1, 2, 8), c(yes = 1, yes2 = 2))
)
for (version in c(8, 10, 11, 12, 13, 14, 15)) {
  write_dta(stata, sprintf("haven-%d.dta", version), version = version)
}

sas <- tibble::tibble(smokes = labelled(codes, label = "Do you smoke?"), weight = weight, text = text,
                      day = day, moment = moment)
for (version in c(5, 8)) write_xpt(sas, sprintf("haven-v%d.xpt", version), version = version, name = "people")
suppressWarnings(write_sas(sas, "haven.sas7bdat"))

answers <- factor(c("never", "sometimes", "daily", NA, NA, "sometimes"), c("never", "sometimes", "daily", "other"))
for (version in c(6, 7, 8, 10)) {
  write.dta(data.frame(smokes = answers, weight = weight), sprintf("foreign-%d.dta", version), version = version)
}
