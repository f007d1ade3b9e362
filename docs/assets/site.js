// What scrolls can be reached by keyboard; each part of navigation and the search have a name of their own.
const scrolling = ".md-typeset__scrollwrap, .formula, .long";

function nameParts() {
  for (const part of document.querySelectorAll(scrolling)) part.tabIndex = 0;
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll("nav").forEach((part, place) => {
    const title = part.getAttribute("aria-label") || part.querySelector("label, .md-nav__title")?.textContent || "Code";
    if (part.dataset.named) return;
    part.dataset.named = "yes";
    part.removeAttribute("aria-labelledby");
    part.setAttribute("aria-label", `${title.trim()}, part ${place + 1}`);
  });
}

addEventListener("load", () => {
  nameParts();
  new MutationObserver(nameParts).observe(document.body, { childList: true, subtree: true });
});
