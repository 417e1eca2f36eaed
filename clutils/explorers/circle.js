import { compare } from "./losses.js";
import { DIGITS, FULL, STEPS, forces, measured, moved, start } from "./motion.js";
import { player } from "./player.js";
import { Chart, dragged, explore, keys, mark, named, settingsOf, spot, svg } from "./shell.js";
import { html, number, put, tint } from "./tools.js";

const R = 124, MIDDLE = 170, UP = 152;

function acting(app, menu, angles) { // the forces of a menu's loss
  const { state, data } = app, { opposite, labels } = data.losses[state[menu]];
  const by = labels && state.by_labels && state.classes > 1;
  return forces({ name: state[menu], p: settingsOf(app, menu), opposite, by }, state, angles);
}

class Lane { // one loss, and where it takes the points
  constructor(app, menu) {
    this.menu = menu;
    this.figure = html("figure", { style: "margin:0" }, app.stage);
    this.title = html("figcaption", { className: "caption" }, this.figure);
    const root = (this.root = svg("svg", { viewBox: "0 0 340 304", role: "application",
      "aria-roledescription": "points on a circle: up and down choose one, left and right move it" }, this.figure));
    this.sub = html("div", { className: "caption soft" }, this.figure);
    this.ring = svg("circle", { cx: MIDDLE, cy: UP, r: R, class: "line" }, root);
    const path = (look) => svg("path", look, root);
    this.trails = path({ class: "line all" });
    this.ties = path({ class: "line ink thin" });
    this.pull = path({ class: "line one" });
    this.push = path({ class: "line two", style: "stroke-dasharray: none" });
    this.points = COLOURS.flatMap((c) => [
      path({ fill: "var(--paper)", stroke: c, "stroke-width": 2 }), path({ fill: c, stroke: "var(--paper)", "stroke-width": 0.8 })]);
    this.held = path({ class: "line ink thin" });
    const touched = (e) => {
      const [x, y] = spot(root, e);
      return [x - MIDDLE, UP - y];
    };
    const grasped = (e) => { // the point under the pointer, if any
      const [x, y] = touched(e);
      let best = 26, found = -1;
      this.angles(app).forEach((t, a) => {
        const d = Math.hypot(x - R * Math.cos(t), y - R * Math.sin(t));
        if (d < best) [best, found] = [d, a];
      });
      return found;
    };
    let held = false;
    dragged(root, (e) => {
      held = grasped(e) >= 0;
      if (!held) return;
      this.chosen = grasped(e);
      app.play(false);
    }, (e) => {
      const [x, y] = touched(e);
      if (held) this.move(app, Math.atan2(y, x));
    }, () => { held = false; }, (e) => grasped(e) >= 0);
    keys(root, { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }, ([by, next]) => {
      const now = this.angles(app);
      this.chosen ??= 0;
      if (next) this.chosen = (this.chosen + next + now.length) % now.length;
      if (by) this.move(app, now[this.chosen] + (by * FULL) / 120);
      app.refresh();
    });
  }
  colour(app) { return tint(settingsOf(app, this.menu).temperature); }
  angles(app) { return this.path[Math.min(app.now(), this.path.length - 1)]; }
  move(app, to) { // from here on both losses start
    const now = this.angles(app).slice();
    now[this.chosen] = to;
    const places = [...now].map((t) => Math.floor((((t / FULL) % 1) + 1) % 1 * DIGITS).toString(36).padStart(3, "0"));
    app.state.step = 0;
    app.set("at", places.join(""));
  }
  reset(app) {
    if (app.state[this.menu] === "none") return;
    Object.assign(this, { path: [], seen: [], found: [] });
    this.add(app, start(app.state));
  }
  add(app, angles) {
    this.path.push(angles);
    this.seen.push(measured(app.state, angles));
    this.found.push(acting(app, this.menu, angles));
  }
  reach(app, step) { // the steps up to this one
    const p = settingsOf(app, this.menu), unit = app.state.proportional && p.temperature ? p.temperature : 1;
    while (this.path.length <= step) this.add(app, moved(this.path.at(-1), this.found.at(-1), app.state.rate, unit));
  }
  draw(app, step) {
    const { pictures: N, classes } = app.state, now = this.path[step], small = N > 24 ? 4.2 : N > 12 ? 5.5 : 7;
    const at = (t, r = 1) => [MIDDLE + R * r * Math.cos(t), UP - R * r * Math.sin(t)];
    const on = (t, r) => at(t, r).map((v) => v.toFixed(1)).join(" ");
    const marks = this.points.map(() => "");
    let ties = "", trails = "";
    const every = Math.max(1, Math.ceil(step / 40));
    for (let i = 0; i < N; i++) {
      const k = 2 * (i % classes);
      marks[k] += mark(i % classes, ...at(now[i + N]), small * 0.85);
      marks[k + 1] += mark(i % classes, ...at(now[i]), small);
      ties += `M${on(now[i])}L${on(now[i + N])}`;
      if (step) for (let f = 0; f <= step; f += every) trails += `${f ? "L" : "M"}${on(this.path[f][i], 0.25 + (0.72 * f) / step)}`;
    }
    this.points.forEach((path, k) => put(path, marks[k]));
    put(this.ties, ties);
    put(this.trails, trails);
    const { pulled, pushed, value } = this.found[step], all = [...this.found[0].pulled, ...this.found[0].pushed];
    const longest = Math.max(1e-9, ...all.map(Math.abs));
    const arrows = (force, r) => [...force].map((f, a) => {
      const far = Math.min(Math.max(f / longest, -1), 1) * 0.5, side = Math.sign(far);
      if (Math.abs(far) < 0.012) return "";
      const tip = now[a] + far, back = tip - Math.min(0.05, Math.abs(far) / 2) * side, wide = 0.6 * Math.abs(tip - back);
      return `M${on(now[a], r)}A${R * r} ${R * r} 0 0 ${far > 0 ? 0 : 1} ${on(tip, r)}L${on(back, r + wide)}M${on(tip, r)}L${on(back, r - wide)}`;
    }).join("");
    put(this.pull, app.state.forces ? arrows(pulled, 1.09) : "");
    put(this.push, app.state.forces ? arrows(pushed, 1.17) : "");
    put(this.held, this.chosen === undefined || this.chosen >= 2 * N ? "" : mark(0, ...at(now[this.chosen]), 11));
    const title = named(app, this.menu), colour = this.colour(app);
    this.ring.style.stroke = this.title.style.color = colour;
    this.title.textContent = `${this.menu === "loss" ? "━" : "╌"} ${title}`;
    const { gap } = this.seen[step];
    this.sub.textContent = `loss ${number(value, 4)}, widest gap ${number(gap, 3)}° (even: ${number(360 / N, 3)}°)`;
    this.root.setAttribute("aria-label", `${title}, step ${step}: ${2 * N} points on a circle, ${this.sub.textContent}`);
  }
}
const COLOURS = ["green", "purple", "orange", "grey", "sky", "olive", "red", "blue"] // blue and red last: a temperature has them
  .map((c) => `var(--${c})`);
