// The throughput page: pickers, three charts, and the table behind each. Data come from ale-velocity/data/*.js,
// written by ale_velocity.site.data; the state of the pickers lives in the address.
"use strict";

const DATA = "ale-velocity/data/";
const ALL = "all";

// Pickers that choose a data file, in the order in which a choice narrows what the later ones offer.
const FILE_PICKERS = [
  ["benchmark", "Agent and learner"],
  ["game", "Game"],
  ["series", "Series"],
  ["machine", "Machine"],
  ["protocol", "Protocol"],
  ["device", "Device"],
  ["torch_threads", "Torch threads"],
  ["python", "Python"],
];
// These are shown even where there is nothing to choose.
const ALWAYS_SHOWN = ["benchmark", "game", "series", "machine", "protocol", "release"];

// Okabe and Ito's colours, which colour-blind readers can tell apart; their green and red are left to verdicts.
const LOOP_COLOURS = { step: "#0072b2", send_recv: "#e69f00", torch_ops: "#cc79a7", double_buffer: "#56b4e9", quarter_batches: "#009e73" };
const DARK_LOOP_COLOURS = { ...LOOP_COLOURS, step: "#4a9fe0" };
const OTHER_COLOURS = ["#8c8c8c", "#b0a000", "#7f6fd0", "#a05a2c"];
const SYMBOLS = ["circle", "square", "diamond", "cross", "x", "star", "hexagon"];

const aleVelocity = (() => {
  const waiting = new Map();

  // Called by every data file.
  function receive(name, data) {
    if (name === "index") {
      start(data);
    } else {
      waiting.get(name).resolve(data);
    }
  }

  function load(name) {
    if (!waiting.has(name)) {
      const entry = {};
      entry.promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
      waiting.set(name, entry);
      const script = document.createElement("script");
      script.src = `${DATA}${name}.js`;
      script.onerror = () => entry.reject(new Error(`${script.src} could not be loaded`));
      document.head.append(script);
    }
    return waiting.get(name).promise;
  }

  return { receive, load };
})();

let index;
let drawing = 0; // the number of the newest drawing: an older one that is still loading gives up

