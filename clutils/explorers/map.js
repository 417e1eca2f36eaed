// Images on maps: canvases with one selection; what is drawn once per view is kept as a picture of its own.

import { bytes } from "./places.js";
import { copied, html } from "./tools.js";

const data = JSON.parse(document.getElementById("data").textContent), N = data.names.length, K = data.neighbours;
const $ = (id) => document.getElementById(id), SIDE = 65535, columns = Math.ceil(Math.sqrt(N)), rows = Math.ceil(N / columns);
const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#8c6bb1", "#7a7000", "#e31a1c", "#767676"];
const SPRITE = URL.createObjectURL(new Blob([bytes($("sprite").textContent)], { type: "image/webp" }));
const sprite = new Image(), state = { at: -1, on: 0, chosen: new Set(), lasso: false, colour: data.classes.length > 0, dots: false };
const colour = (k) => (data.labels.length && data.labels[k] >= 0 ? PALETTE[data.labels[k] % PALETTE.length] : "#767676");
const said = (k) => data.names[k] + (data.labels.length && data.labels[k] >= 0 ? ` (${data.classes[data.labels[k]]})` : "");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Map_ {
  constructor(of, number) {
    Object.assign(this, { of, number, scale: 1, dx: 0, dy: 0, pointers: new Map() });
    const place = new Uint16Array(bytes(of.places).buffer);
    this.x = Float32Array.from({ length: N }, (_, k) => place[2 * k] / SIDE);
    this.y = Float32Array.from({ length: N }, (_, k) => 1 - place[2 * k + 1] / SIDE);
    this.nearest = new Uint16Array(bytes(of.nearest).buffer);
    this.similar = new Uint16Array(bytes(of.similar).buffer);
    this.kept = bytes(of.kept);
    this.figure = html("figure", {}, $("maps"));
    const caption = html("figcaption", {}, this.figure, of.name);
    html("span", {}, caption, ` · this map shows ${Math.round(100 * of.share)} % of its own neighbours`);
    this.canvas = html("canvas", { tabIndex: 0, role: "application" }, this.figure);
    this.layer = document.createElement("canvas");
    this.listen();
    new ResizeObserver(() => this.fit()).observe(this.canvas);
  }
  fit() {
    const wide = Math.round(this.canvas.clientWidth * Math.min(devicePixelRatio || 1, 2));
    if (!wide || wide === this.canvas.width) return;
    this.layer.width = this.layer.height = this.canvas.width = this.canvas.height = wide;
    this.paint();
  }
  size() { return Math.max(6, Math.min(64, ((this.canvas.width / Math.sqrt(N)) * 0.8) * Math.sqrt(this.scale))); }
  at(k) {
    const edge = 0.04 * this.canvas.width, inside = this.canvas.width - 2 * edge;
    return [edge + (this.x[k] * this.scale + this.dx) * inside, edge + (this.y[k] * this.scale + this.dy) * inside];
  }
  paint() { // all images, once per view
    const g = this.layer.getContext("2d"), t = this.size(), wide = this.layer.width;
    g.clearRect(0, 0, wide, wide);
    this.canvas.style.touchAction = state.lasso || this.scale > 1 ? "none" : "pan-y"; // a finger scrolls past a whole map
    for (let k = 0; k < N; k++) {
      const [x, y] = this.at(k);
      if (x < -t || y < -t || x > wide + t || y > wide + t) continue;
      if (state.colour && !state.dots) square(g, x, y, t + 3, colour(k));
      shown(g, k, x, y, t);
    }
    this.draw();
  }
  draw() { // the view, and what is chosen upon it
    const g = this.canvas.getContext("2d"), wide = this.canvas.width, t = this.size(), k = state.at;
    g.clearRect(0, 0, wide, wide);
    g.globalAlpha = state.chosen.size ? 0.25 : k >= 0 ? 0.55 : 1;
    g.drawImage(this.layer, 0, 0);
    g.globalAlpha = 1;
    for (const one of state.chosen) {
      shown(g, one, ...this.at(one), t);
    }
    if (k >= 0) {
      const [x, y] = this.at(k), big = Math.max(t, 34);
      for (let j = 0; j < K; j++) {
        const near = this.nearest[K * k + j], kept = this.kept[K * k + j];
        g.setLineDash(kept ? [] : [6, 5]);
        path(g, [[x, y], this.at(near)], kept ? "--blue" : "--red");
        tile(g, near, ...this.at(near), big, kept ? "--blue" : "--red");
      }
      g.setLineDash([]);
      tile(g, k, x, y, big * 1.4, "--ink", 3);
    }
    if (this.loop) path(g, this.loop, "--blue");
    if (this.hover >= 0 && this.hover !== k) {
      const [x, y] = this.at(this.hover), half = Math.max(36, t), inside = (v) => Math.min(Math.max(v, half), wide - half);
      tile(g, this.hover, inside(x + half + 8), inside(y - half - 8), 2 * half, "--ink");
    }
    this.canvas.setAttribute("aria-label", `Map of ${N} images by ${this.of.name}. ` + (k >= 0 ? `Chosen: ${said(k)}` : "Left and right arrows choose an image."));
  }
  spot(e) {
    const box = this.canvas.getBoundingClientRect(), k = this.canvas.width / box.width;
    return [(e.clientX - box.left) * k, (e.clientY - box.top) * k];
  }
  under([x, y]) {
    let best = Math.max(this.size(), 24), found = -1;
    for (let k = 0; k < N; k++) {
      const [u, v] = this.at(k), far = Math.hypot(x - u, y - v);
      if (far < best) [best, found] = [far, k];
    }
    return found;
  }
  zoom([x, y], by) {
    const edge = 0.04 * this.canvas.width, inside = this.canvas.width - 2 * edge, next = Math.min(Math.max(this.scale * by, 1), 40);
    const [a, b] = [(x - edge) / inside, (y - edge) / inside];
    this.dx = a - ((a - this.dx) / this.scale) * next;
    this.dy = b - ((b - this.dy) / this.scale) * next;
    this.scale = next;
    if (next === 1) this.dx = this.dy = 0;
    this.later();
  }
  later() { this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.paint(); }); }
  listen() {
    const c = this.canvas;
    c.onwheel = (e) => { e.preventDefault(); this.zoom(this.spot(e), e.deltaY < 0 ? 1.25 : 0.8); };
    c.onpointerdown = (e) => {
      c.setPointerCapture(e.pointerId);
      this.pointers.set(e.pointerId, [this.spot(e), this.spot(e)]);
      this.moved = false;
      if (state.lasso || e.shiftKey) this.loop = [this.spot(e)];
    };
    c.onpointermove = (e) => {
      const held = this.pointers.get(e.pointerId), now = this.spot(e);
      if (!held) {
        const found = e.pointerType === "touch" ? -1 : this.under(now);
        if (found !== this.hover) {
          this.hover = found;
          this.draw();
          if (found >= 0) $("says").textContent = said(found);
        }
        return;
      }
      if (Math.hypot(now[0] - held[1][0], now[1] - held[1][1]) > 6) this.moved = true;
      if (this.pointers.size === 2) { // two fingers: zoom
        const other = [...this.pointers].find(([id]) => id !== e.pointerId)[1][0];
        const before = Math.hypot(held[0][0] - other[0], held[0][1] - other[1]), after = Math.hypot(now[0] - other[0], now[1] - other[1]);
        if (before > 0) this.zoom([(now[0] + other[0]) / 2, (now[1] + other[1]) / 2], after / before);
      } else if (this.loop) {
        this.loop.push(now);
        this.draw();
      } else if (this.moved && this.scale > 1) {
        const inside = 0.92 * c.width;
        this.dx += (now[0] - held[0][0]) / inside;
        this.dy += (now[1] - held[0][1]) / inside;
        this.later();
      }
      held[0] = now;
    };
    c.onpointerup = c.onpointercancel = (e) => {
      const held = this.pointers.get(e.pointerId);
      this.pointers.delete(e.pointerId);
      if (this.loop) {
        const loop = this.loop;
        this.loop = null;
        if (loop.length > 4) return enclose(this, loop);
      }
      if (held && !this.moved && e.type === "pointerup") choose(this.under(this.spot(e)), this.number);
    };
    c.onpointerleave = () => { this.hover = -1; this.draw(); };
    c.onkeydown = (e) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key], step = { "+": 1.25, "-": 0.8 }[e.key];
      if (by) choose((state.at + by + N) % N, this.number);
      else if (step) this.zoom([c.width / 2, c.width / 2], step);
      else if (e.key === "Escape") choose(-1, this.number);
      else return;
      e.preventDefault();
    };
  }
}

