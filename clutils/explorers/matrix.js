import { compare, effective, gate, loss, normal, softmax } from "./losses.js";
import { Chart, bar, begin, dragged, explore, keys, mark, named, settingsOf, spot, svg } from "./shell.js";
import { equals, html, number, percent, put, random } from "./tools.js";

const LEVELS = 12, SIDE = 262, LEFT = 34, TOP = 26;

function embeddings({ pictures: B, dimensions, classes, learned, seed }) { // 2B unit vectors, view 1 first
  const draw = random(seed + 1), unit = (z) => { const r = Math.hypot(...z); return z.map((v) => v / r); };
  const point = () => unit(Array.from({ length: dimensions }, draw.normal));
  const centres = Array.from({ length: 8 }, point), of = [], all = [];
  for (let i = 0; i < B; i++) of.push(unit(point().map((v, d) => v + 0.8 * centres[i % classes][d])));
  for (let a = 0; a < 2 * B; a++) all.push(unit(point().map((v, d) => (1 - learned) * v + learned * of[a % B][d])));
  return all;
}

// Every anchor's row: similarities, shares of the softmax, gate, forces
function rows(app) {
  const { state } = app, B = batch(app), p = settingsOf(app, "loss"), cosines = app.data.pairs.tables[state.pairs];
  const opposite = cosines || app.data.losses[state.loss].opposite; // of pairs taken one way, view 2 has the same from its side
  const z = cosines ? [...cosines, ...cosines] : embeddings(state); // images, then sentences: two of one kind are not compared
  const S = z.map((a, i) => z.map((b, j) => (!cosines ? a.reduce((sum, v, d) => sum + v * b[d], 0)
    : i < B === j < B ? null : cosines[Math.min(i, j)][Math.max(i, j) - B] / 1000)));
  const pairs = Array.from({ length: B }, (_, i) => S[i][i + B]);
  return S.map((row, a) => {
    const own = a < B ? a + B : a - B;
    const others = row.map((_, b) => b).filter((b) => b % B !== a % B && (!opposite || a < B !== b < B));
    const s = [row[own]], n = others.map((b) => row[b]), found = loss(state.loss, p, s, n, null, pairs);
    const t = found.temperature, soft = t > 0 && isFinite(t), both = soft ? softmax([...s, ...n], null, (x) => x / t).share : null;
    const force = row.map(() => null), shares = row.map(() => null);
    force[own] = -found.pull[0];
    others.forEach((b, j) => { force[b] = found.push[j]; if (both) shares[b] = both[j + 1]; });
    if (both) shares[own] = both[0];
    return { row, own, others, value: found.value, force, shares, K_eff: effective(found.push), W: soft ? gate(s[0], n, null, t) : null, t };
  });
}

// ---- the ruler: as clutils.anatomy.ruler ------------------------------------------------------------------

let levels = [];
function quantiles(K) { // of K evenly spaced levels, by Newton from the middle outwards; symmetric
  if (levels.length !== K) {
    levels = new Float64Array(K);
    for (let k = K >> 1, x = 0; k < K; k++) {
      for (let step = 1, round = 0; Math.abs(step) > 1e-13 && round < 30; round++)
        x += step = ((k + 0.5) / K - normal(x)) * Math.sqrt(2 * Math.PI) * Math.exp((x * x) / 2);
      levels[k] = x;
      levels[K - 1 - k] = -x;
    }
  }
  return levels;
}

function ruler(app) {
  const { state, data } = app, of = data.losses[state.loss], p = settingsOf(app, "loss");
  const queue = of.queue ? state.queue : null, B = state.batch_size;
  const K = queue ?? (of.opposite ? B - 1 : 2 * B - 2), n = queue === null ? B : queue + 1;
  const at = (s, x) => loss(state.loss, p, [s], [x], [K]).value;
  const negatives = quantiles(K).map((x) => Math.min(Math.max(state.spread * x, -1), 1));
  const found = loss(state.loss, p, [state.positive], negatives), t = found.temperature ?? 0;
  const W = gate(state.positive, negatives, null, t), is = (f, w) => Math.abs(f.pull[0] * t - w) <= 1e-9 * w;
  const trained = { value: found.value, pull: found.pull[0], K_eff: effective(found.push),
    W: is(found, W) && is(loss(state.loss, p, [0], [0], [K]), K / (K + 1)) ? W : null };
  const bound = at(1, -1 / (n - 1)), chance = at(0, 0), collapsed = at(1, 1);
  const unbounded = of.unbounded || (bound > trained.value + 1e-9 ? "at these settings the trained state has a lower value" : "");
  const best = unbounded ? null : bound, floor = unbounded ? null : Math.min(at(1, -1), bound);
  const close = best !== null && Math.abs(chance - best) <= 1e-9 * Math.max(Math.abs(chance), Math.abs(best));
  const learned = best === null || close ? null : (chance - state.value) / (chance - best), x = state.value;
  const verdict = learned === null ? "unknown" : x < floor - 1e-6 * Math.max(1, Math.abs(floor)) ? "below the floor"
    : learned < -data.near ? "above chance" : learned <= data.near ? "at chance"
    : learned < 1 - data.near ? "learning" : learned > 1 + data.past ? "below the best reachable" : "at the best reachable";
  return { K, n, chance, collapsed, best, floor, trained, unbounded, learned, verdict };
}

