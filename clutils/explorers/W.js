import { compare, effective, gate, loss, normal, sigmoid, softmax } from "./losses.js";
import { Chart, bar, begin, dragged, explore, keys, mark, named, settingsOf, svg } from "./shell.js";
import { equals, number, percent, put, tint } from "./tools.js";

const BARS = 40, FINE = 100, COLD = 0.02, HOT = 20, MOST = 65536;
const along = (low, high, n) => Array.from({ length: n }, (_, k) => low * (high / low) ** (k / (n - 1)));
// whose forces carry no 1/temperature: the others' pull times the temperature is a gate
const UNSCALED = new Set(["PairMargin", "Triplet", "AlphaCL", "SogCLR", "ISogCLR", "Robust"]);

// K negatives as values and whole counts: of a spread, what lies in each bin when its levels are rounded
function population(state, K) {
  const { shape, similarity, hard, spread } = state, number_ = Math.min(state.number, K);
  if (shape === "equal") return { n: [similarity], m: [K] };
  if (shape === "few hard") return K > number_ ? { n: [hard, similarity], m: [number_, K - number_] } : { n: [hard], m: [K] };
  const drawn = shape === "drawn", bins = drawn ? BARS : FINE, n = [], m = [];
  const weights = Array.from({ length: bins }, (_, k) => {
    if (drawn) return heights(state)[k];
    const edge = (j) => normal((-1 + (2 * j) / bins - similarity) / spread);
    return edge(k + 1) - edge(k);
  });
  const all = weights.reduce((a, b) => a + b, 0);
  let before = 0, sum = 0;
  for (let k = 0; k < bins; k++) {
    sum += weights[k];
    const upTo = k === bins - 1 ? K : Math.round((K * sum) / all);
    if (upTo > before) { n.push(-1 + (2 * k + 1) / bins); m.push(upTo - before); }
    before = upTo;
  }
  return { n, m };
}

function heights(state) {
  const given = [...state.drawn].map((c) => parseInt(c, 36) || 0);
  return given.length === BARS && given.some((h) => h) ? given : Array.from({ length: BARS }, (_, k) => (k === 10 ? 35 : 0));
}

const contrast = (s, { n, m }, t) => softmax(n, m, (x) => x / t).log - s / t;

function turning(s, crowd) { // where W is lowest along the temperature, if that is inside: mean < s+ < hardest
  const { n, m } = crowd, K = m.reduce((a, b) => a + b, 0), mean = n.reduce((sum, x, j) => sum + x * m[j], 0) / K;
  const hardest = Math.max(...n), turns = mean < s && s < hardest;
  let low = Math.log(1e-3), high = Math.log(1e4);
  for (let step = 0; turns && step < 80; step++) { // the slope along 1/t: the weighed mean less s+
    const t = Math.exp((low + high) / 2), { share } = softmax(n, m, (x) => x / t);
    const weighed = share.reduce((sum, q, j) => sum + q * m[j] * n[j], 0);
    if (weighed > s) low = Math.log(t);
    else high = Math.log(t);
  }
  const t = Math.exp(low);
  return { mean: Math.abs(mean) < 1e-12 ? 0 : mean, hardest, turns, t, W: sigmoid(contrast(s, crowd, t)) };
}

const opened = (name, found) => found.gate ?? found.pull[0] * (UNSCALED.has(name) ? 1 : found.temperature ?? 1);

// What the page says of one loss: value, forces, K_eff, W at the temperature that the loss used
function stand(name, p, s, { n, m }) {
  const found = loss(name, p, [s], n, m), t = found.temperature, K = m.reduce((a, b) => a + b, 0);
  const W = found.gate ?? (t === undefined || t === 0 ? null : isFinite(t) ? gate(s, n, m, t) : K / (K + 1));
  return { value: found.value, pull: found.pull[0], push: found.push, K_eff: effective(found.push, m), W,
    gate: opened(name, found) };
}

function ask(app, menu) {
  const crowd = population(app.state, app.state.count);
  return { ...crowd, ...stand(app.state[menu], settingsOf(app, menu), app.state.positive, crowd),
    turning: turning(app.state.positive, crowd) };
}