function start(data) {
  index = data;
  if (index.files.length === 0) {
    giveUp("There are no results yet: run asv, then publish again.");
    return;
  }
  for (const button of document.querySelectorAll("button[data-action]")) {
    button.addEventListener("click", () => ACTIONS[button.dataset.action](button.closest("section")));
  }
  addEventListener("hashchange", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

// ---- state -----------------------------------------------------------------------------------------------------

function readState() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function writeState(state) {
  history.replaceState(null, "", `#${new URLSearchParams(state)}`);
}

// Returns { file, pickers }: the data file that fits the state best, and what each picker offers on the way to it.
function chooseFile(state) {
  let candidates = index.files;
  const pickers = [];
  for (const [field, label] of FILE_PICKERS) {
    const options = unique(candidates.map((file) => file[field])).sort(natural);
    const value = options.includes(state[field]) ? state[field] : preferred(field, options, candidates);
    candidates = candidates.filter((file) => file[field] === value);
    pickers.push({ field, label, options, value, name: field === "benchmark" ? benchmarkName : String });
  }
  return { file: candidates[0], pickers };
}

// What is shown first: a training loop rather than a ceiling, and of anything else what has most results.
function preferred(field, options, candidates) {
  const measured = (option) =>
    candidates.filter((file) => file[field] === option).reduce((sum, file) => sum + file.measured, 0);
  const isTraining = (option) =>
    field === "benchmark" && /training/i.test(option) && index.benchmarks[option].unit === "env-steps/s";
  return [...options].sort((a, b) => isTraining(b) - isTraining(a) || measured(b) - measured(a))[0];
}

// ---- drawing ---------------------------------------------------------------------------------------------------

async function draw() {
  const mine = ++drawing;
  const charts = document.getElementById("charts");
  charts.setAttribute("aria-busy", "true");
  const state = readState();
  const { file, pickers } = chooseFile(state);
  const ceilings = index.files.filter((other) => isCeilingOf(other, file));
  let curves, limits;
  try {
    curves = readCurves(await aleVelocity.load(String(file.file)));
    limits = await Promise.all(ceilings.map(async (other) => readCurves(await aleVelocity.load(String(other.file)))));
  } catch (error) {
    giveUp(error.message);
    return;
  }
  if (mine !== drawing) {
    return;
  }

  const series = index.series.find((one) => one.name === file.series);
  curves = narrow(curves, state, pickers);
  const release = pickRelease(curves, series, state, pickers);
  const count = pickCount(curves, state, pickers);
  showPickers(pickers);
  writeState(Object.fromEntries(pickers.map((picker) => [picker.field, picker.value])));

  const view = { file, series, curves, release, count, benchmark: index.benchmarks[file.benchmark], colours: theme() };
  view.limits = ceilings.map((other, i) => ({
    label: benchmarkName(other.benchmark),
    dash: /Learner/.test(other.benchmark) ? "dot" : "dash",
    curves: limits[i],
  }));
  say("");
  charts.hidden = false;
  for (const drawChart of [drawThroughput, drawSpeedup, drawTrend]) {
    drawChart(view);
    await new Promise((resolve) => setTimeout(resolve)); // show it before the next one is made
    if (mine !== drawing) {
      return;
    }
  }
  charts.setAttribute("aria-busy", "false");
}

// The emulator limits every loop, the learner alone is the eager DQN loop's.
function isCeilingOf(other, file) {
  const alike = FILE_PICKERS.every(([field]) => field === "benchmark" || other[field] === file[field]);
  const unit = (one) => index.benchmarks[one.benchmark].unit;
  const limits = /\.DqnTraining\./.test(file.benchmark) ? /\.(Emulator|Learner)Only\./ : /\.EmulatorOnly\./;
  return alike && other !== file && limits.test(other.benchmark) && unit(other) === unit(file);
}

// Returns the curves of a data file: lines that differ in num_envs only, as { label, params, constants, cells },
// where cells are { n, rows } with rows by position of the release.
function readCurves({ lines, reasons }) {
  const curves = new Map();
  for (const line of lines) {
    const { num_envs: n, ...params } = line.params;
    const label = Object.values(params).join(", ") || "rate";
    if (!curves.has(label)) {
      curves.set(label, { label, params, constants: line.constants, cells: [] });
    }
    const rows = new Map(line.rows.map((row) => [row[0], namedRow(row, reasons)]));
    curves.get(label).cells.push({ n: Number(n), rows });
  }
  for (const curve of curves.values()) {
    curve.cells.sort((a, b) => a.n - b.n);
  }
  return [...curves.values()];
}

function namedRow(row, reasons) {
  const named = Object.fromEntries(index.columns.map((name, i) => [name, row[i] ?? null]));
  named.verdict = index.verdicts[named.verdict];
  named.reason = reasons[named.reason ?? 0];
  return named;
}

// Offers a picker for each parameter besides loop and num_envs (the learner, for example), and applies it.
function narrow(curves, state, pickers) {
  const names = unique(curves.flatMap((curve) => Object.keys(curve.params))).filter((name) => name !== "loop");
  for (const name of names) {
    const options = [...unique(curves.map((curve) => curve.params[name])).sort(natural), ALL];
    const value = options.includes(state[name]) ? state[name] : ALL;
    pickers.push({ field: name, label: name[0].toUpperCase() + name.slice(1), options, value, name: String });
    curves = value === ALL ? curves : curves.filter((curve) => curve.params[name] === value);
  }
  return curves;
}

function pickRelease(curves, series, state, pickers) {
  const known = unique(curves.flatMap((curve) => curve.cells.flatMap((cell) => [...cell.rows.keys()])));
  const measured = known.filter((release) =>
    curves.some((curve) => curve.cells.some((cell) => isMeasured(cell.rows.get(release))))
  );
  const options = known.sort((a, b) => b - a).map((position) => series.releases[position].version);
  const newest = series.releases[Math.max(...(measured.length ? measured : known))].version;
  const value = options.includes(state.release) ? state.release : newest;
  pickers.push({ field: "release", label: "Release", options, value, name: String });
  return series.releases.findIndex((release) => release.version === value);
}

function pickCount(curves, state, pickers) {
  const counts = (wanted) =>
    unique(curves.flatMap((curve) => curve.cells.filter(wanted).map((cell) => cell.n))).sort((a, b) => a - b);
  const measured = counts((cell) => [...cell.rows.values()].some(isMeasured));
  const options = (measured.length ? measured : counts(() => true)).map(String);
  const value = options.includes(state.envs) ? state.envs : options[Math.floor(options.length / 2)];
  pickers.push({ field: "envs", label: "Envs in the trend", options, value, name: String });
  return Number(value);
}

function showPickers(pickers) {
  const form = document.getElementById("pickers");
  const focused = document.activeElement?.name;
  form.replaceChildren(
    ...pickers
      .filter((picker) => picker.options.length > 1 || ALWAYS_SHOWN.includes(picker.field))
      .map((picker) => {
        const select = element("select", { name: picker.field });
        for (const option of picker.options) {
          select.append(element("option", { value: option, text: picker.name(option) }));
        }
        select.value = picker.value;
        select.addEventListener("change", () => {
          writeState({ ...readState(), [picker.field]: select.value });
          draw();
        });
        return element("label", { text: picker.label }, select);
      })
  );
  form.elements[focused]?.focus();
}

function drawThroughput(view) {
  const section = document.getElementById("throughput");
  const { unit, direction } = view.benchmark;
  const release = view.series.releases[view.release];
  const hasFrames = unit === "env-steps/s";
  const traces = [];
  const frames = hasFrames ? ["frames/s"] : [];
  const counts = ["median", "updates/env-step", "processes", "windows"];
  const table = [["loop", "envs", unit, "±", ...frames, ...counts, "verdict", "why"]];
  const means = [];
  for (const [i, curve] of view.curves.entries()) {
    const points = measuredPoints(curve, view.release);
    const colour = loopColour(view, curve, i);
    traces.push(...band(points, colour), {
      ...line(curve.label, points.map((p) => p.n), points.map((p) => p.row.mean), colour, i),
      text: points.map((p) => hover(curve.label, p, unit, hasFrames)),
    });
    means.push(...points.map((p) => p.row.mean));
    for (const { n, rows } of curve.cells) {
      const row = rows.get(view.release);
      if (row) {
        const frameRate = hasFrames ? [row.mean && row.mean * index.frameskip] : [];
        const facts = [row.median, row.updates, row.processes, row.windows];
        table.push([curve.label, n, row.mean, row.half_width, ...frameRate, ...facts, verdictText(row, view), row.reason]);
      }
    }
  }
  for (const [i, limit] of view.limits.entries()) {
    const points = fastest(limit.curves, view.release);
    traces.push({
      ...line(`${limit.label} (ceiling)`, points.map((p) => p.n), points.map((p) => p.row.mean), view.colours.quiet, i),
      line: { dash: limit.dash, color: view.colours.quiet, width: 2 },
      text: points.map((p) => hover(`${limit.label}, ${p.label}`, p, unit, hasFrames)),
    });
    means.push(...points.map((p) => p.row.mean));
  }
  const envs = countsOf([...view.curves, ...view.limits.flatMap((limit) => limit.curves)]);
  caption(section, `${view.series.name} ${release.version}, ${direction}; bands are 95% intervals, both axes logarithmic.`);
  plot(section, view, traces, means.length > 0, {
    xaxis: { title: { text: "number of envs" }, type: "log", tickvals: envs, ticktext: envs.map(String) },
    // From the means, since an interval may reach below zero, which a logarithmic axis cannot show.
    yaxis: { title: { text: `${unit} (${direction})` }, type: "log", range: logRange(means), ...LOG_TICKS },
  });
  showMissing(section, view);
  showTable(section, table);
  section.dataset.name = fileName(view, `throughput-${release.version}`);
  section.constants = chartConstants(view);
}

function drawSpeedup(view) {
  const section = document.getElementById("speedup");
  const traces = [];
  const table = [["loop", "envs", "ratio", "low", "high"]];
  for (const [i, curve] of view.curves.entries()) {
    const base = view.curves.find((other) => isStepOf(other, curve));
    if (!base || base === curve) {
      continue;
    }
    const bases = new Map(measuredPoints(base, view.release).map((p) => [p.n, p.row]));
    const points = measuredPoints(curve, view.release)
      .filter((p) => bases.has(p.n))
      .map((p) => ({ n: p.n, ...ratio(p.row, bases.get(p.n)) }));
    const colour = loopColour(view, curve, i);
    traces.push({
      ...line(curve.label, points.map((p) => p.n), points.map((p) => p.ratio), colour, i),
      error_y: {
        type: "data",
        symmetric: false,
        array: points.map((p) => p.high - p.ratio),
        arrayminus: points.map((p) => p.ratio - p.low),
        color: colour,
        thickness: 1.5,
      },
      text: points.map((p) => `${safe(curve.label)}, ${envsInWords(p.n)}: ${p.ratio.toFixed(3)}× step`),
    });
    table.push(...points.map((p) => [curve.label, p.n, p.ratio.toFixed(4), p.low.toFixed(4), p.high.toFixed(4)]));
  }
  const envs = countsOf(view.curves);
  caption(section, "Rate of a loop divided by that of step with as many envs; the interval follows from both rates'.");
  plot(section, view, traces, table.length > 1, {
    xaxis: { title: { text: "number of envs" }, type: "log", tickvals: envs, ticktext: envs.map(String) },
    yaxis: { title: { text: "speed-up over step" } },
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: view.colours.quiet, dash: "dot" } }],
  });
  section.querySelector(".missing").textContent = table.length > 1 ? "" : "Needs step and another loop, both measured.";
  showTable(section, table);
  section.dataset.name = fileName(view, "speedup");
}