function path(g, points, colour_) {
  Object.assign(g, { strokeStyle: css(colour_), lineWidth: 2 });
  g.beginPath();
  points.forEach((point) => g.lineTo(...point));
  g.stroke();
}
function square(g, x, y, t, colour_) { // around a place
  g.fillStyle = colour_;
  g.fillRect(x - t / 2, y - t / 2, t, t);
}
function tile(g, k, x, y, t, frame, lineWidth = 2) { // an image around a place, t wide
  g.drawImage(sprite, (k % columns) * data.tile, Math.floor(k / columns) * data.tile, data.tile, data.tile, x - t / 2, y - t / 2, t, t);
  if (frame) Object.assign(g, { strokeStyle: css(frame), lineWidth }).strokeRect(x - t / 2, y - t / 2, t, t);
}
const shown = (g, k, x, y, t) => (state.dots ? square(g, x, y, t / 2, colour(k)) : tile(g, k, x, y, t));

function thumbnail(parent, k, side) {
  const made = html("span", { className: "tile" }, parent);
  Object.assign(made.style, { backgroundImage: `url(${SPRITE})`, backgroundSize: `${columns * side}px ${rows * side}px`,
    backgroundPosition: `${-(k % columns) * side}px ${-Math.floor(k / columns) * side}px` });
  return made;
}

