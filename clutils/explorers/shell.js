// What every explorer shares: controls, the state in the link's hash, charts in SVG.

import { copied, html, number, seen, warm } from "./tools.js";

const words = { true: true, false: false, none: null, None: null, inf: Infinity };

export function svg(tag, attributes = {}, parent = null, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  parent?.append(made);
  return made;
}

export function spot(root, event) { // where a pointer is, in units of an SVG's viewBox
  const r = root.getBoundingClientRect(), k = root.viewBox.baseVal.width / r.width;
  return [(event.clientX - r.left) * k, (event.clientY - r.top) * k];
}
// A finger that goes sideways drags, from what it grabs in any direction; else one that goes up or down scrolls the
// page, and changes nothing
export function dragged(root, start, move = start, stop = () => {}, grabs = () => false) {
  let from = null, on = false;
  const begun = (e) => { on = true; start(e); };
  root.classList.add("drag");
  root.addEventListener("touchstart", (e) => grabs(e.changedTouches[0]) && e.preventDefault(), { passive: false });
  root.onpointerdown = (e) => {
    from = e;
    root.setPointerCapture(e.pointerId);
    if (e.pointerType !== "touch" || grabs(e)) begun(e);
  };
  root.onpointermove = (e) => {
    if (from && !on && Math.abs(e.clientX - from.clientX) >= 8) begun(from);
    if (on) move(e);
  };
  root.onpointerup = root.onpointercancel = (e) => {
    if (from && !on && e.type === "pointerup") start(e); // a tap
    stop();
    from = on = null;
  };
}

export function keys(root, moves, act) { // with the keyboard's focus on it: act(what a key moves)
  root.setAttribute("tabindex", 0);
  root.onkeydown = (e) => {
    if (!moves[e.key]) return;
    e.preventDefault();
    act(moves[e.key]);
  };
}

// ---- axes ------------------------------------------------------------------------------------------------

export class Chart {
  // A frame of width by height units with two axes: { low, high, log, ticks, label }
  constructor(parent, { title, width = 340, height = 250, x, y, left = 46, foot = 40 }) {
    this.root = svg("svg", { role: "img" }, parent);
    this.head = svg("text", { y: 16, class: "title" }, this.root, title);
    this.frame = svg("g", {}, this.root);
    const clip = `inside${(Chart.made = (Chart.made || 0) + 1)}`;
    this.hole = svg("rect", {}, svg("clipPath", { id: clip }, svg("defs", {}, this.root)));
    this.inside = svg("g", { "clip-path": `url(#${clip})` }, this.root);
    const fit = (wide, tall) => {
      const bottom = tall - foot;
      this.box = { left, right: wide - 10, top: 26, bottom };
      this.root.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
      this.head.setAttribute("x", wide < 260 ? 2 : left);
      for (const [name, v] of Object.entries({ x: left, y: 22, width: wide - 10 - left, height: bottom - 18 }))
        this.hole.setAttribute(name, v);
    };
    fit(width, height);
    this.say("");
    this.axes(x, y);
    // a frame has little room: there a chart is drawn as wide as it stands, for its text to stay readable
    if (parent.closest(".framed")) new ResizeObserver(() => {
      const wide = Math.max(190, Math.round(this.root.getBoundingClientRect().width));
      if (wide === this.box.right + 10) return;
      fit(wide, Math.round(height * Math.min(Math.max(wide / 340, 0.7), 0.85)));
      this.axes(this.x, this.y);
      this.root.dispatchEvent(new Event("fitted", { bubbles: true }));
    }).observe(this.root);
  }
  say(text) { // what a chart shows now, for who doesn't see it
    this.root.setAttribute("aria-label", [this.head.textContent, text].filter(Boolean).join(": "));
  }
  axes(x, y) {
    const key = JSON.stringify([x, y, this.box]);
    if (key === this.key) return;
    this.key = key;
    [this.x, this.y] = [x, y];
    const { left, right, top, bottom } = this.box;
    this.frame.replaceChildren();
    for (const t of ticks(x, right - left)) {
      svg("line", { x1: this.X(t), x2: this.X(t), y1: top, y2: bottom, class: "grid" }, this.frame);
      svg("text", { x: this.X(t), y: bottom + 15, class: "tick" }, this.frame, tick(t));
    }
    for (const t of ticks(y, bottom - top)) {
      svg("line", { x1: left, x2: right, y1: this.Y(t), y2: this.Y(t), class: "grid" }, this.frame);
      svg("text", { x: left - 5, y: this.Y(t) + 4, class: "tick end" }, this.frame, tick(t));
    }
    svg("text", { x: (left + right) / 2, y: bottom + 32, class: "label" }, this.frame, x.label);
    if (y.label)
      svg("text", { transform: `translate(7,${(top + bottom) / 2}) rotate(-90)`, class: "label" }, this.frame, y.label);
  }
  X(v) { return this.box.left + share(this.x, v) * (this.box.right - this.box.left); }
  Y(v) { return this.box.bottom - share(this.y, v) * (this.box.bottom - this.box.top); }
  at(event) { // where a pointer is, in the axes' own numbers
    const [x, y] = spot(this.root, event), { left, right, top, bottom } = this.box;
    return [value(this.x, (x - left) / (right - left)), value(this.y, (bottom - y) / (bottom - top))];
  }
  line(look) { return svg("path", { class: `line ${look}` }, this.inside); }
  trace(xs, ys) {
    let d = "", pen = "M";
    for (let i = 0; i < xs.length; i++) {
      if (!isFinite(ys[i])) { pen = "M"; continue; }
      const y = Math.min(Math.max(this.Y(ys[i]), -999), 1999);
      d += `${pen}${this.X(xs[i]).toFixed(1)} ${y.toFixed(1)}`;
      pen = "L";
    }
    return d;
  }
}
const share = (a, v) => (a.log ? Math.log(v / a.low) / Math.log(a.high / a.low) : (v - a.low) / (a.high - a.low));
const value = (a, f) => (a.log ? a.low * (a.high / a.low) ** f : a.low + f * (a.high - a.low));
const tick = (t) => (t >= 1000 ? `${number(t / 1000)}k` : number(t));