function drawTrend(view) {
  const section = document.getElementById("trend");
  const { unit, direction } = view.benchmark;
  const { releases } = view.series;
  const traces = [];
  const steps = [["Change", "Loop", "From", "To", "Release notes"]];
  const table = [["release", "date", "loop", unit, "±", "verdict", "why"]];
  const marks = [];
  // Many releases leave little room for each.
  const [size, thickness, width] = releases.length > 40 ? [4, 0.7, 0] : [8, 1.5, 4];
  for (const [i, curve] of view.curves.entries()) {
    const rows = curve.cells.find((cell) => cell.n === view.count)?.rows ?? new Map();
    const points = releases.map((release, position) => ({ release, position, row: rows.get(position) }));
    const value = (p, field) => (isMeasured(p.row) ? p.row[field] : null);
    const colour = loopColour(view, curve, i);
    traces.push({
      ...line(curve.label, points.map((p) => p.position), points.map((p) => value(p, "mean")), colour, i, size),
      error_y: { type: "data", array: points.map((p) => value(p, "half_width")), color: colour, thickness, width },
      text: points.map((p) => `${safe(curve.label)}, ${safe(p.release.name)}: ${rate(value(p, "mean"))} ± ${rate(value(p, "half_width"))} ${unit}`),
    });
    for (const p of points.filter((one) => one.row)) {
      table.push([link(p.release.page, p.release.version), p.release.date, curve.label, p.row.mean, p.row.half_width, verdictText(p.row, view), p.row.reason]);
      if (["faster", "slower"].includes(p.row.verdict)) {
        const gain = p.row.verdict === "faster";
        marks.push({ x: p.position, y: p.row.mean, gain, text: `${gain ? "▲" : "▼"} ${percent(p.row.ratio)}` });
        const before = releases[p.row.before];
        const notes = p.release.notes ? link(p.release.notes, "notes") : "";
        steps.push([verdictText(p.row, view), curve.label, link(before.page, before.version), link(p.release.page, p.release.version), notes]);
      }
    }
  }
  if (marks.length) {
    traces.push(stepTrace(marks, view.colours));
  }
  const every = Math.ceil(releases.length / (section.clientWidth / 110));
  const ticks = releases.map((_, position) => position).filter((position) => position % every === 0);
  caption(section, `${view.series.package} with ${envsInWords(view.count)}, in order of version; bars are 95% intervals, ${direction}.`);
  plot(section, view, traces, table.some((row, i) => i && row[3] !== null), {
    xaxis: {
      title: { text: `release of ${safe(view.series.package)}` },
      tickvals: ticks,
      ticktext: ticks.map((position) => `${safe(releases[position].version)}<br>${releases[position].date}`),
      range: [-0.5, releases.length - 0.5],
    },
    yaxis: { title: { text: `${unit} (${direction})` }, rangemode: "tozero", tickformat: ",~r" },
  });
  section.querySelector(".missing").textContent = "";
  const stepTable = steps.length > 1 ? tableElement(steps) : element("p", { text: "No step between neighbouring releases." });
  section.querySelector(".steps").replaceChildren(stepTable);
  showTable(section, table);
  section.dataset.name = fileName(view, `trend-${view.count}-envs`);
}

