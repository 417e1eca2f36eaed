// Points on a circle, two views of each image: where they begin, what a loss does to them, what is measured.

import { loss } from "./losses.js";
import { random } from "./tools.js";

export const STEPS = 300, FULL = 2 * Math.PI, DIGITS = 36 ** 3; // of a dragged point: a place in three letters
const LONGEST = 0.2;

export function start(state) { // angles of 2N points, those of view 1 first
  const { pictures: N, classes, scatter, arc, seed } = state, draw = random(seed + 1), angles = new Float64Array(2 * N);
  if (state.at.length === 6 * N)
    return angles.map((_, a) => (parseInt(state.at.slice(3 * a, 3 * a + 3), 36) / DIGITS) * FULL);
  const centre = (c) => Math.PI / 2 + arc * FULL * ((c + 0.5) / classes - 0.5);
  for (let i = 0; i < N; i++) {
    const wide = (classes > 1 ? 0.22 : 0.3 * 2.9) * arc * FULL / classes;
    const own = centre(i % classes) + wide * (classes > 1 ? draw.normal() / 2 : 2 * draw() - 1);
    angles[i] = own + scatter * draw.normal();
    angles[i + N] = own + scatter * draw.normal();
  }
  return angles;
}

// Value, and what draws and drives each point along the circle: sums over all anchors that it takes part in.
// lane: { name and p of the loss, opposite: are pairs taken one way, by: are the positives those of the class }
export function forces({ name, p, opposite, by }, { pictures: N, classes }, angles) {
  const all = 2 * N;
  const x = angles.map(Math.cos), y = angles.map(Math.sin), pulled = new Float64Array(all), pushed = new Float64Array(all);
  const batch = new Float64Array(N);
  for (let i = 0; i < N; i++) batch[i] = x[i] * x[i + N] + y[i] * y[i + N];
  const positives = [], negatives = [];
  let value = 0;
  for (let a = 0; a < all; a++) {
    positives.length = negatives.length = 0;
    for (let b = 0; b < all; b++) {
      if (b === a) continue;
      const same = a % N === b % N;
      if (by ? (a % N) % classes === (b % N) % classes : same) positives.push(b);
      else if (by || !opposite || a < N !== b < N) negatives.push(b);
    }
    const s = new Float64Array(positives.length), n = new Float64Array(negatives.length);
    for (let i = 0; i < s.length; i++) s[i] = x[a] * x[positives[i]] + y[a] * y[positives[i]];
    for (let j = 0; j < n.length; j++) n[j] = x[a] * x[negatives[j]] + y[a] * y[negatives[j]];
    const found = loss(name, p, s, n, null, batch);
    value += found.value / all;
    const turn = (into, b, force) => {
      const along = force * (y[a] * x[b] - x[a] * y[b]);
      into[a] -= along;
      into[b] += along;
    };
    for (let i = 0; i < s.length; i++) turn(pulled, positives[i], found.pull[i]);
    for (let j = 0; j < n.length; j++) turn(pushed, negatives[j], -found.push[j]);
  }
  return { value, pulled, pushed };
}

// The angles one step later, as clutils.course.sphere.move takes it; unit: τ, where steps are in proportion to it
export const moved = (angles, { pulled, pushed }, rate, unit) => angles.map((t, a) =>
  t + Math.atan(Math.min(Math.max(rate * unit * (pulled[a] + pushed[a]), -LONGEST), LONGEST)));

export function measured({ pictures: N, classes }, angles) { // of view 1: alignment with view 2, uniformity, tolerance, the widest gap
  let apart = 0, crowd = 0, alike = 0, pairs = 0;
  for (let i = 0; i < N; i++) {
    apart += (2 - 2 * Math.cos(angles[i] - angles[i + N])) / N;
    for (let j = 0; j < N; j++) {
      if (i === j) continue;
      const s = Math.cos(angles[i] - angles[j]);
      crowd += Math.exp(4 * s - 4);
      if (i % classes === j % classes) { alike += s; pairs++; }
    }
  }
  const sorted = [...angles.slice(0, N)].map((t) => ((t % FULL) + FULL) % FULL).sort((a, b) => a - b);
  const gap = sorted.reduce((most, t, k) => Math.max(most, (k ? t : t + FULL) - sorted[k ? k - 1 : N - 1]), 0);
  return { alignment: apart, uniformity: Math.log(crowd / N / (N - 1)), tolerance: pairs ? alike / pairs : NaN,
    gap: (gap / FULL) * 360 };
}
