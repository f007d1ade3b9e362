// Shows the points of the data above. Nothing is computed here but the posterior, by Bayes' rule from the matrix.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const chosen = { curve: 0, point: 0, part: 0 };
const views = {};

// Numbers with six digits, as tables of pmlopt have them; gaps in powers of ten; probabilities with four digits.
const number = (x) => (x === null ? "none" : String(Number(x.toPrecision(6))));
const small = (x) => (x === null ? "none" : x === 0 ? "0" : x.toExponential(1));
const probability = (x) => {
  const text = x.toFixed(4);
  if (x > 0 && Number(text) === 0) return "<0.0001";
  if (x < 1 && Number(text) === 1) return ">0.9999";
  return String(Number(text));
};
const word = (name) => name.replace(/ \[.*\]$/, "");
const unit = (name) => (name.match(/ \[(.*)\]$/) || ["", ""])[1];
const measure = (x, name) => (number(x) + " " + unit(name)).trim();

function text(parent, tag, content) {
  const made = document.createElement(tag);
  made.textContent = content;
  parent.append(made);
  return made;
}

function table(place, head, rows, here = -1) {
  const made = document.createElement("table");
  if (head.length) head.reduce((row, name) => (text(row, "th", name).scope = "col", row), made.insertRow());
  rows.forEach((cells, k) => {
    const row = made.insertRow();
    cells.forEach((cell) => { text(row, "td", cell).className = k === here ? "here" : ""; });
  });
  place.replaceChildren(made);
}

const curve = () => data.curves[chosen.curve];
const point = () => curve().points[chosen.point];
const part = () => point().parts[Math.min(chosen.part, point().parts.length - 1)];

function floats(encoded) {
  const bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, k) => view.getFloat32(4 * k, true));
}

// The matrix of a part, and the posterior with the prior before it: rows of numbers.
function matrices(one) {
  const inputs = data.shared[one.inputs], outputs = data.shared[one.outputs];
  const all = floats(one.matrix);
  const matrix = inputs.map((_, x) => all.slice(x * outputs.length, (x + 1) * outputs.length));
  if (one.prior === null) return { inputs, outputs, matrix, posterior: null };
  const prior = data.shared[one.prior];
  const law = outputs.map((_, y) => prior.reduce((sum, p, x) => sum + p * matrix[x][y], 0));
  const posterior = matrix.map((row, x) => [prior[x], ...row.map((entry, y) => prior[x] * entry / law[y])]);
  return { inputs, outputs, matrix, posterior };
}

// ---------------------------------------------------------------- drawings, as declared to Vega-Lite

const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const palette = () => (dark() ? ["#4aa3df", "#fb923c", "#4cc38a", "#d6a4ff", "#e6e9ee"] : ["#0072b2", "#c2410c", "#1a7f4b", "#7b3fb0", "#1c2430"]);

function config() {
  const ink = colour("--ink"), line = colour("--line");
  return {
    aria: false, background: "transparent", view: { stroke: null }, font: "system-ui, sans-serif",
    axis: { labelColor: ink, titleColor: ink, domainColor: line, tickColor: line, gridColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 110 },
    legend: { labelColor: ink, titleColor: ink, orient: "top", title: null, labelFontSize: 12, labelLimit: 240, columns: innerWidth < 600 ? 2 : 0 },
  };
}

function lines() {
  const counted = points.every((p) => Number.isInteger(p.at));
  const x = { field: "at", type: "quantitative", title: data.across, axis: counted ? { tickMinStep: 1, format: "d" } : {}, scale: { zero: false, nice: false, padding: 8 } };
  const y = (field) => ({ field, type: "quantitative", title: data.height });
  const names = data.curves.map((one) => one.name);
  const color = { field: "name", type: "nominal", sort: names, scale: { domain: names, range: palette() }, legend: names.length > 1 ? {} : null };
  const rule = (source, encoding, mark) => ({ data: { name: source }, mark: { type: "rule", ...mark }, encoding });
  return {
    data: { name: "points" }, width: "container", height: 280, autosize: { type: "fit", contains: "padding" },
    layer: [
      { mark: { type: "line", strokeWidth: 1, opacity: 0.55 }, encoding: { x, y: y("value"), color } },
      { mark: { type: "rule", strokeWidth: 3, opacity: 0.5 }, transform: [{ filter: "isValid(datum.bound)" }], encoding: { x, y: y("bound"), y2: { field: "value" }, color } },
      { mark: { type: "point", filled: true, size: 26, opacity: 1 }, encoding: { x, y: y("value"), color, tooltip: [{ field: "name", title: "curve" }, { field: "at", title: data.across }, { field: "value", title: data.height }, { field: "bound", title: "bound" }] } },
      rule("chosen", { x: { field: "at", type: "quantitative" } }, { strokeDash: [4, 4], color: colour("--soft") }),
      { data: { name: "chosen" }, mark: { type: "point", size: 160, strokeWidth: 2.5, color: colour("--ink") }, encoding: { x, y: y("value") } },
      ...(data.limit === null ? [] : [
        { data: { values: [{ limit: data.limit }] }, mark: { type: "rule", color: colour("--limit"), strokeDash: [5, 4], strokeWidth: 2 }, encoding: { y: y("limit") } },
        { data: { values: [{ limit: data.limit }] }, mark: { type: "text", color: colour("--ink"), align: "left", dx: 4, dy: -7, x: 0, text: "limit " + number(data.limit), fontSize: 12 }, encoding: { y: y("limit") } },
      ]),
    ],
  };
}