const CURVES = [["alignment", "alignment (0: views meet)"], ["uniformity", "uniformity (low: even)"],
  ["tolerance", "tolerance (classes together)"]];

function build(app) {
  player(app, "step", STEPS, STEPS);
  app.lanes = [new Lane(app, "loss"), new Lane(app, "beside")];
  const column = html("div", { className: "column" }, app.stage);
  app.charts = CURVES.map(([key, title]) => {
    const chart = new Chart(column, { title, height: 92, foot: 18, x: { low: 0, high: 40, label: "" }, y: { low: 0, high: 1 } });
    return { key, chart, lines: ["one", "two"].map((look) => chart.line(look)), here: chart.line("ink thin") };
  });
  app.lanes.forEach((lane) => lane.reset(app));
}

function draw(app) {
  const step = app.now(), two = app.state.beside !== "none";
  const lanes = two ? app.lanes : app.lanes.slice(0, 1);
  app.lanes[1].figure.hidden = !two;
  for (const lane of lanes) {
    lane.reach(app, step);
    lane.draw(app, step);
  }
  for (const { key, chart, lines, here } of app.charts) {
    const all = lanes.flatMap((lane) => lane.seen.slice(0, step + 1).map((seen) => seen[key])).filter(Number.isFinite);
    const low = Math.floor(4 * Math.min(...all, key === "uniformity" ? -1 : 0)) / 4, high = Math.ceil(4 * Math.max(...all, key === "uniformity" ? -0.75 : key === "tolerance" ? 1 : 0.25)) / 4;
    chart.root.style.display = all.length ? "" : "none"; // pictures of classes of their own have no tolerance
    chart.axes({ low: 0, high: Math.max(40, Math.ceil(step / 40) * 40), label: "" }, { low, high: high > low ? high : low + 1 });
    const steps = Array.from({ length: step + 1 }, (_, k) => k);
    lines.forEach((line, k) => {
      put(line, lanes[k] ? chart.trace(steps, steps.map((f) => lanes[k].seen[f][key])) : "");
      if (lanes[k]) line.style.stroke = lanes[k].colour(app);
    });
    chart.say(`${lanes.map((lane) => number(lane.seen[step][key])).join(", beside it ")} at step ${step}`);
    put(here, `M${chart.X(step)} ${chart.box.top}V${chart.box.bottom}`);
  }
  const said = (key) => lanes.map((lane) => number(Math.abs(lane.seen[step][key]) < 1e-4 ? 0 : lane.seen[step][key])).join(" against ");
  const alone = Number.isFinite(lanes[0].seen[step].tolerance) && app.state.classes > 1 ? `; tolerance ${said("tolerance")} (higher: classes stay together)` : "";
  return `Step ${step}, ${lanes.map((lane) => named(app, lane.menu)).join(" against ")}: uniformity ${said("uniformity")} ` +
    `(lower: more even)${alone}; alignment ${said("alignment")} (0: the two views have met).`;
}

function fresh(app, name) { // what a change begins again
  if (name === "forces" || name === "step") return;
  if (["pictures", "classes", "scatter", "arc", "seed"].includes(name)) app.state.at = "";
  if (name !== null) app.state.step = 0;
  app.lanes.forEach((lane) => lane.reset(app));
  app.slider.value = app.now();
  app.play(name !== null && name !== "at" && !app.still && (app.asked || !app.calm)); // in a frame, once somebody played
}

function shown(app, name) {
  const takes = ["loss", "beside"].some((menu) => app.data.losses[app.state[menu]]?.labels);
  return name !== "by_labels" || takes;
}

export default function (model, el) {
  const app = explore(model, el, { build, draw, fresh, shown }, compare);
  app.forces = (menu, angles) => acting(app, menu, angles); // for what asks the page: its tests
}
