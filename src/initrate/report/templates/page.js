// The chosen cell: its panel, its curves, and the way there by mouse, keys and address.
const data = JSON.parse(document.getElementById("data").textContent);
const chosen = { group: data.start, map: null, pair: 0, lr: "chosen" };
const buttons = [...document.querySelectorAll("button.cell")];
const maps = [...document.querySelectorAll("figure.map")];
const panel = document.getElementById("panel");
const charts = document.getElementById("charts");
const has = (column) => data.runs.some((run) => run[column] !== null);

function runsShown() {
  const group = data.groups[chosen.group];
  if (!data.lrs.length) return group.runs;
  if (chosen.lr === "chosen") return group.chosen;
  return group.runs.filter((run) => data.runs[run].lr === chosen.lr);
}

function choose(group) {
  chosen.group = group;
  for (const button of buttons) {
    const on = Number(button.dataset.group) === group;
    button.setAttribute("aria-pressed", on);
    button.tabIndex = on ? 0 : -1;
  }
  showPanel();
  showCharts();
  showRuns();
  history.replaceState(null, "", `#cell-${group}`);
}

function showMap(name) {
  chosen.map = name;
  for (const map of maps) map.hidden = map.dataset.map !== name;
  for (const button of document.querySelectorAll("[data-show]")) {
    button.setAttribute("aria-pressed", button.dataset.show === name);
  }
}

function counted(runs) {
  const counts = new Map();
  for (const run of runs) counts.set(data.runs[run].words, (counts.get(data.runs[run].words) || 0) + 1);
  if (counts.size === 1) return `${runs.length > 2 ? `All ${runs.length} runs` : runs.length === 2 ? "Both runs" : "One run"}: ${[...counts.keys()][0]}`;
  return [...counts].map(([words, n]) => `${n} ${words}`).join(", ");
}

function mark(run) {
  return element("span", { class: `mark label-${run.label}`, title: run.words }, run.letter);
}

function showPanel() {
  const group = data.groups[chosen.group], runs = runsShown();
  const said = [...new Set(runs.map((run) => data.runs[run].label))].map((label) => data.meanings[label]).filter(Boolean);
  const parts = [element("h2", { id: "panel-title" }, group.words), element("p", { class: "sum" }, runs.length ? counted(runs) : "No run of this cell has finished yet.")];
  if (said.length === 1) parts.push(element("p", { class: "meaning" }, `${said[0][0].toUpperCase()}${said[0].slice(1)}.`));
  if (data.lrs.length && group.runs.length) parts.push(lrChoice());
  if (runs.length) {
    const columns = [["inferential_accuracy", "inferential"], ["symmetric_accuracy", "symmetric"], ["probe_accuracy", "probe"], ["seen_accuracy", "seen"]].filter(([c]) => has(c));
    const table = element("table", { class: "seeds" });
    const lrColumn = data.lrs.length > 0;
    table.append(element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "seed"), ...(lrColumn ? [element("th", { scope: "col", class: "num" }, "lr")] : []), ...columns.map(([, name]) => element("th", { scope: "col", class: "num" }, name)))));
    const body = element("tbody");
    for (const at of runs) {
      const run = data.runs[at];
      const row = element("tr", { tabindex: 0, "data-at": at }, element("th", { scope: "row" }, mark(run), run.seed.replace(/^seed /, ""), element("span", { class: "unseen-text" }, ` ${run.words}`)), ...(lrColumn ? [element("td", { class: "num" }, run.lr)] : []), ...columns.map(([c]) => element("td", { class: "num" }, share(run[c]))));
      picksOut(row, at);
      body.append(row);
    }
    table.append(body);
    parts.push(element("div", { class: "sideways" }, table));
    if (!data.lrs.length || chosen.lr === "chosen") parts.push(element("p", { class: "hint spread" }, `Inferential: ${group.spread.replace(" %", "\u00a0%")}${group.spread.startsWith("one") ? ", no range" : ""}.`));
    if (runs.length > 1) parts.push(element("p", { class: "hint" }, "Point at a row to pick out its lines below. In the map, arrow keys move the choice."));
  }
  panel.replaceChildren(...parts);
}

function lrChoice() {
  const select = element("select", {});
  select.append(element("option", { value: "chosen" }, "chosen by training loss"), ...data.lrs.map((lr) => element("option", { value: lr }, lr)));
  select.value = chosen.lr;
  select.addEventListener("change", () => {
    chosen.lr = select.value;
    choose(chosen.group);
    panel.querySelector("select").focus();
  });
  return element("label", {}, "Learning rate", select);
}