// ---- parts of charts -------------------------------------------------------------------------------------------

const LOG_TICKS = { tickformat: ",~r", dtick: "D2" };

function line(name, x, y, color, i, size = 8) {
  return {
    name: safe(name),
    x,
    y,
    mode: "lines+markers",
    hovertemplate: "%{text}<extra></extra>",
    line: { color, width: 2 },
    marker: { color, size, symbol: SYMBOLS[i % SYMBOLS.length] },
  };
}

// The interval as a band: an invisible upper edge, and a lower one that fills up to it.
function band(points, colour) {
  const x = points.map((p) => p.n);
  const edge = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
  const low = points.map((p) => Math.max(p.row.mean - p.row.half_width, p.row.mean / 100));
  return [
    { ...edge, y: points.map((p) => p.row.mean + p.row.half_width) },
    { ...edge, y: low, fill: "tonexty", fillcolor: `${colour}33` },
  ];
}

// Triangles on the steps; where several curves step at once, only the outermost are labelled, outwards.
function stepTrace(marks, colours) {
  const others = (mark) => marks.filter((other) => other.x === mark.x && other !== mark);
  const isTop = (mark) => others(mark).every((other) => other.y < mark.y);
  const isBottom = (mark) => others(mark).every((other) => other.y > mark.y);
  return {
    name: "step: ▲ faster, ▼ slower",
    x: marks.map((mark) => mark.x),
    y: marks.map((mark) => mark.y),
    text: marks.map((mark) => (isTop(mark) || isBottom(mark) ? mark.text : "")),
    textposition: marks.map((mark) => (isTop(mark) ? "top center" : "bottom center")),
    mode: marks.length > 12 || isPhone() ? "markers" : "markers+text", // the steps are listed below as well
    hoverinfo: "skip",
    marker: {
      symbol: marks.map((mark) => (mark.gain ? "triangle-up" : "triangle-down")),
      color: marks.map((mark) => (mark.gain ? colours.gain : colours.loss)),
      size: 13,
    },
    cliponaxis: false,
  };
}

