// Numbers and elements that every page needs.

export const put = (path, d) => path.setAttribute("d", d);

export function html(tag, attributes = {}, parent = null, text = "") {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  if (text !== "") made.textContent = text;
  parent?.append(made);
  return made;
}

export function number(x, digits = 3) {
  if (x === null || x === undefined || Number.isNaN(x)) return "none";
  if (!isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (Number.isInteger(x) && Math.abs(x) < 1e6) return x.toLocaleString("en").replace("-", "−");
  const size = Math.abs(x);
  const said = size !== 0 && (size < 1e-3 || size >= 1e5) ? x.toExponential(digits - 1)
    : String(Number(x.toPrecision(digits)));
  return said.replace(/-/g, "−").replace("e+", "e");
}
export function percent(x) { // no part is said to be all
  const short = number(100 * x, 2);
  return x < 0.001 && x > 0 ? "< 0.1 %" : x >= 0.9995 && x < 1 ? "> 99.9 %" : `${x < 1 && short === "100" ? number(100 * x, 3) : short} %`;
}
export const equals = (W) => (W < 1 && number(W) === "1" ? "> 0.999" : `= ${number(W)}`); // nor a gate to be open that is not

export function random(seed) { // mulberry32: the same numbers in every browser
  let a = (seed * 2654435769) >>> 0;
  const draw = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  draw.normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  return draw;
}

export async function copied(input) { // its text, to paste it elsewhere; false where the browser does not let it
  input.select();
  try { await navigator.clipboard.writeText(input.value); } catch { return document.execCommand("copy"); }
  return true;
}

export function seen(el, act) { // once some of it is on the screen
  new IntersectionObserver(([found], watch) => {
    if (!found.isIntersecting) return;
    watch.disconnect();
    act();
  }).observe(el);
}

// Colour of a temperature, by its logarithm: cold blue at 0.02, hot orange at 2, as clutils.figures.style.temperature
const RAMP = [[0, 114, 178], [138, 90, 148], [213, 94, 0]]; // #0072B2, #8A5A94, #D55E00
export function warm(tau) {
  const f = Math.min(Math.max((Math.log10(tau) + 1.7) / 2, 0), 1) * 2, k = Math.min(Math.floor(f), 1);
  return `rgb(${RAMP[k].map((v, c) => Math.round(v + (f - k) * (RAMP[k + 1][c] - v))).join(", ")})`;
}
// of a line: brighter on a dark page, and grey where a loss has no temperature
export const tint = (tau) => (tau > 0 ? `color-mix(in srgb, ${warm(tau)}, var(--ink) var(--lift))` : "var(--soft)");
