// The front page's own two pictures: sixteen images on two circles, and the map of a run. Both on a canvas, drawn
// only while something moves on it, it is on the screen, and the page is the one that is looked at.

import { FULL, STEPS, forces, measured, moved, start } from "../../explorers/motion.js";
import { unpack } from "../../explorers/places.js";
import { html, number, percent, warm } from "../../explorers/tools.js";

const front = JSON.parse(document.getElementById("front").textContent), $ = (id) => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const { tile: SIDE, columns: COLUMNS, run } = front, SPRITE = new Image();
const dark = matchMedia("(prefers-color-scheme: dark)"), ink = {}; // the page's colours, as a canvas needs them
const dip = () => { for (const name of ["ink", "soft", "class1", "class2", "class3", "class4"]) ink[name] = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); };
dip();
dark.addEventListener("change", dip);
const classes = () => [ink.class1, ink.class2, ink.class3, ink.class4];

function film(canvas, ratio, frame) { // frame(milliseconds) draws, and is true while there is more to come
  const of = { frames: 0, g: canvas.getContext("2d"), width: 0, height: 0 };
  let next = 0, last = 0, seen = false;
  const go = (now) => {
    next = 0;
    of.frames++;
    const more = of.width && frame(last ? Math.min(now - last, 100) : 16);
    last = now;
    if (more) wake();
    else last = 0;
  };
  const rest = () => { cancelAnimationFrame(next); next = last = 0; };
  const wake = () => { if (!next && seen && !document.hidden) next = requestAnimationFrame(go); };
  new IntersectionObserver(([found]) => { (seen = found.isIntersecting) ? wake() : rest(); }).observe(canvas);
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : wake()));
  new ResizeObserver(() => {
    const dense = Math.min(devicePixelRatio, 2);
    of.width = canvas.clientWidth;
    of.height = Math.round(of.width * ratio);
    canvas.width = of.width * dense;
    canvas.height = of.height * dense;
    of.dense = dense;
    of.stamps = null;
    wake();
  }).observe(canvas);
  dark.addEventListener("change", () => { of.stamps = null; wake(); });
  SPRITE.addEventListener("load", () => { of.stamps = null; wake(); });
  return Object.assign(of, { wake, clear: () => { of.g.setTransform(of.dense, 0, 0, of.dense, 0, 0); of.g.clearRect(0, 0, of.width, of.height); } });
}

function stamp(k, size, dense, colour) { // an image with a round frame of its class's colour, drawn once
  const made = document.createElement("canvas"), g = made.getContext("2d"), edge = Math.max(1.5, size / 14), r = size / 5;
  made.width = made.height = Math.ceil(size * dense);
  g.scale(made.width / size, made.width / size);
  g.beginPath();
  g.roundRect(0, 0, size, size, r);
  g.fillStyle = colour;
  g.fill();
  g.beginPath();
  g.roundRect(edge, edge, size - 2 * edge, size - 2 * edge, r - edge);
  g.clip();
  g.drawImage(SPRITE, (k % COLUMNS) * SIDE, Math.floor(k / COLUMNS) * SIDE, SIDE, SIDE, edge, edge, size - 2 * edge, size - 2 * edge);
  return made;
}

// ---- sixteen images on two circles -----------------------------------------------------------------------

const N = 16, CLASSES = 4, COLD = 0.02, HOT = 2, NOTCHES = 40, RATE = 0.1, LASTS = 9000;
const PLAIN = { pictures: N, classes: CLASSES, scatter: 0.1, arc: 0.8, seed: 0, at: "" };
const evenly = Array.from({ length: 2 * N }, (_, a) => ((a % N) * FULL) / N), BEST = measured(PLAIN, evenly).uniformity;
const around = (t) => ((t % FULL) + FULL) % FULL;

