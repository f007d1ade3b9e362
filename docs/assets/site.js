// What scrolls can be reached by keyboard.
addEventListener("load", () => {
  for (const part of document.querySelectorAll(".md-typeset__scrollwrap, .formula, .long")) part.tabIndex = 0;
});