function build(app) {
  const made = (options) => {
    const chart = new Chart(app.stage, { height: 280, ...options });
    const parts = { chart, all: {}, limit: chart.line("dots"), two: chart.line("two"), one: chart.line("one") };
    parts.ramp = svg("linearGradient", { id: `ramp${options.x.label}`, gradientUnits: "userSpaceOnUse", y1: 0, y2: 0 }, chart.root);
    [0.02, 0.2, 2].forEach((t, k) => svg("stop", { offset: k / 2, style: `stop-color: ${tint(t)}` }, parts.ramp));
    for (const [name, { title }] of Object.entries(app.data.losses)) // a pointer that rests on one reads its name
      svg("title", {}, (parts.all[name] = chart.line("all")), title);
    parts.turn = svg("path", { fill: "var(--ink)" }, chart.inside);
    parts.here = svg("path", { class: "here" }, chart.inside);
    parts.names = svg("g", {}, chart.root);
    return parts;
  };
  const y = { low: 0, high: 1 };
  app.warm = made({ title: "", x: { low: COLD, high: HOT, log: true, label: "τ" }, y });
  app.many = made({ title: "", x: { low: 1, high: MOST, log: true, label: "K" }, y });
  const who = (app.who = { chart: new Chart(app.stage, { height: 280, title: "negatives (up), push (down)", left: 12,
    x: { low: -1.02, high: 1.02, ticks: [-1, -0.5, 0, 0.5, 1], label: "s⁻ (▲ mean, ■ hardest)" }, y: { low: -1.08, high: 1.08, ticks: [] } }) });
  const { chart } = who;
  who.number = svg("path", { fill: "var(--grey)" }, chart.inside);
  who.push = svg("path", { fill: "var(--red)" }, chart.inside);
  who.positive = chart.line("one");
  who.at = svg("path", { class: "here" }, chart.inside);
  who.mean = svg("path", { fill: "var(--ink)" }, chart.inside);
  who.text = svg("text", { y: 40, class: "note" }, chart.root);
  let held = "", last = null, at = BARS >> 1;
  const within = (v, low, high) => Math.min(Math.max(v, low), high);
  const lift = (from, to, high) => { // those bars to a height, or by it
    const now = current(app.state);
    for (let j = from; j <= to; j++) now[j] = within(high(now[j]), 0, 35);
    app.state.shape = "drawn";
    app.set("drawn", now.map((h) => h.toString(36)).join(""));
  };
  const touch = (e) => {
    const [x, up] = chart.at(e);
    if (held === "positive") return app.set("positive", Number(within(x, -1, 1).toFixed(2)));
    const k = within(Math.floor(((x + 1) / 2) * BARS), 0, BARS - 1); // a quick finger leaves no bar out
    lift(Math.min(k, last ?? k), Math.max(k, last ?? k), () => Math.round(35 * up));
    last = k;
  };
  // ← → choose a bar, ↑ ↓ lift it
  keys(chart.root, { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 5], ArrowDown: [0, -5] }, ([aside, up]) => {
    app.moving = false;
    at = within(at + aside, 0, BARS - 1);
    lift(at, at, (h) => h + up);
    put(who.at, mark(0, chart.X((2 * at + 1) / BARS - 1), chart.Y(0), 5));
  });
  dragged(chart.root, (e) => {
    app.moving = false;
    held = Math.abs(chart.at(e)[0] - app.state.positive) < 0.07 ? "positive" : "bars";
    touch(e);
  }, touch, () => { held = ""; last = null; });
  const turn = (chart_, name) => {
    const set = (e) => {
      app.moving = false;
      const [x] = chart_.at(e);
      if (name === "count") app.set(name, app.data.settings.find((c) => c.name === name).values.reduce((a, b) => (Math.abs(Math.log(b / x)) < Math.abs(Math.log(a / x)) ? b : a)));
      else if (name in app.state) app.set(name, Number(x.toPrecision(3)));
    };
    dragged(chart_.root, set);
  };
  turn(app.warm.chart, "temperature");
  turn(app.many.chart, "count");
  const goal = app.state.temperature;
  if (goal) // at first the temperature falls from hot to where the page opens
    begin(app, 3500, (f) => { app.state.temperature = f < 1 ? Number((10 * (goal / 10) ** f).toPrecision(3)) : goal; });
}

function binned(n, m) { // how many lie in each bar
  const bars = new Array(BARS).fill(0);
  n.forEach((x, j) => { bars[Math.min(Math.floor(((x + 1) / 2) * BARS), BARS - 1)] += m[j]; });
  return bars;
}

function current(state) { // the negatives as bars, to draw on from
  if (state.shape === "drawn") return heights(state).slice();
  const { n, m } = population(state, state.count), bars = binned(n, m), most = Math.max(...bars);
  return bars.map((h) => (h ? Math.max(1, Math.round((35 * h) / most)) : 0));
}