const four = (x) => number(x, 4);
function scaled(app, r) { // the loss as published code prints it, where the value is its chance on that scale
  const value = app.state.value, tau = settingsOf(app, "loss").temperature, candidates = Math.round(Math.exp(r.chance));
  const outside = ["above chance", "below the floor", "below the best reachable"].includes(r.verdict);
  if (!(tau > 0) || r.verdict === "at chance" || Math.abs(r.chance - Math.log(candidates)) > 1e-9 * r.chance) return "";
  for (const [name, a, b, inBatch] of app.data.scales) {
    const factor = a * tau + b, count = inBatch && r.n === app.state.batch_size ? r.n : candidates, mark = factor * Math.log(count);
    const decimals = Math.max(2, (String(value).split(".")[1] ?? "").length), off = Math.abs(value - mark);
    if (Math.abs(factor - 1) > 1e-9 && off <= Math.max(0.5 * 10 ** -decimals, outside ? 0.005 * mark : 0))
      return `as ${name}: ${four(factor)} · log ${number(count)} = ${four(mark)}.`;
  }
  return "";
}

function says(app, r) {
  const as = scaled(app, r), x = four(app.state.value), chance = `chance is ${four(r.chance)}` +
    (Math.abs(r.chance - Math.log(r.K + 1)) < 1e-9 * r.chance ? ` = log ${number(r.K + 1)}` : "");
  const other = "what was measured has another K, temperature or scale";
  if (as && r.verdict !== "learning") return `Is ${x} normal? It is at chance ${as} Embeddings do not distinguish images.`;
  return `Is ${x} normal? ${{
    unknown: `It can't be said: ${named(app, "loss")} ${r.unbounded ? "has no bound: " + r.unbounded : "is no measure of progress"}.`,
    "above chance": `It is above chance: ${chance}, so positives are less alike than negatives, or ${other}.`,
    "at chance": `It is at chance: ${chance}. Embeddings do not distinguish images.`,
    learning: `It is learning: ${percent(r.learned)} of the way from chance, ${four(r.chance)}, to the best reachable, ${four(r.best)}.`,
    "at the best reachable": `It is at the best reachable: ${four(r.best)}; ${chance}, and hardly anything is left.`,
    "below the best reachable": `It is below the best reachable: evenly spread embeddings give ${four(r.best)}, so ${other}${app.state.loss === "NTXent" && r.K === 2 * r.n - 2 ? "" : ", or another arrangement of its images suits this loss better"}.`,
    "below the floor": `It is below the floor: no similarities give less than ${four(r.floor)}, so ${other}.`,
  }[r.verdict]} With K = ${number(r.K)}, a trained state has W = ${number(r.trained.W)} and K_eff = ${number(r.trained.K_eff)}.${as && ` It is also chance ${as}`}`;
}

function drawRuler(app) {
  const r = ruler(app), root = app.rule, wide = Math.max(320, root.clientWidth || 320), left = 14, right = wide - 14;
  root.setAttribute("viewBox", `0 0 ${wide} 118`);
  root.replaceChildren();
  const marks = [["floor", r.floor], ["best reachable", r.best], ["trained", r.trained.value], ["chance", r.chance], ["collapsed", r.collapsed]].filter(([, v]) => v !== null);
  const all = [...marks.map(([, v]) => v), app.state.value], low = Math.min(...all), high = Math.max(...all);
  const X = (v) => left + ((v - low) / (high - low || 1)) * (right - left), ends = [0, 0, 0], named_ = [];
  svg("line", { x1: left, x2: right, y1: 74, y2: 74, class: "line ink" }, root);
  if (r.learned !== null) svg("path", { d: `M${X(r.chance)} 74H${X(r.best)}`, stroke: "var(--sky)", "stroke-width": 9, opacity: 0.55 }, root);
  const within = (text, x) => { // where a text about x begins, and how long it is: nothing leaves the ruler
    const length = 7.2 * text.length;
    return [Math.min(Math.max(x - length / 2, 4), wide - length - 4), length];
  };
  for (const [name, v] of marks.sort((a, b) => X(a[1]) - X(b[1]))) {
    const text = `${name} ${four(v)}`, x = X(v), [from, length] = within(text, x);
    const row = Math.max(0, ends.findIndex((end) => end < from));
    ends[row] = from + length + 8;
    svg("line", { x1: x, x2: x, y1: 46 - 16 * row + 4, y2: 80, class: "line ink thin" }, root);
    named_.push([{ x: from, y: 46 - 16 * row, class: "note clear" }, text]);
  }
  for (const [at, text] of named_) svg("text", at, root, text); // over the ticks
  const x = X(app.state.value), text = `your loss ${four(app.state.value)}`;
  svg("path", { d: mark(2, x, 88, 8), fill: "var(--red)" }, root);
  svg("text", { x: within(text, x)[0], y: 112, class: "title" }, root, text);
  app.verdict.textContent = says(app, r);
}

// ---- the matrices ----------------------------------------------------------------------------------------

class Grid { // cells in shades; marks of another shape for pulls, so that colour is not needed
  constructor(app, title, shade) {
    this.root = svg("svg", { viewBox: "0 0 340 310", role: "img" }, app.stage);
    this.title = svg("text", { x: LEFT, y: 15, class: "title" }, this.root, title);
    this.layers = [(k) => shade(k / LEVELS), (k) => shades("blue")((k + 2) / (LEVELS + 2))].map((fill) => // cells, pulls
      Array.from({ length: LEVELS + 1 }, (_, k) => svg("path", { fill: fill(k) }, this.root)));
    this.bars = svg("path", { fill: "var(--green)" }, this.root);
    this.note = svg("text", { x: 300, y: 15, class: "note" }, this.root);
    this.names = svg("g", {}, this.root);
    this.frame = svg("path", { class: "line ink thin" }, this.root);
    const pick = (e) => {
      const size = views(app), [x, y] = spot(this.root, e), row = Math.floor(((columns(app) ? x - LEFT : y - TOP) / SIDE) * size);
      if (row >= 0 && row < size) app.choose(row);
    };
    dragged(this.root, pick);
  }
  draw(app, table, bars, own) { // table: numbers from 0 to 1 or null; below 0 for pulls
    const size = table.length, cell = SIDE / size, gap = cell > 6 ? 0.6 : 0;
    const [cells, pulls] = this.layers.map((layer) => layer.map(() => ""));
    let line = "";
    table.forEach((row, a) => row.forEach((v, b) => {
      if (v === null) return;
      const x = LEFT + b * cell, y = TOP + a * cell, k = Math.min(Math.round(Math.abs(v) * LEVELS), LEVELS);
      if (v < 0) pulls[k] += mark(2, x + cell / 2, y + cell / 2, cell * 0.42);
      else cells[k] += bar(x + gap, y + gap, cell - 2 * gap, cell - 2 * gap);
    }));
    bars.forEach((w, a) => { if (w !== null) line += bar(LEFT + SIDE + 4, TOP + a * cell + 1, 36 * w, cell - 2); });
    [cells, pulls].forEach((drawn, of) => drawn.forEach((d, k) => put(this.layers[of][k], d)));
    put(this.bars, line);
    const a = app.row(), y = TOP + a * cell, x = LEFT + own[a] * cell;
    put(this.frame, (columns(app) ? bar(x, TOP - 1, cell, SIDE + 2) : bar(LEFT - 1, y, SIDE + 2, cell)) + bar(x, y, cell, cell));
    const every = Math.ceil(size / 12);
    this.names.replaceChildren();
    for (let k = 0; k < size; k += every) {
      svg("text", { x: LEFT - 4, y: TOP + (k + 0.5) * cell + 4, class: "tick end" }, this.names, label(app, k));
      svg("text", { x: LEFT + (k + 0.5) * cell, y: TOP + SIDE + 14, class: "tick" }, this.names, label(app, k));
    }
  }
}
const paired = (app) => app.state.pairs !== "views", columns = (app) => paired(app) && app.state.asks === "captions";
const batch = (app) => (paired(app) ? app.data.pairs.captions.length : app.state.pictures), views = (app) => (paired(app) ? 1 : 2) * batch(app);
const label = (app, a) => `${(a % batch(app)) + 1}${paired(app) ? "" : a < batch(app) ? "a" : "b"}`;
const shades = (of) => (f) => `color-mix(in srgb, var(--${of}) ${Math.round(4 + 92 * f)}%, var(--paper))`;

function build(app) {
  app.row = () => Math.min(Number(app.state.row) || 0, views(app) - 1);
  app.choose = (row) => { app.moving = false; app.set("row", row); };
  app.grids = [new Grid(app, "", shades("ink")), new Grid(app, "", shades("purple")),
    new Grid(app, "3 · gradient: ▲ pulled, ■ pushed", shades("red"))];
  keys(app.grids[0].root, { ArrowUp: -1, ArrowDown: 1 }, (by) => app.choose((app.row() + by + views(app)) % views(app)));
  app.chart = new Chart(app.stage, { title: "", height: 310, x: { low: -1.02, high: 1.02, ticks: [-1, -0.5, 0, 0.5, 1], label: "similarity" }, y: { low: 0, high: 1 } });
  app.stems = app.chart.line("two");
  app.stems.setAttribute("style", "stroke-dasharray: none");
  app.pull = app.chart.line("one");
  const first = (app.ruled = html("section", { className: "ruler" }));
  app.early = html("form", { className: "controls", onsubmit: () => false }, first);
  const answer = html("div", {}, first);
  app.verdict = html("p", { className: "verdict", role: "status" }, answer);
  app.rule = svg("svg", { role: "img", "aria-label": "loss ruler" }, answer);
  app.stage.before(first);
  new ResizeObserver(() => app.refresh()).observe(answer);
  const goal = app.state.learned;
  begin(app, 3000, (f) => { app.state.learned = Number((f * goal).toFixed(2)); }); // views meet, as in training
}

// Images by sentences: what the loss is, each pair's probability (by row, by column, or alone), and force
function table(app) {
  const all = rows(app), B = batch(app), alone = app.state.loss === "SigLIP", by = columns(app);
  const cells = (of) => Array.from({ length: B }, (_, i) => Array.from({ length: B }, (_, j) => of(i, j, by ? all[B + j] : all[i], by ? i : B + j)));
  const t = settingsOf(app, "loss").temperature, match = (r, k) => (k === r.own ? 1 : 0) + r.force[k] * t; // of SigLIP: the sigmoid
  return { all, value: all.reduce((sum, r) => sum + r.value, 0) / (2 * B), cosines: cells((i, j) => all[i].row[B + j]),
    shares: cells((i, j, r, k) => (alone ? match(r, k) : r.shares[k])), forces: cells((i, j) => (all[i].force[B + j] + all[B + j].force[i]) / (2 * B)) };
}

const strongest = (table) => Math.max(...table.flat().map(Math.abs)) || 1; // null counts as 0

function drawGrids(app, titles, cosines, top, shares, forces, own, gates = [null]) {
  const most = strongest(forces), shade = (table, f) => table.map((row) => row.map((v) => (v === null ? null : f(v))));
  const tables = [shade(cosines, (v) => (v / top + 1) / 2 + 1e-9), shade(shares, Math.sqrt), shade(forces, (f) => Math.sign(f) * Math.sqrt(Math.abs(f) / most))];
  titles.forEach((title, k) => { app.grids[k].title.textContent = `${k + 1} · ${title}`; });
  app.grids.forEach((grid, k) => grid.draw(app, tables[k], k === 1 ? gates : [], own));
  app.grids[1].note.textContent = gates[0] === null ? "" : "W";
}

function drawPairs(app) {
  const { all, value, cosines, shares, forces } = table(app), { captions, steps } = app.data.pairs, B = batch(app), a = app.row(), by = columns(app);
  const own = captions.map((_, k) => k), alone = app.state.loss === "SigLIP";
  const titles = ["cosines, images (rows) by sentences", alone ? "each pair alone: σ(s/τ + b)" : `softmax of each ${by ? "column" : "row"}`];
  drawGrids(app, titles, cosines, strongest(cosines), shares, forces, own);
  const given = own.map((k) => (by ? shares[k][a] : shares[a][k]) ?? 0), first = own.filter((k) => k !== a).reduce((best, k) => (given[k] > given[best] ? k : best), a ? 0 : 1);
  const right = own.filter((k) => own.every((j) => (by ? cosines[j][k] <= cosines[k][k] : cosines[k][j] <= cosines[k][k]))).length;
  const t = settingsOf(app, "loss").temperature, [who, what] = by ? [`Sentence ${a + 1}, “${captions[a]}”,`, "image"] : [`Image ${a + 1}`, "sentence"];
  return { r: all[by ? B + a : a], says: `${named(app, "loss")}${t ? ` (a scale of ${number(1 / t)})` : ""}, ${app.state.pairs === "fresh" ? "fresh networks" : `after ${steps} steps of CLIP`}: loss ${number(value, 4)}` +
    `${alone ? "" : `, chance ${number(Math.log(B), 4)}`}. ${right} of ${B} ${by ? "sentences" : "images"} are nearest to their own ${what}. ${who} gives its own ${what}${by ? "" : ` (“${captions[a]}”)`} ${percent(given[a])}; ` +
    `of the others most to ${what} ${first + 1}${by ? "" : ` (“${captions[first]}”)`}: ${percent(given[first])}.` };
}

function draw(app) {
  app.ruled.style.display = paired(app) ? "none" : "";
  if (paired(app)) {
    const { r, says } = drawPairs(app);
    drawForces(app, r, `${columns(app) ? "sentence" : "image"} ${label(app, app.row())}`);
    return says;
  }
  const all = rows(app), own = all.map((r) => r.own), a = app.row(), r = all[a], title = app.data.losses[app.state.loss].title;
  const others = all.map((x, i) => x.row.map((v, b) => (b === i ? null : v)));
  drawGrids(app, ["similarities s (strong: near)", "softmax of each row"], others, 1, all.map((x) => x.shares), all.map((x) => x.force), own, all.map((x) => x.W));
  drawForces(app, r, `anchor ${label(app, a)}`);
  drawRuler(app);
  const hardest = r.others.reduce((best, b) => (r.force[b] > r.force[best] ? b : best)), pushed = r.others.reduce((sum, b) => sum + Math.max(r.force[b], 0), 0);
  const gets = r.W === null || app.state.loss === "SigLIP" ? "" : `, gets ${percent(r.shares[r.own])} of the softmax: W ${equals(r.W)}`;
  return `Anchor ${label(app, a)} under ${title}: its positive ${label(app, r.own)} has s⁺ = ${number(r.row[r.own], 2)}${gets}. It is pulled with ${number(-r.force[r.own])}; its ${r.others.length} negatives are pushed with ` +
    `${number(pushed)}, ${label(app, hardest)} (s⁻ = ${number(r.row[hardest], 2)}) with ${percent(pushed ? r.force[hardest] / pushed : 0)} of it. K_eff = ${number(r.K_eff)}; its loss is ${number(r.value)}.`;
}

function drawForces(app, r, who) { // of one anchor
  const { chart } = app, forces = r.force.map((f) => Math.abs(f ?? 0)), high = Math.max(...forces) || 1;
  const nice = [1, 1.5, 2, 3, 5, 7.5, 10, 15].map((m) => m * 10 ** Math.floor(Math.log10(high))).find((m) => m >= high * 1.05);
  chart.root.querySelector(".title").textContent = `4 · ${who}: ● its pull, │ each push`;
  chart.axes(chart.x, { low: 0, high: nice, label: "force" });
  const stem = (b) => `M${chart.X(r.row[b]).toFixed(1)} ${chart.Y(0)}V${chart.Y(Math.max(r.force[b], 0)).toFixed(1)}`;
  put(app.stems, r.others.map(stem).join(""));
  const x = chart.X(r.row[r.own]), y = chart.Y(Math.abs(r.force[r.own]));
  put(app.pull, `M${x} ${chart.Y(0)}V${y}${mark(0, x, y, 4)}`);
}

function shown(app, name) {
  if (paired(app)) return ![...BATCH, ...RULED].includes(name);
  return name !== "asks" && (name !== "queue" || app.data.losses[app.state.loss].queue);
}

// the ruler's own controls stand beside it; what the small batch below has, below that
const BATCH = ["pictures", "dimensions", "classes", "learned", "seed"], RULED = ["value", "batch_size", "queue", "positive", "spread"];
const early = (app, name) => !paired(app) && ![...BATCH, "pairs"].includes(name);

export default function (model, el) {
  const app = explore(model, el, { build, draw, shown, early }, compare);
  app.embeddings = () => embeddings(app.state);
  app.rows = () => rows(app);
  app.ruler = () => ruler(app);
  app.table = () => table(app);
  app.says = () => says(app, ruler(app));
}