function choose(k, number = state.on) {
  state.at = k;
  state.on = number;
  state.chosen = new Set();
  const map = maps[number], list = $("chosen");
  list.replaceChildren();
  if (k < 0) $("says").textContent = "Click an image.";
  else {
    const away = [...map.kept.subarray(K * k, K * k + K)].filter((kept) => !kept).length;
    $("says").textContent = `${said(k)}. By ${map.of.name}, ${away ? `${away} of its ${K} nearest images are not near it on this map (dashed)` : `its ${K} nearest images are near it on this map, too`}.`;
    html("h2", {}, list, `The ${K} nearest by ${map.of.name}`);
    const row = html("div", { className: "row" }, list);
    for (let j = 0; j < K; j++) {
      const near = map.nearest[K * k + j], kept = map.kept[K * k + j];
      const button = html("button", { type: "button", className: kept ? "" : "far", onclick: () => choose(near, number) }, row);
      thumbnail(button, near, 96);
      html("span", {}, button, said(near));
      html("b", {}, button, ` ${((map.similar[K * k + j] * 2) / SIDE - 1).toFixed(2)}${kept ? "" : ", far on the map"}`);
    }
  }
  maps.forEach((each) => each.draw());
}

function enclose(map, loop) { // the images inside a lasso
  const area = new Path2D(), g = map.canvas.getContext("2d");
  for (const point of loop) area.lineTo(...point);
  state.at = -1;
  state.chosen = new Set(data.names.map((_, k) => k).filter((k) => g.isPointInPath(area, ...map.at(k), "evenodd")));
  const list = $("chosen"), names = [...state.chosen].map((k) => data.names[k]);
  list.replaceChildren();
  $("says").textContent = names.length ? `${names.length} images chosen on the map by ${map.of.name}; the other maps show where they are.` : "No image is inside.";
  if (names.length) {
    html("h2", {}, list, `${names.length} files`);
    const text = html("textarea", { readOnly: true, value: names.join("\n"), ariaLabel: "names of the chosen files" }, list);
    const copy = html("button", { type: "button", onclick: async () => {
      copy.textContent = await copied(text) ? "copied" : "not copied: use the keyboard";
    } }, list, "copy the names");
  }
  maps.forEach((each) => each.draw());
}

