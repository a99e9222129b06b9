"use strict";
// Line charts and histograms in plain SVG. Nothing here writes HTML: names are text, always.
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, given] of Object.entries(attributes)) {
    if (given !== null && given !== false) made.setAttribute(key, given === true ? "" : given);
  }
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, given] of Object.entries(attributes)) made.setAttribute(key, given);
  if (text !== null) made.textContent = text;
  return made;
}

function brief(number) {
  if (number === null || number === undefined) return "–";
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size < 0.001 || size >= 1e6) return number.toExponential(1).replace(".0e", "e").replace("e+", "e");
  return size >= 1000 ? number.toLocaleString("en") : String(Number(number.toPrecision(3)));
}

function share(number) {
  if (number === null || number === undefined) return "–";
  return number > 0.99 && number < 1 ? "0.99" : number.toFixed(2);
}

function niceTicks(first, last, most) {
  const rough = Math.max((last - first) / most, 1e-12);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough);
  const ticks = [];
  for (let tick = Math.ceil(first / step) * step; tick <= last + step / 1e6; tick += step) {
    ticks.push(Number(tick.toPrecision(12)));
  }
  return ticks;
}

function logTicks(low, high) {
  const decades = [], parts = [];
  for (let power = Math.floor(low); power <= high; power += 1) {
    for (const m of [1, 2, 5]) {
      const tick = Number((m * 10 ** power).toPrecision(3)), at = Math.log10(tick);
      if (at >= low - 1e-9 && at <= high + 1e-9) (m === 1 ? decades : parts).push(tick);
    }
  }
  if (decades.length > 1) return decades;
  const few = [...decades, ...parts];
  // Within less than a decade 1, 2 and 5 may all lie outside: then even steps.
  return few.length > 1 ? few : niceTicks(10 ** low, 10 ** high, 3).filter((tick) => tick > 0);
}

function keyOf(kinds) {
  const key = element("div", { class: "key" });
  for (const [kind, name] of kinds) {
    const swatch = shape("svg", { viewBox: "0 0 20 8", "aria-hidden": "true" });
    swatch.append(shape("line", { x1: 0, x2: 20, y1: 4, y2: 4, class: `line ${kind}` }));
    key.append(element("span", {}, swatch, name));
  }
  return key;
}

function framed(chart, title, note, width, height) {
  chart.append(element("h3", {}, title), note);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  chart.append(svg);
  return svg;
}

function widthOf(svg, text, kind = "") {
  const probe = shape("text", { class: kind }, text);
  svg.append(probe);
  const width = probe.getComputedTextLength();
  probe.remove();
  return width;
}

// Lines that are named at their ends and read off one by one; more are told as a range.
const MOST_NAMED = 6;