// What can be said of images on a circle: which classes stand by themselves, how even all are, and the score
function judged(begin, angles, first) {
  const order = Array.from({ length: N }, (_, i) => i).sort((i, j) => around(angles[i]) - around(angles[j]));
  const gaps = order.map((i, k) => around(angles[order[(k + 1) % N]] - angles[i])), kind = order.map((i) => i % CLASSES);
  const found = measured(begin, angles), inside = [], between = [], each = N / CLASSES;
  gaps.forEach((gap, k) => (kind[k] === kind[(k + 1) % N] ? inside : between).push(gap));
  let groups = 0; // classes whose images are neighbours, nearer to each other than half as much again is to others
  for (let k = 0; k < N; k++) {
    if (kind[k] === kind[(k + N - 1) % N]) continue;
    const own = Array.from({ length: each - 1 }, (_, j) => gaps[(k + j) % N]);
    const alone = own.every((_, j) => kind[(k + j + 1) % N] === kind[k]);
    const outside = Math.min(gaps[(k + N - 1) % N], gaps[(k + each - 1) % N]);
    if (alone && outside > 1.5 * Math.max(...own)) groups++;
  }
  const mean = (x) => x.reduce((sum, v) => sum + v, 0) / x.length, within = (v) => Math.min(Math.max(v, 0), 1);
  const from = first ? first.uniformity : found.uniformity;
  const even = from - BEST > 1e-9 ? within((from - found.uniformity) / (from - BEST)) : 0;
  const together = inside.length ? within(1 - mean(inside) / mean(between)) : 0;
  return { ...found, groups, even, together, score: Math.round(100 * even * together) };
}

class Lane { // a loss, and where it takes the images: computed once, whoever asks
  constructor(name, tau, begin) {
    Object.assign(this, { name, tau, begin, p: name === "NTXent" ? { temperature: tau } : front.triplet });
    this.path = [start(begin)];
    this.seen = [judged(begin, this.path[0])];
  }
  reach(step, until = Infinity) { // false where time was up
    while (this.path.length <= step) {
      if (performance.now() > until) return false;
      const last = this.path[this.path.length - 1];
      const found = forces({ name: this.name, p: this.p, opposite: false, by: false }, this.begin, last);
      this.path.push(moved(last, found, RATE, this.name === "NTXent" ? this.tau : 1));
      this.seen.push(judged(this.begin, this.path[this.path.length - 1], this.seen[0]));
    }
    return true;
  }
  at(step) { // angles between two steps, as far as they are known
    const s = Math.min(step, this.path.length - 1), k = Math.floor(s), next = this.path[Math.min(k + 1, this.path.length - 1)];
    return this.path[k].map((t, a) => t + (s - k) * (next[a] - t));
  }
  now(step) { return this.seen[Math.min(Math.floor(step), this.seen.length - 1)]; }
  get word() { return this.name !== "NTXent" ? "triplet" : this.tau < 0.15 ? "cold" : this.tau < 0.6 ? "mild" : "hot"; }
}
const lanes = new Map();
function lane(name, tau, begin) {
  const key = JSON.stringify([name, tau, begin]);
  if (!lanes.has(key)) lanes.set(key, new Lane(name, tau, begin));
  return lanes.get(key);
}

const STARTS = { // the buttons: how each begins
  "Four classes": {},
  "All in one place": { arc: 0.05 },
  "Views far off": { scatter: 0.9 },
  "Triplet loss": { beside: "Triplet" },
};
const tauOf = (notch) => Number((COLD * (HOT / COLD) ** (notch / NOTCHES)).toPrecision(2));
const USUAL = 8; // notch: τ = 0.05
const hero = { step: 0, playing: false, notch: USUAL, begin: PLAIN, beside: "NTXent", best: null, shown: [null, null], said: "", spoken: 0 };

const few = (n) => ["no", "one", "two", "three", "all four"][n], EVEN = 1.75 * (360 / N); // degrees: the widest gap of images that are said to be even
function clause(of, step) { // what this loss has done, in words that the angles bear out
  const was = of.seen[0].groups, { groups, gap, alignment } = of.now(step), who = `the ${of.word} loss`, even = gap < EVEN;
  const spread = even ? " and spread the images evenly" : "";
  if (was && !groups) return `${who} has spread the images ${even ? "evenly" : "out"}: no gap sets a class apart any more`;
  if (groups < was) return `${who} has spread out ${few(was - groups)} of the classes, which no longer ${was - groups === 1 ? "stands" : "stand"} apart${spread}`;
  if (groups > was) return `${who} has set ${few(groups)} ${groups === 1 ? "class" : "classes"} apart from the others${spread}`;
  const all = was === CLASSES, end = even ? " and has spread the images evenly" : all ? ", in four crowds" : "";
  if (was) return `${who} keeps ${all ? "" : few(was) + " of "}the classes together${end}`;
  return even ? `${who} has spread the images evenly, and no class stands by itself`
    : `${who} has ${alignment > 0.01 ? "not yet brought image and view together" : "spread the images part of the way"}`;
}
function story() {
  const [one, two] = hero.lanes, step = Math.floor(hero.step);
  if (step < 1) return "Sixteen images of four classes, and a view of each. Nothing has moved yet.";
  if (one === two) return `Both circles have the same loss: ${clause(one, step)}.`;
  const said = [one, two].map((of) => clause(of, step)), done = said.map((text) => text.replace(/^the \w+ loss /, ""));
  if (done[0] === done[1]) return `On the left and on the right alike, the loss ${done[1]}.`;
  if (one.word === two.word) return `On the left ${said[0]}; on the right it ${done[1]}.`;
  return `T${said[0].slice(1)}; ${said[1]}.`;
}
const figures = (of, step) => `widest gap ${number(of.now(step).gap, 3)}°`;