const maps = data.maps.map((of, number) => new Map_(of, number));
const last = maps[maps.length - 1];
$("lead").textContent = `${N} images on ${maps.length} maps. Click an image: each map joins it to its own ${K} nearest, by its own features; the list below says by which features. ` +
  "Wheel or two fingers zoom, a drag moves, shift and a drag (or the lasso) chooses many.";
$("shares").textContent = `The percentage is the share of each image's ${K} nearest by a map's features that are among its ${data.near} nearest on that map. ` +
  "It says how far to trust a map; it does not compare encoders.";
const toggle = (parent, text, on, act) => {
  const button = html("button", { type: "button", onclick: () => { act(); maps.forEach((map) => map.paint()); press(); } }, parent, text);
  const press = () => button.setAttribute("aria-pressed", on());
  press();
  return press;
};
toggle($("tools"), "lasso", () => state.lasso, () => { state.lasso = !state.lasso; });
toggle($("tools"), "dots", () => state.dots, () => { state.dots = !state.dots; });
if (data.classes.length) toggle($("tools"), "colour by class", () => state.colour, () => { state.colour = !state.colour; });
html("button", { type: "button", onclick: () => maps.forEach((map) => { map.scale = 1; map.dx = map.dy = 0; map.paint(); }) }, $("tools"), "whole map");
html("button", { type: "button", onclick: () => choose(-1) }, $("tools"), "clear");
const used = [...new Set(data.labels)].filter((label) => label >= 0).sort((a, b) => a - b);
if (used.length <= PALETTE.length) for (const label of used) {
  const entry = html("span", {}, $("legend"));
  html("i", {}, entry).style.background = PALETTE[label % PALETTE.length];
  entry.append(data.classes[label]);
}
const tabs = maps.map((map) => html("button", { type: "button", onclick: () => show(map) }, $("tabs"), map.of.name));
const show = (map) => {
  maps.forEach((each, k) => { each.figure.classList.toggle("shown", each === map); tabs[k].setAttribute("aria-pressed", each === map); });
  if (state.at >= 0) choose(state.at, map.number);
};
const listed = (id, images, text) => {
  const button = html("button", { type: "button", onclick: () => choose(images[0], last.number) }, $(id).querySelector(".row"));
  const seen = html("span", { className: images.length > 1 ? "pair" : "" }, button);
  for (const k of images) thumbnail(seen, k, images.length > 1 ? 64 : 96);
  html("span", {}, button, text);
};
const both = (one, other) => `${data.names[one]}, ${data.names[other]}`;
const headed = (id, text) => { $(id).querySelector("summary").textContent = text; };
const more = data.copies > data.duplicates.length ? `, the first ${data.duplicates.length} are listed` : "";
headed("twins", `Duplicates: images with nearly the same pixels as an earlier one (${data.copies}${more})`);
if (!data.copies) $("twins").replaceWith(html("p", {}, null, "No duplicates found: no two images have nearly the same pixels."));
for (const pair of data.duplicates) listed("twins", pair, both(...pair));
headed("alike", `Most similar by these features: ${last.of.name}`);
for (const [one, other, similarity] of data.pairs) listed("alike", [one, other], `${both(one, other)}: ${similarity.toFixed(3)}`);
headed("loners", `Least similar to any other, by ${last.of.name} (the median similarity to the nearest is ${data.median.toFixed(2)})`);
for (const [one, similarity] of data.alone) listed("loners", [one], `${said(one)}: nearest ${similarity.toFixed(2)}`);
sprite.onload = () => maps.forEach((map) => map.paint());
sprite.src = SPRITE;
show(last);
choose(-1, last.number);