// series: [{kind, name, run, seed, short, values}], all over the same x; `short` names a line at
// its end, and is the seed itself or a number that the list above the charts explains.
function lineChart(chart, spec) {
  const width = Math.max(chart.clientWidth, 240), height = 190;
  const edge = { left: 36, right: 26, top: 14, bottom: 24 };
  const kinds = new Map(spec.series.map((s) => [s.kind, s.name]));
  const key = keyOf(kinds.size > 1 ? kinds : []);
  if (kinds.size === 1 && spec.note) key.append(element("span", {}, spec.note));
  const svg = framed(chart, spec.title, key, width, height);
  const known = spec.series.flatMap((s) => s.values).filter((v) => v !== null && (!spec.log || v > 0));
  if (!known.length) {
    svg.append(shape("text", { x: edge.left, y: height / 2 }, "No numbers were logged."));
    return;
  }
  const scaled = (v) => (spec.log ? Math.log10(v) : v);
  const yAt = (v) => height - edge.bottom - ((scaled(v) - low) / (high - low)) * (height - edge.top - edge.bottom);
  let low = spec.range ? spec.range[0] : Math.min(...known.map(scaled));
  let high = spec.range ? spec.range[1] : Math.max(...known.map(scaled));
  if (spec.zero) low = 0;
  if (high - low < 1e-9) high = low + 1;
  const xs = spec.x, xLow = xs[0], xHigh = xs[xs.length - 1] === xLow ? xLow + 1 : xs[xs.length - 1];
  const ticks = spec.log
    ? logTicks(low, high)
    : spec.range ? [0, 0.5, 1] : niceTicks(low, high, 3);
  // What stands beside the frame has room there, whatever it says.
  const names = endNames(svg, spec, yAt, edge.top, height - edge.bottom, width / 4);
  const floors = (spec.floors || []).filter(({ nats }) => yAt(nats) >= edge.top - 1 && yAt(nats) <= height - edge.bottom);
  const letters = floorLetters(floors, yAt);
  edge.left = Math.max(edge.left, ...ticks.map((tick) => widthOf(svg, brief(tick)) + 9));
  // Letters of floors have a strip of their own at the edge, where no curve and no seed comes.
  const strip = Math.max(0, ...letters.map(({ text }) => widthOf(svg, text, "floor-name") + 6));
  edge.right = Math.max(edge.right, ...names.map((name) => name.width + 7 + strip));
  if (strip) edge.right = Math.max(edge.right, strip + 4);
  const xAt = (x) => edge.left + ((x - xLow) / (xHigh - xLow)) * (width - edge.left - edge.right);
  for (const tick of ticks) {
    svg.append(shape("line", { class: "gridline", x1: edge.left, x2: width - edge.right, y1: yAt(tick), y2: yAt(tick) }));
    svg.append(shape("text", { x: edge.left - 7, y: yAt(tick) + 4, "text-anchor": "end" }, brief(tick)));
  }
  for (const tick of spec.xTicks || niceTicks(xLow, xHigh, width < 300 ? 3 : 4)) {
    svg.append(shape("text", { x: xAt(tick), y: height - 6, "text-anchor": "middle" }, spec.xName ? spec.xName(tick) : brief(tick)));
  }
  for (const floor of floors) {
    svg.append(shape("line", { class: "floor", x1: edge.left, x2: width - edge.right, y1: yAt(floor.nats), y2: yAt(floor.nats) }));
  }
  for (const { text, y } of letters) svg.append(shape("text", { class: "floor-name", x: width - 1, y, "text-anchor": "end" }, text));
  if (floors.length) chart.append(floorList(floors));
  for (const line of spec.series) {
    let path = "", pen = "M";
    line.values.forEach((v, i) => {
      if (v === null || (spec.log && v <= 0)) { pen = "M"; return; }
      path += `${pen}${xAt(xs[i]).toFixed(1)} ${yAt(v).toFixed(1)}`;
      pen = "L";
      if (spec.dots) svg.append(shape("circle", { class: `dot ${line.kind}`, "data-run": line.run, cx: xAt(xs[i]), cy: yAt(v), r: 2.6 }));
    });
    svg.append(shape("path", { class: `line ${line.kind}`, "data-run": line.run, d: path }));
  }
  for (const name of names) {
    const text = shape("text", { class: "seed-name", x: width - edge.right + 5, y: name.y }, name.text);
    text.append(shape("title", {}, name.seeds.join(", ")));
    svg.append(text);
  }
  const lead = spec.series.filter((s) => s.kind === spec.series[0].kind);
  const ends = lead.map((s) => `${s.seed} ${spec.format(lastKnown(s.values))}`);
  svg.setAttribute("aria-label", `${spec.title}: ${lead[0].name} at the end, ${ends.join(", ")}`);
  readout(svg, key, spec, xAt, edge, height);
}

function lastKnown(numbers) {
  return numbers.reduce((last, v) => (v === null ? last : v), null);
}

// A floor is named by a letter beside its own line; letters that would overlap stand as one word.
const floorLetter = (i) => String.fromCharCode(97 + i);