// Labels are looked up by their place, so that two that read alike stay two.
function heat(rows, columns, slanted) {
  const axis = (name, angle) => ({ field: name, type: "ordinal", title: null, sort: null, axis: { labelExpr: name + "s[datum.value]", labelOverlap: true, labelLimit: 90, labelAngle: angle } });
  const scale = { domain: [0, 1], range: dark() ? ["#1b222d", "#2f6ea5", "#a8dcff"] : ["#f1f5fa", "#6aa3d0", "#083a6b"], type: "pow", exponent: 0.6 };
  return {
    data: { name: "cells" }, width: "container", height: rows * Math.max(2, Math.min(22, 420 / rows)), autosize: { type: "fit-x", contains: "padding" },
    params: [{ name: "rows", value: [] }, { name: "columns", value: [] }],
    mark: { type: "rect", stroke: colour("--paper"), strokeWidth: rows * columns > 900 ? 0 : 1 },
    encoding: {
      y: axis("row", 0), x: axis("column", slanted ? -45 : 0),
      color: { field: "probability", type: "quantitative", scale, legend: { orient: "bottom", title: "probability", direction: "horizontal", gradientLength: 160, gradientThickness: 10 } },
      tooltip: [{ field: "letter" }, { field: "outcome" }, { field: "shown", title: "probability" }],
    },
  };
}

function bars(count) {
  return {
    data: { name: "bars" }, width: "container", height: count * Math.max(4, Math.min(22, 800 / count)), autosize: { type: "fit-x", contains: "padding" },
    params: [{ name: "rows", value: [] }, { name: "most", value: 1 }],
    encoding: { y: { field: "row", type: "ordinal", title: null, sort: null, axis: { labelExpr: "rows[datum.value]", labelOverlap: true, labelLimit: 110 } } },
    layer: [
      { mark: { type: "bar", height: { band: 0.75 } }, encoding: { x: { field: "leakage", type: "quantitative", title: null, scale: { zero: true, nice: false, domainMax: { expr: "most" } } }, color: { field: "identifies", type: "nominal", scale: { domain: [false, true], range: [colour("--bar"), colour("--limit")] }, legend: null } } },
      { mark: { type: "text", align: "left", dx: 4, color: colour("--ink"), fontSize: count > 60 ? 0 : 12 }, encoding: { x: { field: "leakage", type: "quantitative" }, text: { field: "shown" } } },
    ],
  };
}

// Embeds a drawing once for each shape that it takes, and hands it new data after that.
async function draw(id, shape, spec, sets, signals, label) {
  $(id).setAttribute("aria-label", label);
  if (!views[id] || views[id].shape !== shape) {
    if (views[id]) views[id].made.finalize();
    const made = await vegaEmbed($(id).firstElementChild, { ...spec(), datasets: sets }, { actions: false, logLevel: 1, renderer: "svg", config: config(), tooltip: { theme: dark() ? "dark" : "light" } });
    views[id] = { shape, made };
  }
  const view = views[id].made.view;
  Object.entries(signals).forEach(([name, value]) => view.signal(name, value));
  Object.entries(sets).forEach(([name, rows]) => view.data(name, rows));
  await view.resize().runAsync();
}

// ---------------------------------------------------------------- what is shown

const points = data.curves.flatMap((one) => one.points.map((p) => ({ name: one.name, at: p.at, value: p.value, bound: p.bound })));