function chosen() { // the lanes that belong to the controls
  const tau = tauOf(hero.notch);
  hero.lanes = [lane("NTXent", tau, hero.begin), lane(hero.beside, hero.beside === "NTXent" ? HOT : null, hero.begin)];
  const colour = warm(tau);
  document.documentElement.style.setProperty("--warmth", colour);
  hero.lanes.forEach((of, k) => {
    $(`of${k}`).textContent = of.name === "NTXent" ? `τ = ${number(of.tau)}` : "triplet loss";
    $(`of${k}`).style.setProperty("--own", of.name === "NTXent" ? warm(of.tau) : "var(--soft)");
    $(`word${k}`).textContent = k ? (of.name === "NTXent" ? "hot, to compare" : "has no τ") : `${of.word}, yours`;
  });
  $("tau").value = hero.notch;
  $("tau").setAttribute("aria-valuetext", `τ = ${number(tau)}, ${hero.lanes[0].word}`);
  hero.film?.wake();
}

function say() {
  const step = Math.floor(hero.step), [one, two] = hero.lanes, text = story();
  if (text !== hero.said) $("story").textContent = hero.said = text;
  const now = performance.now();
  if (hero.playing && step > 1 && now - hero.spoken < 250) return; // what changes is laid out again, so not at each frame
  hero.spoken = now;
  const numbers = `Step ${step} of ${STEPS}: ${figures(one, step)} on the left, ${number(two.now(step).gap, 3)}° on the right (even: ${number(360 / N, 3)}°).`;
  if ($("figures").textContent !== numbers) $("figures").textContent = numbers;
  const done = step >= STEPS && one.path.length > STEPS, { even, together, score } = one.now(step);
  if (done && hero.touched && hero.begin === PLAIN) hero.best = hero.best?.score >= score ? hero.best : { score, tau: one.tau };
  $("score").textContent = String(score);
  $("parts").textContent = `of 100: ${done ? "" : "so far "}${percent(even)} even × ${percent(together)} together`;
  $("best").textContent = hero.best ? `your best: ${hero.best.score} at τ = ${number(hero.best.tau)}` : "move the slider";
}