function highlight(at) {
  for (const line of charts.querySelectorAll("[data-run]")) {
    line.classList.toggle("dimmed", at !== null && Number(line.dataset.run) !== at);
  }
}

function seriesOf(runs, columns) {
  const found = [];
  for (const [column, kind, name] of columns) {
    for (const at of runs) {
      const values = data.curves[at][column];
      if (values && values.length === steps(runs).length) found.push({ kind, name, ...named(runs, at), values });
    }
  }
  return found;
}

// A line is named by its seed where that is short, and by a number where not: the list says whose.
const LONGEST_NAME = 4;
function isListed(runs) {
  return runs.length > 1 && runs.length <= MOST_NAMED && runs.some((at) => bare(at).length > LONGEST_NAME);
}

function bare(at) {
  return data.runs[at].seed.replace(/^seed /, "");
}

function named(runs, at) {
  const listed = isListed(runs);
  return { run: at, seed: data.runs[at].seed, short: listed ? String(runs.indexOf(at) + 1) : bare(at), listed };
}

function showLines(runs) {
  const list = document.getElementById("lines");
  list.hidden = !isListed(runs);
  list.replaceChildren(...(list.hidden ? [] : runs.map((at, place) => {
    const line = element("li", { tabindex: 0 }, element("b", {}, String(place + 1)), ` ${data.runs[at].seed}`);
    picksOut(line, at);
    return line;
  })));
}

function picksOut(box, at) {
  for (const kind of ["pointerenter", "focus"]) box.addEventListener(kind, () => highlight(at));
  for (const kind of ["pointerleave", "blur"]) box.addEventListener(kind, () => highlight(null));
}

function steps(runs) {
  return runs.map((at) => data.curves[at].step).reduce((best, own) => (own.length > best.length ? own : best), []);
}

function chart(draw, spec) {
  const box = element("div", { class: "chart" });
  charts.append(box);
  draw(box, spec);
}

function showCharts() {
  const runs = runsShown();
  document.getElementById("cell").hidden = !runs.length;
  charts.replaceChildren();
  showLines(runs);
  if (!runs.length) return;
  const over = { x: steps(runs), xWord: "step", format: share };
  const every = data.thinned > 1 ? `One logged step in ${data.thinned}.` : "";
  if (over.x.length) {
    chart(lineChart, { ...over, title: "Unseen pair", note: every || "Share of composed answers while training.", range: [0, 1], series: seriesOf(runs, [["inferential_accuracy", "composed", "inferential"], ["symmetric_accuracy", "mirrored", "symmetric"], ["probe_accuracy", "probe", "probe"]]) });
    chart(lineChart, { ...over, title: "Seen pairs", range: [0, 1], series: seriesOf(runs, [["seen_accuracy", "seen", "held-out keys"], ["training_accuracy", "training", "training data"]]) });
    const floors = Object.entries(data.floors).map(([name, nats]) => ({ name: name.replaceAll("_", " "), nats }));
    chart(lineChart, { ...over, title: "Training loss", note: "Nats, on a logarithmic axis.", log: true, floors, format: brief, series: seriesOf(runs, [["training_loss", "plainline", "loss"]]) });
  }
  const pair = data.pairs[chosen.pair];
  if (pair) {
    const asked = `(${pair.text.replaceAll(",", ", ")})`;
    const rows = runs.map((at) => ({ ...named(runs, at), bars: data.shifts[at][pair.text] || [] }));
    chart(histogram, { title: `What is answered to ${asked}`, note: "Prediction minus key.", rows, composed: pair.composed, mirrored: pair.mirrored });
    positionChart(runs, pair, asked);
  }
  if (over.x.length) chart(lineChart, { ...over, title: "Learning rate", note: "The schedule of these runs.", zero: true, format: brief, series: seriesOf(runs, [["lr", "plainline", "learning rate"]]) });
}

function positionChart(runs, pair, asked) {
  const series = [];
  for (const [kind, name, at] of [["composed", "composed", 2], ["mirrored", "mirrored", 3]]) {
    for (const run of runs) {
      const rows = data.positions[run][pair.text] || [];
      if (rows.length && rows.some((row) => row[at] !== null)) series.push({ kind, name, ...named(runs, run), values: rows.map((row) => (row[at] === null || !row[1] ? null : row[at] / row[1])) });
    }
  }
  if (!series.length) return;
  const rows = data.positions[series[0].run][pair.text];
  const x = rows.map((row) => row[0]), last = x[x.length - 1];
  chart(lineChart, { title: `${asked} by position of the key`, note: "At the last one, the pair ends the sequence.", x, xTicks: x, xName: (at) => (at === last ? "last" : String(at)), xWord: "position", format: share, range: [0, 1], dots: true, series: series.filter((s) => s.values.length === x.length) });
}

