import { unpack } from "./places.js";
import { player } from "./player.js";
import { Chart, dragged, explore, mark, svg } from "./shell.js";
import { html, number, percent, put } from "./tools.js";

const COLOURS = ["blue", "red", "green", "purple", "orange", "sky", "olive"];
// there are eight shapes, filled and hollow: 16 classes are distinguished without their colour
const look = (c, width) => ((colour) => (c % 16 < 8 ? { fill: colour, "fill-opacity": 0.8, stroke: "var(--paper)", "stroke-width": width }
  : { fill: "var(--paper)", stroke: colour, "stroke-width": 3 * width }))(`var(--${COLOURS[c % 7]})`);

const CHARTS = [["loss", ["loss", "chance"], "loss (dotted: chance)"], ["alignment", ["alignment"], "alignment (0: views meet)"],
  ["uniformity", ["uniformity"], "uniformity (lower: more even)"], ["effective_rank", ["effective_rank"], "effective rank"],
  ["knn", ["knn"], "kNN accuracy"], ["temperature", ["temperature"], "temperature τ"]];

function build(app) {
  const { run } = app.data, last = run.looks[run.looks.length - 1];
  app.placed = unpack(run);
  player(app, "frame", Math.max(last, run.steps[run.steps.length - 1] ?? 0), 540); // nine seconds
  const map = html("figure", { style: "margin: 0" }, app.stage);
  app.map = svg("svg", { viewBox: "0 0 340 318", role: "img" }, map);
  app.title = svg("text", { x: 6, y: 14, class: "title" }, app.map);
  const shapes = Math.max(1, new Set(run.labels).size);
  app.points = Array.from({ length: shapes }, (_, c) => svg("path", look(c, 0.5), app.map));
  app.classes = [...new Set(run.labels)].sort((a, b) => a - b);
  const key = html("p", { className: "hide", style: "margin: 0; font-size: .85rem" }, map);
  if (run.class_names.length) app.classes.forEach((c, k) => {
    const one = html("button", { type: "button", title: "show this class alone, or all again", style: "min-height: 1.7rem; padding: 0 .4rem" }, key);
    const icon = svg("svg", { viewBox: "-8 -8 16 16", style: "width: .9rem; display: inline-block; vertical-align: -.1rem" }, one);
    svg("path", { d: mark(k, 0, 0, 6), ...look(k, 0.7) }, icon);
    one.append(` ${c < 0 ? "no label" : run.class_names[c] ?? c}`);
    one.onclick = () => app.set("only", app.state.only === String(c) ? "" : String(c));
  });
  const column = (at) => { const box = html("div", {}, app.stage); return CHARTS.slice(at, at + 3).map((of) => chart(app, box, of)); };
  app.charts = [...column(0), ...column(3)];
}

function chart(app, box, [key, names, title]) {
  const { run } = app.data, looks = key === "knn" || key === "effective_rank";
  const xs = looks ? run.looks : run.steps, found = names.map((name) => (looks ? run[name] : run.curves[name]) || []);
  const all = found.flat().filter((v) => v !== null), low = Math.min(...all), high = Math.max(...all);
  const pad = 0.06 * (high - low) || 0.1 * Math.abs(high) || 0.1;
  const made = new Chart(box, { title: all.length ? title : `${title}: not measured`, height: 112, foot: 18, x: { low: 0, high: app.end, label: "" },
    y: all.length ? { low: low - pad, high: high + pad } : { low: 0, high: 1 } });
  const numbers = (values) => values.map((v) => v ?? NaN);
  const lines = found.map((_, k) => made.line(k ? "dots" : "one"));
  const at = made.line("ink thin"), point = svg("path", { class: "there" }, made.inside);
  dragged(made.root, (e) => app.go(made.at(e)[0]));
  return { made, at, point, xs, lines, found: found.map(numbers) };
}

const nearest = (xs, step) => xs.reduce((best, x, k) => (x <= step ? k : best), 0);

function draw(app) {
  const { run } = app.data, step = app.now(), { looks, points: N } = run;
  const k = nearest(looks, step), next = Math.min(k + 1, looks.length - 1);
  const f = app.still || next === k ? 0 : Math.min(Math.max((step - looks[k]) / (looks[next] - looks[k]), 0), 1), shapes = app.points.map(() => "");
  for (let i = 0; i < N; i++) { // between two maps the points slide: the lower line says at which steps maps are
    if (app.state.only !== "" && String(run.labels[i]) !== app.state.only) continue;
    const at = (c) => (1 - f) * app.placed[2 * (k * N + i) + c] + f * app.placed[2 * (next * N + i) + c];
    const shape = app.classes.indexOf(run.labels[i]);
    shapes[shape] += mark(shape, 12 + 316 * at(0), 306 - 282 * at(1), 3.4);
  }
  app.points.forEach((path, c) => put(path, shapes[c]));
  app.title.textContent = `map of ${number(N)} images, step ${number(step)}`;
  app.map.setAttribute("aria-label", app.title.textContent);
  for (const { made, at, point, xs, lines, found } of app.charts) {
    lines.forEach((line, k) => put(line, made.trace(xs, found[k])));
    put(at, `M${made.X(step)} ${made.box.top}V${made.box.bottom}`);
    const v = found[0][nearest(xs, step)];
    put(point, isFinite(v) ? mark(0, made.X(xs[nearest(xs, step)]), made.Y(v), 4) : "");
  }
  const row = nearest(run.steps, step), said = (name) => number(run.curves[name]?.[row] ?? null);
  const chance = run.curves.chance?.[row] ?? null, knn = run.knn[k];
  return `${run.title}, step ${number(step)} of ${number(app.end)}: loss ${said("loss")}${chance === null ? "" : ` (chance ${number(chance)})`}, ` +
    `alignment ${said("alignment")}, uniformity ${said("uniformity")}; effective rank ${number(run.effective_rank[k])}` +
    `${knn === null ? "" : `, kNN ${percent(knn)}`}, measured at step ${number(looks[k])}${f ? `; the points move towards step ${number(looks[next])}` : ""}.`;
}

export default function (model, el) {
  explore(model, el, { build, draw });
}