function place(film, k, radius, angle) {
  const { cx, cy } = film.centres[k];
  return [cx + radius * Math.cos(angle), cy - radius * Math.sin(angle)];
}
function drawHero(elapsed) {
  const { film } = hero;
  if (hero.playing) hero.step = Math.min((Math.sqrt(hero.step / STEPS) + elapsed / LASTS) ** 2 * STEPS, STEPS); // slow at first: there most happens
  if (hero.step >= STEPS) play(false);
  const known = hero.lanes.map((of) => of.reach(Math.ceil(hero.step), performance.now() + 8)).every(Boolean);
  if (still && !known) return true; // it shows the end of the way, and no way
  const { g, width, height } = film, half = width / 2, size = Math.min(Math.max(width / 24, 15), 46), small = 0.6 * size;
  const R = Math.min(half, height) / 2 - size * 0.75;
  film.centres = [0, 1].map((k) => ({ cx: half * (k + 0.5), cy: height / 2 }));
  const colours = classes();
  film.stamps ||= SPRITE.complete && Array.from({ length: 2 * N }, (_, a) =>
    stamp(run.points + a, a < N ? size : small, film.dense, colours[(a % N) % CLASSES]));
  film.clear();
  let moving = false;
  hero.lanes.forEach((of, k) => {
    const goal = of.at(hero.step), had = hero.shown[k], ease = still ? 1 : 1 - Math.exp(-elapsed / 70);
    const far = had && had.some((t, a) => Math.abs(goal[a] - t) > 0.002);
    hero.shown[k] = had && far ? had.map((t, a) => t + ease * (goal[a] - t)) : goal;
    moving ||= far;
    const angles = hero.shown[k], { cx, cy } = film.centres[k], colour = of.name === "NTXent" ? warm(of.tau) : ink.soft;
    g.strokeStyle = colour;
    g.globalAlpha = 0.13;
    g.lineWidth = size * 1.3;
    g.beginPath();
    g.arc(cx, cy, R, 0, FULL);
    g.stroke();
    g.globalAlpha = 1;
    g.lineWidth = Math.max(2, size / 12);
    g.strokeStyle = colour;
    g.beginPath();
    g.arc(cx, cy, R, 0, FULL);
    g.stroke();
    const last = Math.min(Math.floor(hero.step), of.path.length - 1), inner = R - size * 0.55 - small * 0.6, every = Math.max(1, last / 24);
    g.lineWidth = Math.max(1.2, size / 22);
    for (let c = 0; c < CLASSES; c++) { // a class's ways, from the middle outwards, and what joins image and view
      g.strokeStyle = colours[c];
      g.globalAlpha = 0.55;
      g.beginPath();
      for (let i = c; last && i < N; i += CLASSES) {
        g.moveTo(...place(film, k, inner * 0.12, of.path[0][i]));
        for (let f = every; f < last - every / 2; f += every) g.lineTo(...place(film, k, inner * (0.12 + 0.75 * (f / last)), of.path[Math.round(f)][i]));
        g.lineTo(...place(film, k, inner * 0.87, angles[i]));
      }
      g.stroke();
      g.globalAlpha = 1;
      g.beginPath();
      for (let i = c; i < N; i += CLASSES) {
        g.moveTo(...place(film, k, inner, angles[i + N]));
        g.lineTo(...place(film, k, R, angles[i]));
      }
      g.stroke();
    }
    if (film.stamps) for (let a = 2 * N - 1; a >= 0; a--) {
      const wide = a < N ? size : small, [x, y] = place(film, k, a < N ? R : inner, angles[a]);
      g.drawImage(film.stamps[a], x - wide / 2, y - wide / 2, wide, wide);
    }
  });
  say();
  return hero.playing || moving || !known;
}

function play(on) {
  if (on && hero.step >= STEPS) hero.step = 0;
  hero.playing = on;
  $("play").textContent = on ? "❚❚ Pause" : hero.step >= STEPS ? "↻ Play again" : "▶ Play";
  if (on) hero.film.wake();
}
function open(label) { // as a button of STARTS begins
  const { tau = USUAL, beside = "NTXent", ...begin } = STARTS[label];
  Object.assign(hero, { notch: tau, beside, begin: Object.keys(begin).length ? { ...PLAIN, ...begin } : PLAIN, step: 0, shown: [null, null] });
  for (const button of document.querySelectorAll("#starts button")) button.setAttribute("aria-pressed", button.dataset.label === label);
  chosen();
  if (still) { hero.step = STEPS; play(false); } else play(true);
  hero.film.wake();
}

const thumbs = Object.entries(STARTS).map(([label, { tau = USUAL, beside = "NTXent", ...begin }]) => {
  const button = html("button", { type: "button", onclick: () => { hero.touched = true; open(label); } }, $("starts"));
  button.dataset.label = label;
  const canvas = html("canvas", { ariaHidden: "true" }, button);
  html("span", {}, button, label);
  const from = Object.keys(begin).length ? { ...PLAIN, ...begin } : PLAIN;
  const of = beside === "NTXent" ? lane("NTXent", tauOf(tau), from) : lane(beside, null, from);
  let time = 0, skip = 0;
  const small = film(canvas, 1, (elapsed) => {
    time += elapsed;
    if (skip++ % (hero.playing ? 10 : 4)) return true; // a small circle needs no sixty frames a second
    of.reach(STEPS, performance.now() + 2);
    const f = still ? 1 : Math.min((time % 7000) / 5500, 1) ** 2, { g, width } = small, R = 0.38 * width, angles = of.at(f * STEPS);
    small.clear();
    g.lineWidth = 2;
    g.strokeStyle = of.name === "NTXent" ? warm(of.tau) : ink.soft;
    g.beginPath();
    g.arc(width / 2, width / 2, R, 0, FULL);
    g.stroke();
    for (let i = 0; i < N; i++) {
      g.fillStyle = classes()[i % CLASSES];
      g.beginPath();
      g.arc(width / 2 + R * Math.cos(angles[i]), width / 2 - R * Math.sin(angles[i]), width / 16, 0, FULL);
      g.fill();
    }
    return !still || of.path.length <= STEPS;
  });
  return { label, of, film: small };
});