function ticks(a, room = 340) {
  if (a.ticks) return a.ticks;
  if (a.log) {
    const found = [], wide = a.high / a.low > 3e3 || room < 200;
    for (let e = Math.floor(Math.log10(a.low)); e <= Math.log10(a.high); e++)
      for (const m of wide ? [1] : [1, 3])
        if (m * 10 ** e >= a.low * 0.999 && m * 10 ** e <= a.high * 1.001) found.push(Number((m * 10 ** e).toPrecision(3)));
    return found;
  }
  const rough = (a.high - a.low) / (room < 70 ? 2 : 4), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= rough), found = [];
  for (let k = Math.ceil(a.low / step - 1e-9); k * step <= a.high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(6)));
  return found;
}

export const bar = (x, y, wide, high) => // as a path
  `M${x.toFixed(1)} ${y.toFixed(1)}h${wide.toFixed(1)}v${high.toFixed(1)}h${(-wide).toFixed(1)}Z`;

// One path for many marks: class k has its own shape, so that it is known without its colour
export function mark(shape, x, y, r) {
  const p = (a, b) => `${(x + a * r).toFixed(1)} ${(y + b * r).toFixed(1)}`;
  if (shape % 8 === 0) return `M${p(-1, 0)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  const corners = [[-0.88, -0.88, 0.88, -0.88, 0.88, 0.88, -0.88, 0.88], [0, -1.15, 1.1, 0.8, -1.1, 0.8], [0, -1.3, 1.1, 0, 0, 1.3, -1.1, 0],
    [0, 1.15, 1.1, -0.8, -1.1, -0.8], [-0.4, -1.1, 0.4, -1.1, 0.4, -0.4, 1.1, -0.4, 1.1, 0.4, 0.4, 0.4, 0.4, 1.1, -0.4, 1.1, -0.4, 0.4, -1.1, 0.4, -1.1, -0.4, -0.4, -0.4],
    [-1.2, -0.6, 1.2, -0.6, 1.2, 0.6, -1.2, 0.6], [-0.6, -1.2, 0.6, -1.2, 0.6, 1.2, -0.6, 1.2]][(shape % 8) - 1];
  let d = "";
  for (let i = 0; i < corners.length; i += 2) d += `${i ? "L" : "M"}${p(corners[i], corners[i + 1])}`;
  return `${d}Z`;
}

// ---- state and controls ----------------------------------------------------------------------------------

// Of a menu of losses: the settings of the one that is chosen, under names with the menu's prefix
function controls(data, state) {
  return data.settings.flatMap((c) => {
    const chosen = c.prefix === undefined ? null : data.losses[state[c.name]];
    return chosen ? [c, ...chosen.settings.map((own) => ({ ...own, name: c.prefix + own.name, of: own.name }))] : [c];
  });
}

export function settingsOf(app, menu) { // a chosen loss's hyper-parameters, by their names in Python
  const { prefix } = app.data.settings.find((c) => c.name === menu), found = {};
  for (const own of app.data.losses[app.state[menu]].settings) found[own.name] = app.state[prefix + own.name];
  return found;
}

export function named(app, menu) { // the loss and its settings, as a title says it
  const of = app.data.losses[app.state[menu]], p = settingsOf(app, menu);
  const said = of.settings.filter((c) => c.kind !== "switch" && p[c.name] !== null);
  return [of.title, ...said.map((c) => `${c.symbol || c.name} = ${number(p[c.name])}`)].join(", ");
}

function accepted(control, given) {
  let v = typeof given === "string" && given in words && control.kind !== "menu" ? words[given] : given;
  if (control.kind === "menu") return control.options.some(([name]) => name === v) ? v : control.default;
  if (control.kind === "switch") return v === true;
  if (control.kind === "text") return new RegExp(`^(?:${control.form})$`).test(v ?? "") ? String(v ?? "") : "";
  if (control.also?.includes(written(v))) return v;
  v = v === null ? NaN : Number(v);
  if (!isFinite(v)) return control.default;
  v = Math.min(Math.max(v, control.low), control.high);
  return control.whole ? Math.round(v) : v;
}

const written = (v) => (v === null ? "none" : v === Infinity ? "inf" : String(v));

class Slider { // from positions 0 to 1000 to values; one step beyond the ends for none and infinity
  constructor(control) { Object.assign(this, control); }
  get step() { return this.whole ? 1 : Number(((this.dial[1] - this.dial[0]) / 100).toPrecision(1)); }
  get steps() {
    if (this.values) return this.values.length - 1;
    return this.how === "log" ? 400 : Math.round((this.dial[1] - this.dial[0]) / this.step);
  }
  get ends() { return [this.also?.includes("none") ? -1 : 0, this.steps + (this.also?.includes("inf") ? 1 : 0)]; }
  value(at) {
    if (at < 0) return null;
    if (at > this.steps) return Infinity;
    if (this.values) return this.values[at];
    const [low, high] = this.dial;
    const v = this.how === "log" ? low * (high / low) ** (at / this.steps) : low + at * this.step;
    return this.whole ? Math.round(v) : Number(v.toPrecision(this.how === "log" ? 3 : 6));
  }
  position(v) { // where the nearest value is
    if (v === null) return -1;
    if (v === Infinity) return this.steps + 1;
    let best = 0;
    for (let at = 1; at <= this.steps; at++) if (Math.abs(this.value(at) - v) < Math.abs(this.value(best) - v)) best = at;
    return best;
  }
}

// The page of an explorer: { build(app), draw(app) -> sentence, shown(app, name), fresh(app, name) }
export function explore(model, el, page, compare = null) {
  const { data } = model, app = { data, state: {}, page, el, said: "", inputs: {}, hidden: new Set() };
  el.classList.add("explorer");
  app.still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  app.framed = model.framed;
  // in a frame nothing plays by itself, for the text around it asks first; unless the frame is there to move
  app.calm = app.still || (app.framed && !model.frame?.hasAttribute("data-plays"));
  el.addEventListener("fitted", () => app.refresh());
  html("h1", {}, el, data.title);
  const lead = html("p", { className: "lead" }, el, data.lead);
  app.stage = html("div", { className: "stage" }, el);
  app.sentence = html("p", { className: "says", role: "status" }, el);
  app.form = html("form", { className: "controls", onsubmit: () => false }, el);
  const foot = html("footer", {}, el);

  app.read = (given) => {
    app.hidden = new Set(String(given.hide ?? data.defaults.hide ?? "").split(",").filter(Boolean));
    app.state = {};
    for (let round = 0; round < 2; round++) // the menus first: they bring further settings
      for (const c of controls(data, { ...app.state }))
        if (!(c.name in app.state)) app.state[c.name] = accepted(c, given[c.name] ?? data.defaults[c.name] ?? c.default);
  };
  app.set = (name, v) => {
    const found = controls(data, app.state).find((c) => c.name === name);
    if (!found) return;
    app.state[name] = accepted(found, v);
    for (const c of controls(data, app.state)) app.state[c.name] ??= c.default;
    if (page.fresh) page.fresh(app, name);
    app.refresh();
  };
  app.refresh = () => {
    lay(app);
    if (!app.waiting) app.waiting = requestAnimationFrame(() => { app.waiting = 0; app.draw(); });
  };
  app.draw = () => {
    const said = page.draw(app);
    if (said !== app.said) app.sentence.textContent = app.said = said;
    model.save(app.link());
    app.linked?.();
  };
  app.link = (start = data.defaults) => { // what differs from the page as it was made, or from another
    const found = {};
    for (const c of controls(data, app.state)) {
      const first = start[c.name] ?? c.default, now = app.state[c.name];
      if (written(now) !== written(first)) found[c.name] = written(now);
    }
    const hide = [...app.hidden].join(",");
    if (hide !== (start.hide || "")) found.hide = hide;
    return found;
  };
  app.read(model.settings());
  lead.hidden = app.hidden.has("lead");
  page.build(app);
  app.compared = compare ? compare(data) : "";
  sharing(app, foot, model);
  app.open = (settings) => { // as a link with these settings opens
    app.read(settings);
    if (page.fresh) page.fresh(app, null);
    app.refresh();
  };
  addEventListener("hashchange", () => app.open(model.settings()));
  lay(app);
  app.draw();
  el.explorer = app;
  if (model.frame) {
    new ResizeObserver(() => { model.frame.style.height = `${el.offsetHeight + 4}px`; }).observe(el);
    const still = model.frame.nextElementSibling; // shown where no script runs
    if (still?.classList.contains("still")) still.style.display = "none";
  }
  return app;
}

// The first picture moves, until it is touched: at(f) sets the state for f from 0 to 1
export function begin(app, milliseconds, at) {
  if (app.calm || Object.keys(app.link()).length) return;
  app.moving = true;
  app.el.addEventListener("input", () => {
    if (app.moving) at(1); // whoever touches it finds it where it was going
    app.moving = false;
  }, { capture: true, once: true });
  let first = 0;
  const go = () => {
    if (!app.moving) return;
    first ||= performance.now();
    const f = Math.min((performance.now() - first) / milliseconds, 1);
    at(f);
    app.refresh();
    if (f < 1) requestAnimationFrame(go);
    else app.moving = false;
  };
  seen(app.el, () => requestAnimationFrame(go));
}

function lay(app) { // the controls that there are now; an input that stays is kept, with its focus
  const wanted = controls(app.data, app.state).filter(
    (c) => c.kind !== "text" && !app.hidden.has(c.name) && (!app.only || app.only.includes(c.name)) && (!app.page.shown || app.page.shown(app, c.name)));
  const key = wanted.map((c) => c.name + (c.symbol || "") + c.label).join();
  if (key !== app.laid) {
    app.laid = key;
    const kept = app.inputs;
    app.inputs = {};
    for (const c of wanted) {
      const same = kept[c.name];
      app.inputs[c.name] = same && same.label === c.label && same.symbol === c.symbol ? same : control(app, c);
    }
    const early = wanted.filter((c) => app.early && app.page.early(app, c.name));
    app.early?.replaceChildren(...early.map((c) => app.inputs[c.name].row));
    app.form.replaceChildren(...wanted.filter((c) => !early.includes(c)).map((c) => app.inputs[c.name].row));
    if (app.buttons && !app.hidden.has("buttons")) app.form.prepend(app.buttons());
  }
  for (const c of wanted) app.inputs[c.name].show(app.state[c.name]);
  app.form.hidden = !app.form.children.length;
}

function control(app, c) {
  const row = html("label", { className: `row ${c.kind}` });
  const text = html("span", { className: "name", title: c.about || "" }, row, c.label);
  if (c.prefix === undefined && c.of && c.name !== c.of) text.classList.add("second");
  const name = c.name, made = { row, label: c.label, symbol: c.symbol };
  if (c.kind === "menu") {
    const input = html("select", { name, onchange: () => app.set(name, input.value) }, row);
    for (const [key, label] of c.options) html("option", { value: key }, input, label);
    made.show = (v) => { input.value = v; };
  } else if (c.kind === "switch") {
    const input = html("input", { type: "checkbox", name, onchange: () => app.set(name, input.checked) });
    row.prepend(input);
    made.show = (v) => { input.checked = v; };
  } else if (c.kind === "number") {
    const input = html("input", { type: "number", name, step: c.whole ? 1 : "any",
      onchange: () => app.set(name, input.value === "" ? "none" : input.value) }, row);
    made.show = (v) => { if (document.activeElement !== input || v !== Number(input.value)) input.value = v ?? ""; };
  } else {
    const slider = new Slider(c), [min, max] = slider.ends;
    const input = html("input", { type: "range", name, min, max, step: 1,
      oninput: () => app.set(name, slider.value(Number(input.value))) }, row);
    if ((c.of ?? c.name) === "temperature") input.classList.add("tau"); // its track goes from cold to hot
    let kept; // a finger that scrolls away from a slider leaves it as it was
    input.onpointerdown = () => (kept = app.state[name]);
    input.onpointercancel = () => app.set(name, kept);
    const out = html("output", {}, row);
    made.show = (v) => {
      if (slider.value(Number(input.value)) !== v) input.value = slider.position(v);
      out.textContent = v === null ? "none" : number(v, 4);
      if (v > 0) input.style.setProperty("--warmth", warm(v));
      input.setAttribute("aria-valuetext", `${c.label} ${out.textContent}`);
    };
  }
  return made;
}

function sharing(app, foot, model) {
  if (app.hidden.has("share")) return;
  const box = html("details", { className: "share" }, foot);
  html("summary", {}, box, "Link, and a reduced page");
  const row = html("p", { className: "copy" }, box);
  const link = html("input", { type: "text", readOnly: true, title: "link" }, row);
  const copy = html("button", { type: "button" }, row, "copy link");
  html("p", {}, box, "It opens this page in its present state, without the ticked controls:");
  const list = html("p", { className: "hide" }, box);
  const address = () => model.link(app.link(model.start));
  const fill = () => {
    link.value = address();
    list.replaceChildren();
    for (const c of [...controls(app.data, app.state).filter((x) => x.kind !== "text"), { name: "share", label: "this box" }]) {
      const label = html("label", {}, list);
      const tick_ = html("input", { type: "checkbox", checked: app.hidden.has(c.name) }, label);
      label.append(` ${c.label}`);
      tick_.onchange = () => {
        app.hidden[tick_.checked ? "add" : "delete"](c.name);
        link.value = address();
        if (c.name !== "share") app.refresh();
      };
    }
  };
  box.ontoggle = fill;
  app.linked = () => box.open && fill();
  copy.onclick = async () => {
    link.value = address();
    copy.textContent = await copied(link) ? "copied" : "not copied";
    setTimeout(() => (copy.textContent = "copy link"), 1500);
  };
  if (app.data.qr) {
    html("div", { className: "qr", innerHTML: app.data.qr }, box);
    html("p", {}, box, `${app.data.base}, as this page was made`);
  }
  html("p", { className: "source" }, foot, `${app.data.source} ${app.compared || ""}`);
}

// ---- a model for a page without a kernel: settings live in the link's hash, in a frame in its data-state ---

export class PageModel {
  constructor(data, name) {
    Object.assign(this, { data, name });
    try { this.frame = window.frameElement; } catch { this.frame = null; }
    this.framed = window.parent !== window;
    const own = document.documentElement, around = this.around = this.frame?.ownerDocument.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)"); // unless a book around has a switch of its own
    const take = () => { // a book says it, JupyterLab says it, or the reader's machine
      const lab = this.frame?.ownerDocument.body.dataset.jpThemeLight, told = around?.dataset.theme;
      own.dataset.theme = told || ((lab ? lab === "false" : dark.matches) ? "dark" : "light");
    };
    take();
    dark.onchange = take;
    if (around) new MutationObserver(take).observe(around, { subtree: true, attributeFilter: ["data-theme", "data-jp-theme-light"] });
    own.classList.add(this.framed ? "framed" : "alone"); // framed, on a phone: picture and controls on one screen
    addEventListener("keydown", (e) => e.key === "Escape" && this.frame?.closest(".jp-Cell")?.focus()); // to the notebook
  }
  settings() { return Object.fromEntries(new URLSearchParams(this.framed ? this.frame?.dataset.state : location.hash.slice(1))); }
  save(settings) {
    clearTimeout(this.later); // a browser allows some hundred changes of the link a minute
    this.later = setTimeout(() => {
      const text = this.hash(settings);
      document.documentElement.dataset.state = text;
      if (this.frame) this.frame.dataset.state = text;
      else if (!this.framed && location.hash.slice(1) !== text) history.replaceState(null, "", `#${text}`);
    }, 200);
  }
  hash(settings) { return String(new URLSearchParams(settings)).replace(/%2C/g, ","); }
  get start() { return this.framed || this.data.base ? this.data.plain : undefined; } // of the page that a link opens
  link(settings) {
    const text = this.hash(settings), book = this.around?.dataset.content_root; // a book has these pages in explorers/
    const here = book ? new URL(`${book}explorers/${this.name}.html`, this.frame.baseURI).href : this.framed || !location.protocol.match(/^(http|file)/) ? `${this.name}.html` : location.href.split("#")[0];
    return (this.data.base || here) + (text ? `#${text}` : "");
  }
}