// The places of a curve by value, from the worst to the best, each at the least `at` that is as good.
function stops(one) {
  const sign = data.better === "more" ? -1 : 1;
  const best = [];
  one.points.forEach((p, k) => { if (!best.length || sign * p.value < sign * one.points[best[best.length - 1]].value) best.push(k); });
  return best;
}

function controls() {
  const ats = curve().points;
  $("at").max = ats.length - 1;
  $("at").value = chosen.point;
  const said = measure(point().at, data.across) + ": " + measure(point().value, data.height);
  $("at-out").textContent = said;
  $("at").setAttribute("aria-valuetext", said);
  const list = stops(curve());
  const reached = list.filter((k) => k <= chosen.point).length - 1;
  $("least").max = list.length - 1;
  $("least").value = Math.max(0, reached);
  const goal = curve().points[list[Math.max(0, reached)]];
  const least = (data.better === "more" ? "at least " : "at most ") + measure(goal.value, data.height) + ": least " + word(data.across) + " solved " + measure(goal.at, data.across);
  $("least-out").textContent = least;
  $("least").setAttribute("aria-valuetext", least);
}

function describe() {
  const here = point();
  $("promise").textContent = here.promise;
  $("promise").hidden = !here.promise;
  $("meanings").replaceChildren();
  here.meanings.forEach((line) => text($("meanings"), "li", line));
  $("warnings").replaceChildren();
  here.warnings.forEach((line) => { text($("warnings"), "p", line).className = "warn"; });
  table($("facts"), [], [
    [data.across, number(here.at)], [data.height, number(here.value)],
    ...(here.bound === null ? [] : [["no mechanism betters", number(here.bound)], ["gap between both", small(here.gap)]]),
    ...(here.level === null ? [] : [["level of the mechanism [nats]", number(here.level)]]),
    ["status", here.status], ...here.facts,
  ]);
  $("changes").replaceChildren();
  const below = curve().changes.filter((c) => c[1] <= here.at), above = curve().changes.filter((c) => c[0] >= here.at);
  const near = [...below.filter((c) => c[1] === below[below.length - 1][1]), ...above.filter((c) => c[0] === above[0][0])];
  near.forEach(([from, to, what]) => text($("changes"), "li", "Between " + number(from) + " and " + number(to) + ", " + what + "."));
  $("changes-box").hidden = !near.length;
  for (const kind of ["command", "python"]) {
    $(kind + "-box").hidden = !here[kind];
    $(kind).textContent = [data.before[kind], here[kind]].filter(Boolean).join("\n");
  }
  $("copy").hidden = !here.command && !here.python;
}

async function pictures() {
  const one = part();
  $("told").hidden = !one;
  if (!one) return;
  $("part-box").hidden = point().parts.length < 2;
  $("part").replaceChildren(...point().parts.map((p, k) => new Option(p.name || "the mechanism", k)));
  $("part").value = chosen.part = Math.min(chosen.part, point().parts.length - 1);
  const outputs = data.shared[one.outputs];
  const certain = outputs.filter((_, y) => one.leakages.length && one.leakages[y][1]);
  $("mark").textContent = certain.length ? "Marked with ! are outcomes that identify a letter: " + certain.slice(0, 12).join(", ") + (certain.length > 12 ? " and " + (certain.length - 12) + " more" : "") + "." : one.leakages.length ? "No outcome identifies a letter." : "";
  const marked = outputs.map((label, y) => (one.leakages.length && one.leakages[y][1] ? "! " : "") + label);
  table($("rows"), data.told, one.rows);
  $("rows").hidden = !one.rows.length;
  $("left-out").hidden = one.matrix !== null && !one.left;
  $("left-out").textContent = one.matrix === null ? "To keep this page small, the matrix of this point is left out; neighbours have theirs, and what is copied below gives it. What its outcomes reveal is here." : one.left ? "The table leaves out " + one.left + " outcomes, which reveal less." : "";
  $("leakage-box").hidden = !one.leakages.length;
  if (one.leakages.length) {
    const rows = one.leakages.map(([leakage, identifies], row) => ({ row, leakage, identifies, shown: number(leakage) }));
    await draw("leakage", rows.length + "," + dark(), () => bars(rows.length), { bars: rows }, { rows: marked, most: 1.35 * Math.max(0.01, ...rows.map((r) => r.leakage)) }, "Leakage of each outcome in nats: " + rows.slice(0, 20).map((r) => outputs[r.row] + " " + r.shown).join(", "));
  }
  $("matrix-box").hidden = one.matrix === null || one.likelihood;
  $("posterior-box").hidden = one.matrix === null || one.prior === null;
  $("numbers").parentElement.hidden = one.matrix === null;
  if (one.matrix === null) return;
  const found = matrices(one);
  $("matrix-title").textContent = "Probability of each outcome (columns) for each letter (rows)";
  const cells = (rows, names) => rows.flatMap((row, x) => row.map((value, y) => ({ row: x, column: y, probability: value, letter: found.inputs[x], outcome: names[y], shown: probability(value) })));
  const heated = async (id, rows, names, label) => {
    const slanted = names.reduce((sum, name) => sum + 8 * Math.min(name.length, 12) + 12, 90) > $(id).clientWidth;
    const shape = [rows.length, names.length > 40, slanted, dark()].join();
    await draw(id, shape, () => heat(rows.length, names.length, slanted), { cells: cells(rows, names) }, { rows: found.inputs, columns: names }, label + "; the numbers are in the tables below");
  };
  if (!one.likelihood) await heated("matrix", found.matrix, marked, "Heat map of the mechanism, " + found.inputs.length + " letters by " + outputs.length + " outcomes");
  const after = ["prior", ...marked];
  if (found.posterior) await heated("posterior", found.posterior, after, "Heat map of the prior, and of the posterior after each outcome");
  numbers(found, marked, after, one.likelihood);
}