function plot(section, view, traces, hasData, layout) {
  const chart = section.querySelector(".chart");
  chart.hidden = !hasData;
  if (!hasData) {
    Plotly.purge(chart);
    return;
  }
  const { text, quiet, edge, page } = view.colours;
  const axis = { gridcolor: edge, linecolor: quiet, zerolinecolor: edge, automargin: true, fixedrange: isPhone() };
  const whole = {
    ...layout,
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis, title: { ...layout.yaxis.title, standoff: 12 } },
    paper_bgcolor: page,
    plot_bgcolor: page,
    font: { color: text, family: "system-ui, sans-serif", size: isPhone() ? 11 : 13 },
    legend: { traceorder: "normal", orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    margin: { l: 10, r: 10, t: 10, b: 10 },
    hoverlabel: { bgcolor: page, font: { color: text } },
    hovermode: "closest",
  };
  chart.setAttribute("aria-label", `${section.querySelector("h2").textContent}; the same numbers are in the table below`);
  Plotly.react(chart, traces, whole, { responsive: true, displaylogo: false, displayModeBar: false });
}

function hover(label, { n, row }, unit, hasFrames) {
  const frames = hasFrames ? `<br>${rate(row.mean * index.frameskip)} frames/s` : "";
  const updates = row.updates ? `<br>${rate(row.updates)} updates/env-step` : "";
  return `${safe(label)}, ${envsInWords(n)}<br>${rate(row.mean)} ± ${rate(row.half_width)} ${unit}${frames}${updates}`;
}

