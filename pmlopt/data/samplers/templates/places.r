  # Where the values of a column stand among texts, NA where they are none of these: numbers are found by their
  # value, and truth values as True and False. Labels of a factor are text.
  find_places <- function(column, texts, numbers) {
    if (is.factor(column)) {
      column <- as.character(column)
    }
    if (is.object(column) || !is.atomic(column) || is.null(column)) {
      stop("give a column of text, numbers or truth values, or a factor; others by as.character() first")
    }
    if (is.logical(column)) {
      return(match(c("False", "True")[column + 1], texts))
    }
    if (is.character(column)) {
      return(match(enc2utf8(as.vector(column)), texts))
    }
    if (!is.numeric(column)) {
      return(rep(NA_integer_, length(column)))
    }
    found <- match(as.numeric(column), numbers)
    found[is.na(column)] <- NA
    found
  }