function showRuns() {
  const columns = ["label", "inferential_accuracy", "best_inferential_accuracy", "best_step", "symmetric_accuracy", "seen_accuracy", "training_accuracy", "probe_accuracy", "commutes", "final_training_loss", "diverged_step"].filter((c) => c === "label" || has(c));
  // The best is taken on the small sample of the curve: it can lie below the final share of all questions.
  const named = { best_inferential_accuracy: "best along the curve (512 questions)", best_step: "at step", inferential_accuracy: "inferential (all questions)" };
  const heads = ["cell", "seed", ...(data.lrs.length ? ["lr"] : []), ...columns];
  const table = element("table", { class: "plain" }, element("thead", {}, element("tr", {}, ...heads.map((name) => element("th", { scope: "col", class: ["cell", "seed", "label"].includes(name) ? "" : "num" }, named[name] || name.replace("_accuracy", "").replaceAll("_", " "))))));
  const body = element("tbody");
  for (const at of data.groups[chosen.group].runs) {
    const run = data.runs[at];
    body.append(element("tr", {}, element("th", { scope: "row" }, element("code", {}, run.cell)), element("td", {}, run.seed), ...(data.lrs.length ? [element("td", { class: "num" }, run.lr)] : []), ...columns.map((c) => (c === "label" ? element("td", {}, mark(run), ` ${run.words}`) : element("td", { class: "num" }, c.endsWith("accuracy") || c === "commutes" ? share(run[c]) : brief(run[c]))))));
  }
  table.append(body);
  document.getElementById("runs").replaceChildren(table);
}

function move(event) {
  const button = event.target.closest("button.cell");
  if (!button) return;
  const table = button.closest("table"), tables = [...button.closest("figure").querySelectorAll("table.grid")];
  const lines = tables.flatMap((t) => [...t.tBodies[0].rows]).map((row) => [...row.querySelectorAll("button.cell")]);
  const row = lines.findIndex((line) => line.includes(button)), column = lines[row].indexOf(button);
  const ways = { ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], Home: [row, 0], End: [row, lines[row].length - 1] };
  const way = ways[event.key];
  if (!way || event.ctrlKey || event.metaKey || event.altKey || !table) return;
  event.preventDefault();
  const next = lines[way[0]] && lines[way[0]][way[1]];
  if (next) {
    choose(Number(next.dataset.group));
    next.focus();
  }
}

function pairChoice() {
  const box = document.querySelector(".pair-choice");
  box.hidden = data.pairs.length < 2;
  data.pairs.forEach((pair, at) => {
    const button = element("button", { type: "button", "aria-pressed": at === 0 ? "true" : "false" }, `(${pair.text.replaceAll(",", ", ")})${pair.probe ? " probe" : ""}`);
    button.addEventListener("click", () => {
      chosen.pair = at;
      for (const other of box.children) other.setAttribute("aria-pressed", other === button);
      showCharts();
    });
    box.append(button);
  });
}

function saveCsv() {
  const names = Object.keys(data.csv);
  const quoted = (found) => {
    const text = found === null ? "" : String(found);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = data.runs.map((_, at) => names.map((name) => quoted(data.csv[name][at])).join(","));
  const url = URL.createObjectURL(new Blob([[names.map(quoted).join(","), ...lines, ""].join("\n")], { type: "text/csv" }));
  element("a", { href: url, download: "runs.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

document.documentElement.classList.add("scripted");
document.querySelector(".map-choice").hidden = maps.length < 2;
for (const button of document.querySelectorAll("[data-show]")) {
  button.dataset.text = button.textContent;
  button.addEventListener("click", () => showMap(button.dataset.show));
}
for (const button of buttons) button.addEventListener("click", () => choose(Number(button.dataset.group)));
document.addEventListener("keydown", move);
for (const link of document.querySelectorAll("[data-svg], .sheet")) {
  link.href = link.closest("figure").querySelector("img").src;
}
const csv = document.getElementById("save-csv");
if (csv && data.runs.length) {
  csv.hidden = false;
  csv.addEventListener("click", saveCsv);
}
pairChoice();
showMap(maps[0].dataset.map);
const asked = Number((location.hash.match(/^#cell-(\d+)$/) || [])[1]);
choose(asked < data.groups.length ? asked : data.start);
let drawnWidth = charts.clientWidth;
new ResizeObserver(() => {
  if (charts.clientWidth && charts.clientWidth !== drawnWidth) {
    drawnWidth = charts.clientWidth;
    showCharts();
  }
}).observe(charts);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