hero.film = film($("circles"), 0.5, drawHero);
$("tau").max = NOTCHES;
$("tau").oninput = () => { hero.touched = true; hero.notch = Number($("tau").value); chosen(); };
$("play").onclick = () => { hero.touched = true; play(!hero.playing); hero.film.wake(); };
hero.show = (step) => { play(false); hero.step = step; hero.lanes.forEach((of) => of.reach(step)); hero.shown = [null, null]; hero.film.wake(); };
open("Four classes");

// While nothing else is to be done: the other temperatures, so that the slider finds them ready
const idle = window.requestIdleCallback || ((act) => setTimeout(() => act({ timeRemaining: () => 6 }), 60));
(function ahead() {
  if (hero.playing || document.hidden) return setTimeout(ahead, 500);
  idle((left) => {
    const until = performance.now() + Math.min(left.timeRemaining(), 8);
    for (let notch = 0; notch <= NOTCHES; notch++)
      if (!lane("NTXent", tauOf(notch), PLAIN).reach(STEPS, until)) return ahead();
  });
})();

// ---- the map of a run ------------------------------------------------------------------------------------

const PLACES = unpack(run), LOOKS = run.looks, NEAR = 10, PACE = 10000;
const HUES = ["#0072b2", "#d55e00", "#00926b", "#c4679a", "#c99700", "#56b4e9", "#7a7000", "#8b5fd0", "#767676", "#b04a4a"];
const map = { step: 0, playing: false, begun: false, only: null, hover: -1, shares: [] };
const END = LOOKS[LOOKS.length - 1];

const filled = [];
function filling(k) { // the places on map k, as large as the canvas lets them be, in both directions alike
  if (filled[k]) return filled[k];
  const own = PLACES.subarray(2 * k * run.points, 2 * (k + 1) * run.points), ends = [0, 1].map((c) => {
    const along = own.filter((_, j) => j % 2 === c);
    return [Math.min(...along), Math.max(...along)];
  });
  const wide = Math.max(...ends.map(([low, high]) => high - low));
  return (filled[k] = own.map((v, j) => 0.5 + (v - (ends[j % 2][0] + ends[j % 2][1]) / 2) / wide));
}
function where(step) { // places between two maps: the points slide
  const k = Math.max(LOOKS.findLastIndex((look) => look <= step), 0), next = Math.min(k + 1, LOOKS.length - 1);
  const f = next === k || still ? 0 : Math.min((step - LOOKS[k]) / (LOOKS[next] - LOOKS[k]), 1), n = 2 * run.points;
  const from = filling(k), to = filling(next);
  return { k, places: Array.from({ length: n }, (_, c) => (1 - f) * from[c] + f * to[c]) };
}
function nearest(k, i) { // of image i, on map k
  const of = (j) => PLACES.subarray(2 * (k * run.points + j), 2 * (k * run.points + j) + 2), [x, y] = of(i);
  const far = Array.from({ length: run.points }, (_, j) => [Math.hypot(of(j)[0] - x, of(j)[1] - y), j]);
  return far.filter(([, j]) => j !== i).sort((a, b) => a[0] - b[0]).slice(0, NEAR).map(([, j]) => j);
}
function share(k) { // how many of its ten nearest on map k are of an image's own class, on average
  if (map.shares[k] === undefined) {
    let same = 0;
    for (let i = 0; i < run.points; i++) for (const j of nearest(k, i)) same += run.labels[i] === run.labels[j];
    map.shares[k] = same / run.points;
  }
  return map.shares[k];
}
const kind = (i) => run.class_names[run.labels[i]];