function loopColour(view, curve, i) {
  const palette = view.colours.isDark ? DARK_LOOP_COLOURS : LOOP_COLOURS;
  const sameLoop = view.curves.slice(0, i).some((other) => other.params.loop === curve.params.loop);
  return (!sameLoop && palette[curve.params.loop]) || OTHER_COLOURS[i % OTHER_COLOURS.length];
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const names = ["page", "text", "quiet", "edge", "gain", "loss"];
  const colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  return { ...colours, isDark: matchMedia("(prefers-color-scheme: dark)").matches };
}

function logRange(values) {
  return values.length ? [Math.log10(Math.min(...values) / 1.5), Math.log10(Math.max(...values) * 1.5)] : undefined;
}

// ---- numbers ---------------------------------------------------------------------------------------------------

function isMeasured(row) {
  return row !== undefined && row.mean !== null;
}

function measuredPoints(curve, release) {
  return curve.cells.map(({ n, rows }) => ({ n, row: rows.get(release) })).filter((p) => isMeasured(p.row));
}

function envsInWords(n) {
  return n === 1 ? "1 env" : `${n} envs`;
}

// The fastest of several curves for each number of envs.
function fastest(curves, release) {
  const best = new Map();
  for (const curve of curves) {
    for (const point of measuredPoints(curve, release)) {
      if (!best.has(point.n) || best.get(point.n).row.mean < point.row.mean) {
        best.set(point.n, { ...point, label: curve.label });
      }
    }
  }
  return [...best.values()].sort((a, b) => a.n - b.n);
}

function countsOf(curves) {
  return unique(curves.flatMap((curve) => curve.cells.map((cell) => cell.n))).sort((a, b) => a - b);
}

function isStepOf(other, curve) {
  const names = Object.keys(curve.params).filter((name) => name !== "loop");
  return other.params.loop === "step" && names.every((name) => other.params[name] === curve.params[name]);
}

// The interval of a ratio of two independent rates: their relative half-widths add as squares, on a log scale.
function ratio(row, base) {
  const middle = row.mean / base.mean;
  const spread = Math.exp(Math.hypot(row.half_width / row.mean, base.half_width / base.mean));
  return { ratio: middle, low: middle / spread, high: middle * spread };
}

function chartConstants(view) {
  return view.curves
    .map((curve) => {
      const points = measuredPoints(curve, view.release).map(({ n, row }) => {
        const [thr, low, high] = [row.mean, row.mean - row.half_width, row.mean + row.half_width].map(whole);
        return `  { n: ${n}, thr: ${thr}, thr_lo: ${low}, thr_hi: ${high} },\n`;
      });
      return `const ${curve.constants} = [\n${points.join("")}];`;
    })
    .join("\n");
}

// Rounds halves to even, as Python does, so that the page and the command agree.
function whole(value) {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 ? rounded - 1 : rounded;
}

function rate(value) {
  if (value === null) {
    return "";
  }
  return value.toLocaleString("en", value < 100 ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 0 });
}

function percent(value) {
  return `${value >= 1 ? "+" : "−"}${Math.abs((value - 1) * 100).toFixed(1)}%`;
}