function floorLetters(floors, yOf) {
  const places = [];
  floors.map((floor, i) => ({ y: yOf(floor.nats), letter: floorLetter(i) })).sort((a, b) => a.y - b.y).forEach(({ y, letter }) => {
    const last = places[places.length - 1];
    if (last && y - last.low < 13) Object.assign(last, { low: y, text: `${last.text} ${letter}` });
    else places.push({ high: y, low: y, text: letter });
  });
  return places.map(({ high, low, text }) => ({ text, y: (high + low) / 2 + 4 }));
}

function floorList(floors) {
  return element("p", { class: "floor-names" }, `Dotted, floors of the loss: ${floors.map((floor, i) => `${floorLetter(i)}\u00a0${floor.name} ${floor.nats.toFixed(2)}`).join(", ")}.`);
}

// Names of lines at their ends: those that would overlap are joined, and joined ones that would be
// wider than `most` are counted. All of them stand in the list, the table and the chart's label.
function endNames(svg, spec, yAt, top, bottom, most) {
  const lead = spec.series.filter((s) => s.kind === spec.series[0].kind && lastKnown(s.values) !== null);
  if (lead.length < 2 || lead.length > MOST_NAMED || spec.log && lead.some((s) => lastKnown(s.values) <= 0)) return [];
  const ends = lead.map((s) => ({ ...s, y: Math.min(Math.max(yAt(lastKnown(s.values)) + 4, top), bottom) }));
  ends.sort((a, b) => b.y - a.y);
  const places = [];
  for (const end of ends) {
    const last = places[places.length - 1];
    if (last && last.y - end.y < 13) last.all.push(end);
    else places.push({ y: end.y, all: [end] });
  }
  return places.map(({ y, all }) => {
    all.sort((a, b) => a.short.localeCompare(b.short, "en", { numeric: true }));
    const joined = all.map((s) => s.short).join(" ");
    const fits = widthOf(svg, joined, "seed-name") <= most;
    const text = fits ? joined : all.length === lead.length ? (all.length === 2 ? "both" : `all ${all.length}`) : `${all.length} lines`;
    return { y, text, width: widthOf(svg, text, "seed-name"), seeds: all.map((s) => s.seed) };
  });
}

function valuesAt(lead, spec, i) {
  if (lead.length <= MOST_NAMED) return lead.map((s) => `${s.listed ? s.short : s.seed} ${spec.format(s.values[i])}`).join(" · ");
  const known = lead.map((s) => s.values[i]).filter((v) => v !== null);
  return known.length ? `${known.length} runs, ${spec.format(Math.min(...known))} to ${spec.format(Math.max(...known))}` : "–";
}

function readout(svg, key, spec, xAt, edge, height) {
  const kept = [...key.childNodes];
  const cursor = shape("line", { class: "cursor", y1: edge.top, y2: height - edge.bottom, visibility: "hidden" });
  svg.append(cursor);
  const lead = spec.series.filter((s) => s.kind === spec.series[0].kind);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const near = spec.x.reduce((best, at, i) => (Math.abs(xAt(at) - x) < Math.abs(xAt(spec.x[best]) - x) ? i : best), 0);
    cursor.setAttribute("x1", xAt(spec.x[near]));
    cursor.setAttribute("x2", xAt(spec.x[near]));
    cursor.setAttribute("visibility", "visible");
    key.replaceChildren(element("span", {}, `${spec.xWord} ${spec.xName ? spec.xName(spec.x[near]) : brief(spec.x[near])}: ${valuesAt(lead, spec, near)}`));
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    key.replaceChildren(...kept);
  });
}

// Rows of a histogram; the chart says where there are more runs.
const MOST_ROWS = 5;