function sayMap(k) {
  const now = share(k), first = share(0), row = Math.max(run.steps.findLastIndex((step) => step <= map.step), 0);
  const text = k === 0 ? `First weights: neighbours are of any class. Of the ten nearest to an image on this map, ${number(first, 2)} are of its class, on average.`
    : `${now < first + 0.5 ? "Neighbours are still of any class" : now < 0.5 * NEAR ? "Images of a class have drawn nearer to each other, though not all" : "Most neighbours are of one class"}: ` +
      `${number(now, 2)} of the ten nearest on this map are of an image's own class. Before training it was ${number(first, 2)}.`;
  if ($("map-story").textContent !== text) $("map-story").textContent = text;
  const curves = run.curves, knn = run.knn[k];
  $("map-figures").textContent = `Loss ${number(curves.loss[row])} (chance ${number(curves.chance[row])}). By all dimensions of the encoder, ` +
    `${number(100 * knn, 2)} % of other test images get their class from their nearest neighbours. No class was ever shown to the loss.`;
  const i = map.hover, near = i >= 0 ? nearest(k, i).filter((j) => run.labels[j] === run.labels[i]).length : 0;
  $("map-image").textContent = i < 0 ? "Point at an image, or tap it." : `${kind(i)}: ${near} of its ten nearest here are ${kind(i)}, too.`;
}

function drawMap(elapsed) {
  const { g, width, height } = map.film, size = Math.min(Math.max(width / 26, 13), 30), edge = size * 0.8;
  if (map.playing) map.step = Math.min(map.step + (elapsed / PACE) * END, END);
  if (map.step >= END) playMap(false);
  const { k, places } = where(map.step);
  map.at = (i) => [edge + (width - 2 * edge) * places[2 * i], height - edge - (height - 2 * edge) * places[2 * i + 1]];
  map.film.stamps ||= SPRITE.complete && run.labels.map((c, i) => stamp(i, size, map.film.dense, HUES[c % HUES.length]));
  map.film.clear();
  if (map.film.stamps) for (let i = 0; i < run.points; i++) {
    const [x, y] = map.at(i);
    g.globalAlpha = map.only === null || run.labels[i] === map.only ? 1 : 0.12;
    g.drawImage(map.film.stamps[i], x - size / 2, y - size / 2, size, size);
  }
  g.globalAlpha = 1;
  if (map.hover >= 0 && SPRITE.complete) {
    const [x, y] = map.at(map.hover), big = Math.min(110, width / 3.4);
    g.strokeStyle = ink.ink;
    g.lineWidth = 1.5;
    for (const j of nearest(k, map.hover)) {
      g.beginPath();
      g.moveTo(x, y);
      g.lineTo(...map.at(j));
      g.stroke();
    }
    const left = Math.min(Math.max(x - big / 2, 2), width - big - 2), top = y > big + 30 ? y - big - 12 : y + 14;
    g.drawImage(stamp(map.hover, big, map.film.dense, HUES[run.labels[map.hover] % HUES.length]), left, top, big, big);
  }
  $("map-step").value = map.step;
  $("map-at").textContent = `step ${Math.round(map.step)}`;
  sayMap(k);
  return map.playing;
}
function playMap(on) {
  if (on && map.step >= END) map.step = 0;
  map.playing = on;
  $("map-play").textContent = on ? "❚❚ Pause" : map.step >= END ? "↻ Train again" : "▶ Train";
  if (on) map.film.wake();
}
const canvas = $("map");
map.film = film(canvas, 1, drawMap);
new IntersectionObserver(([found], watch) => { // it begins once a good part of it is seen
  if (found.intersectionRatio < 0.3) return;
  watch.disconnect();
  if (map.begun) return;
  map.begun = true;
  if (still) map.step = END;
  playMap(!still);
  map.film.wake();
}, { threshold: 0.3 }).observe(canvas);
const point = (e) => {
  const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
  let best = 22;
  map.hover = -1;
  for (let i = 0; map.at && i < run.points; i++) {
    const [px, py] = map.at(i), d = Math.hypot(px - x, py - y);
    if (d < best) [best, map.hover] = [d, i];
  }
  map.film.wake();
};
canvas.onpointermove = canvas.onpointerdown = point;
canvas.onpointerleave = (e) => { if (e.pointerType === "mouse") { map.hover = -1; map.film.wake(); } };
Object.assign($("map-step"), { max: END, oninput: () => { playMap(false); map.begun = true; map.step = Number($("map-step").value); map.film.wake(); } });
$("map-play").onclick = () => playMap(!map.playing);
run.class_names.forEach((name, c) => {
  const button = html("button", { type: "button", ariaPressed: "false", title: "show this class alone, or all again" }, $("kinds"));
  html("i", {}, button).style.background = HUES[c % HUES.length];
  button.append(name);
  button.onclick = () => {
    map.only = map.only === c ? null : c;
    [...$("kinds").children].forEach((other, d) => other.setAttribute("aria-pressed", map.only === d));
    map.film.wake();
  };
});
map.show = (step) => { playMap(false); map.begun = true; map.step = step; map.film.wake(); };
// ---- what the explorers below show: presets that run, here and once pressed --------------------------------