function verdictText(row, view) {
  if (row.ratio === null || row.verdict === "different work") {
    return row.verdict;
  }
  return `${row.verdict} ${percent(row.ratio)} since ${view.series.releases[row.before].version}`;
}

function natural(a, b) {
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function unique(values) {
  return [...new Set(values)];
}

// ---- page ------------------------------------------------------------------------------------------------------

const ACTIONS = {
  async constants(section) {
    const area = section.querySelector("textarea");
    area.value = section.constants;
    area.hidden = false;
    area.select();
    const button = section.querySelector("[data-action=constants]");
    try {
      await navigator.clipboard.writeText(area.value);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected below: press Ctrl-C"; // browsers allow copying on https and localhost only
    }
  },
  csv(section) {
    const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const text = section.rows.map((row) => row.map((cell) => quote(String(cell?.textContent ?? cell ?? ""))).join(",")).join("\n");
    const address = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/csv" }));
    element("a", { href: address, download: `${section.dataset.name}.csv` }).click();
    URL.revokeObjectURL(address);
  },
  png(section) {
    const size = { format: "png", width: 1200, height: 675, scale: 2 };
    Plotly.downloadImage(section.querySelector(".chart"), { ...size, filename: section.dataset.name });
  },
};

// The table is built when it is opened: with 200 releases it takes longer than the chart.
function showTable(section, rows) {
  section.rows = rows;
  const details = section.querySelector("details:last-of-type");
  const fill = () => details.querySelector(".scroll").replaceChildren(...(details.open ? [tableElement(rows)] : []));
  details.ontoggle = fill;
  fill();
}

function tableElement([head, ...rows]) {
  const table = element("table");
  table.createTHead().append(element("tr", {}, ...head.map((text) => element("th", { text, scope: "col" }))));
  const body = table.createTBody();
  for (const row of rows) {
    body.append(element("tr", {}, ...row.map(tableCell)));
  }
  return table;
}

function tableCell(value) {
  if (value instanceof Node) {
    return element("td", {}, value);
  }
  if (typeof value === "number") {
    return element("td", { text: rate(value), class: "number" });
  }
  const word = /^(faster|slower|failed)\b/.exec(value ?? "");
  const text = element("span", { text: value ?? "", class: word ? `verdict ${word[1]}` : "" });
  return element("td", { class: (value ?? "").length > 40 ? "why" : "" }, text);
}

// Says in words which cells of the release have no number: "failed: step 64, 128. n/a: send_recv 256".
function showMissing(section, view) {
  const words = new Map();
  for (const curve of view.curves) {
    for (const { n, rows } of curve.cells) {
      const row = rows.get(view.release);
      if (!isMeasured(row)) {
        const word = row ? row.verdict : "not measured";
        const counts = words.get(word) ?? words.set(word, new Map()).get(word);
        counts.set(curve.label, [...(counts.get(curve.label) ?? []), n]);
      }
    }
  }
  section.querySelector(".missing").textContent = [...words]
    .map(([word, counts]) => `${word}: ${[...counts].map(([label, n]) => `${label} ${n.join(", ")}`).join("; ")}`)
    .join(". ");
}

function caption(section, text) {
  section.querySelector(".caption").textContent = text;
}

function giveUp(reason) {
  say(reason);
  document.getElementById("charts").setAttribute("aria-busy", "false");
}

function say(text) {
  const message = document.getElementById("message");
  message.textContent = text;
  message.hidden = text === "";
}

function benchmarkName(name) {
  return index.benchmarks[name].label;
}

function fileName(view, what) {
  return ["ale-velocity", view.series.name, view.file.machine, what].join("-").replaceAll(/[^\w.-]+/g, "_");
}

function isPhone() {
  return matchMedia("(max-width: 40rem)").matches;
}

function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) {
    made.textContent = text;
  }
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function link(address, text) {
  return element("a", { href: address, text });
}

// Plotly reads a little HTML in its texts; names are not HTML.
function safe(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