function draw(app) {
  const { state, data } = app, s = state.positive, K = state.count, crowd = population(state, K), found = ask(app, "loss");
  const titled = (menu) => data.losses[state[menu]].title;
  const curve = (name, p, xs, point) => { // what has no temperature is flat along it
    const flat = point === atT && !("temperature" in p) ? point(name, p) : null;
    return xs.map((x) => flat ?? point(name, p, x));
  };
  const pulls = (name, p, { n, m }) => opened(name, loss(name, p, [s], n, m, [s], false));
  const atT = (name, p, t) => pulls(name, "temperature" in p ? { ...p, temperature: t } : p, crowd);
  const crowds = new Map(), of = (k) => { if (!crowds.has(k)) crowds.set(k, population(state, k)); return crowds.get(k); };
  const atK = (name, p, k) => pulls(name, p, of(k));
  const T = along(COLD, HOT, 90), N = [...new Set(along(1, MOST, 60).map(Math.round))];
  const sides = [[app.warm, T, atT, state.temperature], [app.many, N, atK, K]].map(([parts, xs, point, here]) => ({ parts, xs, point, here,
    one: curve(state.loss, settingsOf(app, "loss"), xs, point),
    two: state.beside === "none" ? null : curve(state.beside, settingsOf(app, "beside"), xs, point) }));
  const most = Math.max(1, ...sides.flatMap(({ one, two }) => [...one, ...(two ?? [])]).filter(Number.isFinite));
  const gated = found.W !== null && Math.abs(found.W - found.gate) < 1e-9, drawn = gated ? "W" : "τ · pull"; // of a loss whose pull is not W / τ
  const high = most > 1.05 ? Math.min(Math.ceil(most * 2) / 2, 3) : 1.04, y = { low: 0, high };
  if (high === 1.04) y.ticks = [0, 0.25, 0.5, 0.75, 1];
  for (const { parts, xs, point, here, one, two } of sides) {
    const { chart } = parts;
    chart.head.textContent = `${drawn} against ${chart.x.label}`;
    chart.axes(chart.x, { ...y, label: point === atT ? drawn : "" });
    parts.names.replaceChildren();
    put(parts.one, chart.trace(xs, one));
    put(parts.two, two ? chart.trace(xs, two) : "");
    if (point === atT) [0.02, 2].forEach((t, k) => parts.ramp.setAttribute(`x${k + 1}`, chart.X(t)));
    for (const menu of ["one", "two"]) { // cold to hot along τ, elsewhere the colour of the loss's own τ
      const t = state[menu === "one" ? "temperature" : "beside_temperature"];
      parts[menu].style.stroke = t > 0 && point === atT ? "url(#rampτ)" : tint(t);
    }
    parts.here.style.fill = tint(state.temperature);
    const few = xs.filter((_, k) => k % 3 === 0);
    for (const [name, path] of Object.entries(parts.all)) {
      const p = Object.fromEntries(data.losses[name].settings.map((c) => [c.name, c.default === "inf" ? Infinity : c.default]));
      if ("temperature" in p && state.temperature) p.temperature = state.temperature;
      put(path, state.family ? chart.trace(few, curve(name, p, few, point)) : "");
    }
    put(parts.here, here === undefined ? "" : mark(0, chart.X(here), chart.Y(Math.min(found.gate, chart.y.high)), 6));
    const from = (curve_) => `from ${number(curve_[0])} at ${chart.x.label} = ${number(xs[0])} to ${number(curve_[curve_.length - 1])} at ${number(xs[xs.length - 1])}`;
    chart.say(`${titled("loss")} ${from(one)}${here === undefined ? "" : `, here ${number(found.gate)} at ${number(here)}`}${two ? `; dashed, ${titled("beside")} ${from(two)}` : ""}`);
  }
  const { chart } = app.warm, limit = K / (K + 1), turn = found.turning;
  put(app.warm.limit, chart.trace([COLD, HOT], [limit, limit]));
  put(app.many.limit, app.many.chart.trace(N, N.map((k) => k / (k + 1))));
  put(app.warm.turn, turn.turns && gated && turn.W < 0.995 && turn.t < HOT ? mark(4, chart.X(turn.t), chart.Y(turn.W) - 8, 6) : "");
  // who is asked for the K of a gate half open finds it first
  const half = Math.abs(found.gate - 0.5) < 0.06 && state.shape === "equal" && state.temperature ? Math.exp((s - state.similarity) / state.temperature) : 0;
  put(app.many.turn, half > 1 && half < MOST ? mark(4, app.many.chart.X(half), app.many.chart.Y(0.5) - 8, 6) : "");
  const { right } = app.warm.chart.box, note = (k, menu) => svg("text", { x: right - 8, y: app.warm.chart.box.bottom - 24 + 15 * k, class: "note end", style: `fill: ${tint(state[["temperature", "beside_temperature"][k]])}` },
    app.warm.names, `${"━╌"[k]} ${right < 320 ? named(app, menu).split(", ").slice(0, 2).join(", ") : named(app, menu)}`);
  note(0, "loss");
  if (state.beside !== "none") note(1, "beside");
  crowdChart(app, crowd, found);
  const drawnIn = crowd.m.reduce((sum, m, j) => sum + (found.push[j] < 0 ? m : 0), 0);
  const shares = `K_eff = ${number(found.K_eff)} of ${number(K)} negatives share the push${drawnIn ? `, ${number(drawnIn)} are drawn in` : ""}`;
  const W = found.W === null ? `${titled("loss")} has no temperature and no gate; its pull is ${number(found.pull)}`
    : gated ? `W ${equals(found.W)}: ${percent(found.W)} of the gradient comes through`
    : `W ${equals(found.W)}, but ${titled("loss")} pulls with ${UNSCALED.has(state.loss) ? "" : `${number(found.gate)}/τ = `}${number(found.pull)}`;
  const beside = state.beside === "none" ? "" : `; ${titled("beside")} pulls with ${number(ask(app, "beside").pull)}${gated ? `, ${titled("loss")} with ${number(found.pull)}` : ""}`;
  const moves = state.temperature === undefined ? `Its temperature at s⁺ is (1 − s⁺²)/2 = ${number((1 - s * s) / 2)}, so the pull is ${number(found.pull)}`
    : turn.turns ? `Mean s⁻ ${number(turn.mean)} < s⁺ ${number(s)} < hardest ${number(turn.hardest)}, so W falls and rises again along τ: ${turn.W < 0.995 ? `lowest, ${number(turn.W)}, at τ = ${number(turn.t)}` : "but stays above 0.99"}`
    : s <= turn.mean ? `s⁺ ${number(s)} is not above the mean s⁻ ${number(turn.mean)}: W falls all along τ, to K/(K+1) ${equals(limit)}`
    : `s⁺ ${number(s)} is at or above the hardest ${number(turn.hardest)}: W rises all along τ, to K/(K+1) ${equals(limit)}`;
  return `${W}${beside}; ${shares}.${gated ? ` ${moves}.` : ""}` + (half ? ` W = ½ at K = e^((s⁺ − s⁻)/τ) = ${number(half)}.` : "");
}