const SECONDS = 2.2;
const fine = Array.from({ length: 101 }, (_, k) => k / 100);
// The way that a preset shows, in parts of a picture and the value that moves, [across, up, value]; and how far it goes
const previews = {
  W(explorer) { // W along τ, from hot to where the preset stands
    const { temperature } = explorer.state, taus = fine.map((f) => 20 * (0.02 / 20) ** f), gates = explorer.gates(taus);
    const of = taus.map((t, k) => [1 - fine[k], gates[k], Number(t.toPrecision(3))]);
    return { name: "temperature", of, until: taus.findLastIndex((t) => t >= temperature) };
  },
  matrix(explorer) { // the ruler, from the best at the left to chance at the right: up to the loss, what is still to be gone
    const { chance, best, learned } = explorer.ruler();
    const of = fine.map((f) => [f, 0.5, Number((best + f * (chance - best)).toPrecision(3))]);
    return { name: "value", of, until: Math.round(100 * (1 - Math.min(Math.max(learned, 0), 1))) };
  },
};
function preset(button, section, explorer) {
  const settings = JSON.parse(button.dataset.set), { state, hidden } = explorer;
  explorer.read(settings);
  const { name, of, until } = previews[explorer.data.name](explorer);
  Object.assign(explorer, { state, hidden });
  const canvas = html("canvas", { ariaHidden: "true" }), hue = (v) => (name === "temperature" ? warm(v) : ink.class1);
  button.prepend(canvas);
  let time = 0;
  const small = film(canvas, 0.4, (elapsed) => {
    time = (time + elapsed) % (2000 * SECONDS);
    const at = Math.round(until * (still ? 1 : Math.min(time / 1000 / SECONDS, 1))), { g, width, height } = small;
    const place = ([x, y]) => [6 + (width - 12) * x, height - 7 - (height - 14) * y];
    small.clear();
    g.lineWidth = 3;
    g.strokeStyle = g.createLinearGradient(6, 0, width - 6, 0);
    for (let f = 0; f <= 1; f += 0.125) g.strokeStyle.addColorStop(f, hue(of[Math.round((of[0][0] ? 1 - f : f) * (of.length - 1))][2]));
    for (const [part, alpha] of [[of, 0.35], [of.slice(0, at + 1), 1]]) { // all of it, and what has been gone
      g.globalAlpha = alpha;
      g.beginPath();
      part.forEach((point) => g.lineTo(...place(point)));
      g.stroke();
    }
    g.fillStyle = hue(of[at][2]);
    g.beginPath();
    g.arc(...place(of[at]), 5, 0, FULL);
    g.fill();
    return !still;
  });
  button.onclick = () => {
    explorer.open(settings);
    const { stage, early } = explorer, tall = stage.offsetHeight; // on a phone it has no box of its own: then its first figure
    const figure = early?.parentElement ?? (tall && tall < innerHeight ? stage : stage.firstElementChild);
    figure.scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
    for (const other of section.querySelectorAll("button")) other.setAttribute("aria-pressed", other === button);
    const run = (explorer.run = {}); // until another is pressed, or a control touched
    explorer.el.addEventListener("input", () => { explorer.run = null; }, { once: true });
    let first = 0;
    const go = (now) => {
      if (explorer.run !== run) return;
      first ||= now;
      const f = (now - first) / 1000 / SECONDS;
      explorer.set(name, f < 1 ? of[Math.round(f * until)][2] : settings[name]);
      if (f < 1) requestAnimationFrame(go);
    };
    if (!still) requestAnimationFrame(go);
  };
}
const { pieces, pages } = JSON.parse(document.getElementById("pages").textContent);
for (const frame of document.querySelectorAll("iframe[data-page]")) {
  frame.onload = () => {
    const { explorer } = frame.contentDocument.getElementById("explorer") ?? {}, section = frame.closest("section");
    if (explorer) for (const button of section.querySelectorAll("[data-set]")) preset(button, section, explorer);
  };
  setTimeout(() => { frame.srcdoc = pages[frame.dataset.page].map((k) => pieces[k]).join(""); }, 200); // once the first picture is there
}
Object.assign(window, { hero, map, thumbs });

SPRITE.src = front.sprite;