// The numbers of both pictures, written when they are opened: hundreds of letters make long tables.
function numbers(found, marked, after, likelihood) {
  const place = $("numbers"), box = place.parentElement;
  const write = () => {
    place.replaceChildren();
    const add = (title, head, rows) => { text(place, "h3", title); table(place.appendChild(document.createElement("div")), ["letter", ...head], rows.map((row, x) => [found.inputs[x], ...row.map(probability)])); };
    if (!likelihood) add("Probability of each outcome", marked, found.matrix);
    if (found.posterior) add("Prior, and posterior after each outcome", after, found.posterior);
  };
  box.ontoggle = () => box.open && write();
  if (box.open) write();
}

async function show() {
  controls();
  describe();
  const all = $("all").parentElement;
  const list = () => table($("all"), [data.across, data.height, "bound", "gap", "level [nats]", "status"], curve().points.map((p) => [number(p.at), number(p.value), number(p.bound), small(p.gap), number(p.level), p.status]), chosen.point);
  all.ontoggle = () => all.open && list();
  if (all.open) list();
  $("lines-note").textContent = ["Only the dots were computed; the lines between them lead the eye.", curve().about].filter(Boolean).join(" ");
  const here = { at: point().at, value: point().value };
  await draw("lines", "lines" + dark() + (innerWidth < 600), lines, { points, chosen: [here] }, {}, data.height + " over " + data.across + ", for " + data.curves.map((one) => one.name).join(", ") + "; the numbers are in the table below");
  await pictures();
  document.body.dataset.shown = [chosen.curve, chosen.point, chosen.part].join();
}

// One drawing at a time; of the requests meanwhile, the last.
let busy = false, again = false;
async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  do { again = false; await show(); } while (again);
  busy = false;
}

function nearest(at) {
  const far = curve().points.map((p) => Math.abs(p.at - at));
  return far.indexOf(Math.min(...far));
}

data.about.forEach((line) => text($("about"), "p", line));
data.curves.forEach((one, k) => $("curve").append(new Option(one.name, k)));
$("curve-label").textContent = data.choice;
$("curves-box").hidden = data.curves.length < 2;
$("at-label").textContent = data.across;
$("least-label").textContent = (data.better === "more" ? "Least " : "Largest ") + word(data.height) + " that will do";
$("least-box").hidden = !data.better;
$("curve").oninput = () => { const at = point().at; chosen.curve = Number($("curve").value); chosen.point = nearest(at); refresh(); };
$("at").oninput = () => { chosen.point = Number($("at").value); refresh(); };
$("least").oninput = () => { chosen.point = stops(curve())[Number($("least").value)]; refresh(); };
$("part").oninput = () => { chosen.part = Number($("part").value); refresh(); };
document.querySelectorAll("button[data-copies]").forEach((button) => {
  button.onclick = async () => {
    const from = $(button.dataset.copies);
    getSelection().selectAllChildren(from);
    let done = false;
    try { await navigator.clipboard.writeText(from.textContent); done = true; } catch { done = document.execCommand("copy"); }
    $("copied").textContent = done ? "Copied." : "The browser does not let this page copy: the text is selected, copy it by the keyboard.";
  };
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
chosen.point = Math.floor((curve().points.length - 1) / 2);
refresh();