function crowdChart(app, { n, m }, { push, turning: turn }) {
  const { chart, ...parts } = app.who;
  const zero = chart.Y(0), half = chart.Y(0) - chart.Y(1), wide = chart.X(2 / BARS) - chart.X(0);
  const path = (values, sign) => {
    const most = Math.max(...values.map(Math.abs)) || 1;
    return values.map((v, k) => {
      if (!v || Math.abs(v) < 5e-4 * most * (sign < 0)) return "";
      const tall = Math.max((half * Math.abs(v)) / most, 4) * Math.sign(v), x = chart.X(-1 + (2 * k) / BARS) + 0.8;
      return bar(x, zero, wide - 1.6, -sign * tall);
    }).join("");
  };
  put(parts.number, path(binned(n, m), 1));
  put(parts.push, path(binned(n, m.map((of, j) => of * push[j])), -1));
  const x = chart.X(app.state.positive);
  put(parts.positive, `M${x} ${chart.box.top}V${chart.box.bottom}`);
  put(parts.mean, mark(2, chart.X(turn.mean), zero + 7, 4.5) + mark(1, chart.X(turn.hardest), zero + 6, 3.5));
  const side = app.state.positive > 0.6 ? -1 : 1;
  parts.text.setAttribute("x", x + 5 * side);
  parts.text.setAttribute("text-anchor", side < 0 ? "end" : "start");
  parts.text.textContent = `s⁺ ${number(app.state.positive)}`;
  const top = push.reduce((best, f, j) => (f > push[best] ? j : best), 0);
  chart.say(`mean ${number(turn.mean)}, hardest ${number(turn.hardest)}, s⁺ at ${number(app.state.positive)}; pushed most, each: those at ${number(n[top])}`);
}

function fresh(app, name) { // chosen in the menu, a Gaussian is as of random directions in 100 dimensions
  if (name === "shape" && app.state.shape === "gaussian") [app.state.similarity, app.state.spread] = [0, 0.1];
}

function shown(app, name) {
  const reads = { equal: ["similarity"], gaussian: ["similarity", "spread"], "few hard": ["similarity", "hard", "number"], drawn: [] };
  return !["similarity", "spread", "hard", "number"].includes(name) || reads[app.state.shape].includes(name);
}

export default function (model, el) {
  const app = explore(model, el, { build, draw, fresh, shown }, compare);
  app.ask = (menu) => ask(app, menu);
  app.gates = (temperatures) => {
    const crowd = population(app.state, app.state.count);
    return temperatures.map((t) => sigmoid(contrast(app.state.positive, crowd, t)));
  };
}
