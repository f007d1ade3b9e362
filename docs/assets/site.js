// What scrolls can be reached by keyboard; each part of navigation and the search have a name of their own;
// long names in tables break where their parts end, and rows of wide tables are cards on a narrow page.
const SCROLLING = ".md-typeset__scrollwrap, .md-typeset pre > code, .formula, .long";

function nameParts() {
  for (const part of document.querySelectorAll(SCROLLING)) part.tabIndex = 0;
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll("nav").forEach((part, place) => {
    if (part.dataset.named) return;
    const title = part.getAttribute("aria-label") || part.querySelector("label, .md-nav__title")?.textContent || "Code";
    part.dataset.named = "yes";
    part.removeAttribute("aria-labelledby");
    part.setAttribute("aria-label", `${title.trim()}, part ${place + 1}`);
  });
}

function breakNames() {
  for (const code of document.querySelectorAll("td code")) {
    if (code.children.length === 0) code.innerHTML = code.innerHTML.replace(/(::|[/_.])(?=\w)/g, "$1<wbr>");
  }
}

function labelCells() {
  for (const head of document.querySelectorAll("th:has(math)")) {
    const copy = head.cloneNode(true);
    copy.querySelectorAll("math").forEach(part => part.replaceWith(part.getAttribute("alttext")));
    head.querySelectorAll("math").forEach(part => part.setAttribute("aria-hidden", "true"));
    head.append(Object.assign(document.createElement("span"), { className: "heard", textContent: copy.textContent.trim() }));
  }
  for (const table of document.querySelectorAll(".md-typeset table:not([class])")) {
    const heads = [...table.querySelectorAll("thead th")].map(cell => (cell.querySelector(".heard") ?? cell).textContent.trim());
    const words = [...table.querySelectorAll("td")].some(cell => cell.textContent.length > 60);
    if (heads.length < 3 || !words) continue;
    table.dataset.cards = "";
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, place) => (cell.dataset.label = heads[place] ?? ""));
    }
  }
}

addEventListener("load", () => {
  nameParts();
  breakNames();
  labelCells();
  new MutationObserver(nameParts).observe(document.body, { childList: true, subtree: true });
});