// rows: [{run, seed, short, listed, bars: [[shift, n]]}]; the bars of one row share one line.
function histogram(chart, spec) {
  const n_runs = spec.rows.length;
  spec = { ...spec, rows: spec.rows.slice(0, MOST_ROWS) };
  const width = Math.max(chart.clientWidth, 240), height = 190;
  const edge = { left: 10, right: 10, top: 8, bottom: 24 };
  const answers = [["composed", spec.composed], ["mirrored", spec.mirrored]].filter(([, shift]) => shift !== null);
  const kindOf = (shift) => (shift === spec.composed ? "composed" : shift === spec.mirrored ? "mirrored" : "third");
  const legend = answers.map(([kind, shift]) => [kind, `${kind}, key ${signed(shift)}`]);
  if (spec.rows.some((row) => row.bars.some(([shift, n]) => n > 0 && kindOf(shift) === "third"))) legend.push(["third", answers.length ? "another answer" : "any answer"]);
  const key = element("div", { class: "key" }, ...legend.map(([kind, words]) => {
    const swatch = shape("svg", { viewBox: "0 0 20 8", "aria-hidden": "true" });
    swatch.append(shape("rect", { class: `bar ${kind}`, x: 8, y: 0, width: 8, height: 8, rx: 1.5 }));
    return element("span", {}, swatch, words);
  }), answers.length < 2 ? element("span", {}, spec.note) : "", n_runs > MOST_ROWS ? element("span", {}, `The first ${MOST_ROWS} of ${n_runs} runs.`) : "");
  const svg = framed(chart, spec.title, key, width, height);
  const shifts = spec.rows.flatMap((row) => row.bars.filter((bar) => bar[1] > 0).map((bar) => bar[0]));
  if (!shifts.length) {
    svg.append(shape("text", { x: edge.left, y: height / 2 }, "No answers are stored for this pair."));
    return;
  }
  const named = [spec.composed, spec.mirrored].filter((s) => s !== null);
  const low = Math.min(...shifts, ...named) - 1, high = Math.max(...shifts, ...named) + 1;
  const slot = (width - edge.left - edge.right) / (high - low + 1);
  const xAt = (shift) => edge.left + (shift - low + 0.5) * slot;
  const room = (height - edge.top - edge.bottom) / spec.rows.length;
  spec.rows.forEach((row, place) => {
    const base = edge.top + room * (place + 1);
    const total = row.bars.reduce((sum, bar) => sum + bar[1], 0) || 1;
    svg.append(shape("line", { class: "gridline", x1: edge.left, x2: width - edge.right, y1: base, y2: base }));
    if (spec.rows.length > 1) svg.append(shape("text", { class: "row-name", x: width - edge.right, y: base - room + 14, "text-anchor": "end" }, nameOf(svg, row, width / 2)));
    for (const [shift, n] of row.bars) {
      const tall = (n / total) * (room - 8);
      if (tall < 0.3) continue;
      const wide = Math.min(Math.max(slot - 1, 1.5), 12);
      const bar = shape("rect", { class: `bar ${kindOf(shift)}`, "data-run": row.run, x: xAt(shift) - wide / 2, y: base - tall, width: wide, height: tall, rx: Math.min(1.5, wide / 2) });
      bar.append(shape("title", {}, `key ${signed(shift)}: ${share(n / total)}`));
      svg.append(bar);
    }
  });
  for (const tick of niceTicks(low, high, Math.floor(width / 70))) {
    if (tick >= low && tick <= high) svg.append(shape("text", { x: xAt(tick), y: height - 6, "text-anchor": "middle" }, signed(tick)));
  }
  const tops = spec.rows.map((row) => {
    const top = row.bars.reduce((best, bar) => (bar[1] > best[1] ? bar : best), [0, 0]);
    return `${row.seed} most often key ${signed(top[0])}`;
  });
  svg.setAttribute("aria-label", `${spec.title}: ${tops.join(", ")}`);
}

// The seed, or the number that stands for it in the list above the charts where it takes more room.
function nameOf(svg, row, most) {
  return row.listed ? row.short : widthOf(svg, row.seed) <= most ? row.seed : row.short;
}

function signed(number) {
  return number > 0 ? `+${number}` : number < 0 ? `−${-number}` : "0";
}
