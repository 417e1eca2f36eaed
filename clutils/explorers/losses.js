// Losses of level "similarity", from their papers' formulas: an anchor's value. Its forces are that value's
// gradient, by autograd: what a formula does is remembered, and walked back.
//
// A loss takes p (hyper-parameters by their names in Python), and of an anchor s (similarities to the positives),
// n (to the negatives), m (how many negatives lie at each n; null: one), N (how many negatives in all) and batch
// (the positives of the whole batch, plain numbers, which a few losses look at).

const total = (x, m) => {
  let sum = 0;
  for (let j = 0; j < x.length; j++) sum += m ? m[j] * x[j] : x[j];
  return sum;
};
const average = (x) => total(x) / x.length;
const soft = (c) => (c > 0 ? c + Math.log1p(Math.exp(-c)) : Math.log1p(Math.exp(c)));
export const sigmoid = (c) => (c >= 0 ? 1 / (1 + Math.exp(-c)) : Math.exp(c) / (1 + Math.exp(c)));

// log sum exp of logits(j), and the share of each single negative: the shares, times m, sum to one
export function softmax(n, m, logit) {
  const share = new Float64Array(n.length);
  let largest = -Infinity, sum = 0;
  for (let j = 0; j < n.length; j++) {
    share[j] = logit(n[j], j);
    if (share[j] > largest && (!m || m[j] > 0)) largest = share[j];
  }
  for (let j = 0; j < n.length; j++) {
    share[j] = !m || m[j] > 0 ? Math.exp(share[j] - largest) : 0;
    sum += m ? m[j] * share[j] : share[j];
  }
  for (let j = 0; j < n.length; j++) share[j] /= sum;
  return { log: largest + Math.log(sum), share };
}

// ---- autograd: numbers that remember how they were made -------------------------------------------------------

let tape = [];

// `of` holds one number or several; `slope`, once the tape is walked back, the loss's derivative by each.
// Only what is made `from` something that moves has one to hand back.
function made(of, from = [], back = () => {}) {
  const value = { of, slope: new Float64Array(of.length), back, moves: from.some((x) => x.moves) };
  if (value.moves) tape.push(value);
  return value;
}
const held = (x) => (x.of ? x : { of: [x], slope: [0] }); // a plain number takes part, too

const each = (f, slope) => (a) => { // slope(x, y): of y = f(x)
  const of = new Float64Array(a.of.length);
  for (let i = 0; i < of.length; i++) of[i] = f(a.of[i]);
  return made(of, [a], (found) => {
    for (let i = 0; i < of.length; i++) a.slope[i] += found.slope[i] * slope(a.of[i], of[i]);
  });
};

const both = (f, first, second) => (a_, b_) => { // entry by entry; one number goes with each of the other's
  const a = held(a_), b = held(b_), i = a.of.length === 1 ? 0 : 1, j = b.of.length === 1 ? 0 : 1;
  const of = new Float64Array((i ? a : b).of.length);
  for (let k = 0; k < of.length; k++) of[k] = f(a.of[k * i], b.of[k * j]);
  return made(of, [a, b], ({ slope }) => {
    for (let k = 0; k < of.length; k++) {
      const x = a.of[k * i], y = b.of[k * j];
      if (a.moves) a.slope[k * i] += slope[k] * first(x, y);
      if (b.moves) b.slope[k * j] += slope[k] * second(x, y);
    }
  });
};
const plus = both((x, y) => x + y, () => 1, () => 1);
const minus = both((x, y) => x - y, () => 1, () => -1);
const times = both((x, y) => x * y, (x, y) => y, (x) => x);
const larger = both(Math.max, (x, y) => (x >= y ? 1 : 0), (x, y) => (x >= y ? 0 : 1));
const exp = each(Math.exp, (_, y) => y);
const expm1 = each(Math.expm1, (_, y) => y + 1);
const sqrt = each(Math.sqrt, (_, y) => 0.5 / y);
const softplus = each(soft, sigmoid);
const logOfRest = each((x) => (x < -1e-30 ? Math.log(-Math.expm1(x)) : -Infinity), // log(1 - exp x)
  (x) => (x < -1e-30 ? -1 / Math.expm1(-x) : 0));
const stopped = (a, f = (x) => x) => made(Float64Array.from(a.of, (x) => f(x))); // no gradient comes through
const sum = (a, m) => made([total(a.of, m)], [a], ({ slope: [g] }) => a.slope.forEach((_, j) => { a.slope[j] += m ? g * m[j] : g; }));
const mean = (a) => times(sum(a), 1 / a.of.length);
const entry = (a, i) => made([a.of[i]], [a], ({ slope: [g] }) => { a.slope[i] += g; });
const logSum = (a, m) => {
  const { log, share } = softmax(a.of, m, (x) => x);
  return made([log], [a], ({ slope: [g] }) => share.forEach((q, j) => { a.slope[j] += g * (m ? m[j] : 1) * q; }));
};
const shares = (a, m) => exp(minus(a, logSum(a, m)));
const joined = (a, b) => made([...a.of, ...b.of], [a, b], ({ slope }) => {
  a.of.forEach((_, i) => { a.slope[i] += slope[i]; });
  b.of.forEach((_, j) => { b.slope[j] += slope[a.of.length + j]; });
});
const highest = (a, m, below = Infinity) => { // below that; those that tie share its gradient
  const counts = (j) => (m ? m[j] : 1);
  const found = a.of.reduce((most, x, j) => (counts(j) && x < below && x > most ? x : most), -8);
  const ties = total(a.of.map((x, j) => (x === found ? counts(j) : 0)));
  return made([found], [a], ({ slope: [g] }) => a.of.forEach((x, j) => {
    if (x === found) a.slope[j] += (g * counts(j)) / ties;
  }));
};

// ---- the losses -----------------------------------------------------------------------------------------------

const over = (a, t) => times(a, 1 / t);
const minusPositive = (log, { s }, t) => minus(log, over(s, t)); // c = log sum exp(logits) - s/t, of each positive
const contrasts = (a, t) => minusPositive(logSum(over(a.n, t), a.m), a, t);
const lossOverWeight = (c) => // softplus(c) / W, its gradient as if W were a number: one
  plus(minus(c, stopped(c)), stopped(c, (x) => (x < -40 ? 1 : soft(x) / sigmoid(x))));

const infoNCE = ({ temperature: t }, a) => mean(softplus(contrasts(a, t)));

function temperatureFree(p, a) { // logits 2 artanh(s); its temperature is that of each similarity, (1 - s²)/2
  const odds = each((x) => 2 * Math.atanh(Math.min(Math.max(x, -0.9999), 0.9999)), (x) => (Math.abs(x) > 0.9999 ? 0 : 2 / (1 - x * x)));
  const c = minus(logSum(odds(a.n), a.m), odds(a.s));
  a.gate = sigmoid(c.of[0]);
  return mean(softplus(c));
}

function supCon({ temperature: t }, a) {
  if (a.s.of.length === 1 && a.n.of.length) return infoNCE({ temperature: t }, a);
  const counts = [...a.s.of.map(() => 1), ...(a.m || a.n.of.map(() => 1))];
  return minus(logSum(over(joined(a.s, a.n), t), counts), over(mean(a.s), t));
}

// What false negatives add is subtracted, and never more than there is
function reweighted({ temperature: t, class_prior: prior }, a, beta) {
  const log = minus(logSum(times(a.n, (1 + beta) / t), a.m), logSum(times(a.n, beta / t), a.m));
  const c = minusPositive(plus(log, Math.log(a.N)), a, t);
  if (prior === 0) return mean(softplus(c));
  const true_ = plus(plus(c, logOfRest(minus(Math.log(a.N * prior), c))), -Math.log1p(-prior));
  return mean(softplus(larger(true_, minus(Math.log(a.N) - 1 / t, over(a.s, t)))));
}

function pairMargin({ margin }, { s, n, m, N }) {
  const gap = larger(minus(margin, sqrt(larger(minus(2, times(n, 2)), 1e-8))), 0);
  return plus(minus(2, times(mean(s), 2)), times(sum(times(gap, gap), m), 1 / N));
}

function triplet({ margin, batch_hard, semi_hard }, { s, n, m, N }) {
  const hinge = (near, far) => larger(plus(minus(times(far, 2), times(near, 2)), margin), 0);
  if (batch_hard) return hinge(times(highest(times(s, -1)), -1), highest(n, m));
  const all = Array.from(s.of, (x, i) => (semi_hard ? hinge(entry(s, i), highest(n, m, x))
    : times(sum(hinge(entry(s, i), n), m), 1 / N)));
  return times(all.reduce((a, b) => plus(a, b)), 1 / all.length);
}

function weightedDecoupled({ temperature: t, sigma }, a) {
  const most = Math.max(...a.batch), weight = (x) => Math.exp((x - most) / sigma);
  const usual = average(a.batch.map(weight));
  return mean(plus(contrasts(a, t), times(stopped(a.s, (x) => (weight(x) / usual - 1) / t), a.s)));
}

function dualTemperature({ temperature: t, ratio }, a) {
  return mean(times(stopped(contrasts(a, t * ratio), sigmoid), lossOverWeight(contrasts(a, t))));
}

function rince({ temperature: t, q, weight }, a) {
  const above = plus(softplus(contrasts(a, t)), Math.log(weight)); // log of weight Z / E+
  if (q < 1e-12) return mean(above);
  const all = exp(times(plus(over(a.s, t), above), q)); // (weight Z)^q
  return times(mean(times(all, expm1(times(above, -q)))), -1 / q);
}

function alphaCL({ temperature: t, alpha }, { s, n, m }) {
  const importance = stopped(n, (x) => Math.exp(-(Math.max(1 - x, 0) ** alpha) / t));
  return minus(sum(times(importance, n), m), times(mean(s), total(importance.of, m)));
}

const sogCLR = ({ temperature: t }, { s, n, m, N }) =>
  minus(times(minus(logSum(over(n, t), m), Math.log(N)), t), mean(s));

export function adaptive(p, batch) { // MACL's temperature, eq. 7 with its floor
  const lowest = p.minimum_temperature ?? p.temperature / 10;
  return Math.max(p.temperature * (1 + p.alpha * (average(batch) - p.alignment_threshold)), lowest);
}

function macl(p, a) {
  a.temperature = adaptive(p, a.batch);
  return mean(lossOverWeight(contrasts(a, a.temperature)));
}

function adnce({ temperature: t, mean: mu, deviation }, a) {
  const density = stopped(a.n, (x) => -(((x - mu) / deviation) ** 2) / 2);
  const least = softmax(density.of, a.m, (x) => x).log - Math.log(a.N);
  return mean(softplus(minusPositive(logSum(plus(over(a.n, t), minus(density, least)), a.m), a, t)));
}

// The sharpest weights within a Kullback-Leibler ball: Newton in log(1/temperature), bisection where it errs
function robust({ radius }, a) {
  const { m, N } = a, n = a.n.of;
  let nearest = -Infinity, farthest = Infinity;
  for (let j = 0; j < n.length; j++) {
    if (m && !m[j]) continue;
    nearest = Math.max(nearest, n[j]);
    farthest = Math.min(farthest, n[j]);
  }
  const spread = nearest - farthest, scaled = n.map((x) => (spread > 0 ? (x - nearest) / spread : 0));
  const at = (l) => {
    const cold = Math.exp(l), { log, share } = softmax(scaled, m, (x) => cold * x);
    let first = 0, second = 0;
    for (let j = 0; j < n.length; j++) {
      const w = (m ? m[j] : 1) * share[j];
      first += w * scaled[j];
      second += w * scaled[j] * scaled[j];
    }
    return { share, full: cold * first - log + Math.log(N), slope: cold * cold * (second - first * first) };
  };
  let low = Math.log(1e-8), high = Math.log(1e12), binds = radius > 0 && spread > 0, l = 0;
  let found = at(radius === 0 ? low : high);
  if (radius === 0) found.share = scaled.map(() => 1 / N);
  binds = binds && found.full > radius;
  for (let step = 0; binds && step < 80; step++) {
    found = at(l);
    const off = found.full - radius;
    if (Math.abs(off) < 1e-13 * (1 + radius)) break;
    if (off > 0) high = l;
    else low = l;
    const next = l - off / found.slope;
    l = next > low && next < high ? next : (low + high) / 2;
  }
  a.temperature = radius === 0 ? Infinity : binds ? spread / Math.exp(l) : 0;
  return minus(sum(times(made(found.share), a.n), m), mean(a.s));
}

const sigLIP = ({ temperature: t, bias }, { s, n, m }) =>
  plus(mean(softplus(minus(-bias, over(s, t)))), sum(softplus(plus(over(n, t), bias)), m));

function attentionNCE({ temperature: t, d_pos, d_neg, detach_attention }, { s, n, m, N }) {
  const kept = detach_attention ? stopped : (a) => a;
  const prototype = sum(times(kept(shares(over(s, d_pos))), s));
  const attended = times(times(kept(shares(over(n, d_neg), m)), n), N / t);
  return softplus(minus(logSum(attended, m), over(prototype, t)));
}

export const LOSSES = {
  PairMargin: pairMargin, Triplet: triplet, NTXent: infoNCE, SupCon: supCon, CLIP: infoNCE,
  Debiased: (p, a) => reweighted(p, a, 0),
  HardNegative: (p, a) => reweighted(p, a, p.beta),
  SSCL: (p, a) => reweighted(p, a, p.beta), // on the negatives that it is given
  FlatNCE: (p, a) => { const c = contrasts(a, p.temperature); return mean(exp(minus(c, stopped(c)))); },
  Decoupled: (p, a) => mean(contrasts(a, p.temperature)),
  WeightedDecoupled: weightedDecoupled, DualTemperature: dualTemperature, RINCE: rince, AlphaCL: alphaCL,
  SogCLR: sogCLR, ISogCLR: (p, a) => plus(sogCLR(p, a), p.temperature * p.radius),
  MACL: macl, ADNCE: adnce, Robust: robust, SigLIP: sigLIP, AttentionNCE: attentionNCE,
  TemperatureFree: temperatureFree,
};

// Its value; pull = -dl/ds of each positive; push = dl/dn of each single negative, unless nobody asks for it;
// temperature as it was used, where it has one; gate of the first positive, where it is not that temperature's W
export function loss(name, p, s_, n_, m = null, batch = s_, pushes = true) {
  tape = [];
  const s = made(s_), n = made(n_), anchor = { s, n, m, N: m ? total(m) : n_.length, batch };
  s.moves = true;
  n.moves = pushes;
  const found = LOSSES[name](p, anchor);
  found.slope[0] = 1;
  for (let k = tape.length - 1; k >= 0; k--) tape[k].back(tape[k]);
  const push = m ? n.slope.map((x, j) => (m[j] ? x / m[j] : 0)) : n.slope;
  return { value: found.of[0], pull: s.slope.map((x) => -x), push: pushes ? push : null,
    gate: anchor.gate, temperature: anchor.temperature ?? p.temperature };
}

// The gate W = sigmoid(c) of one positive; 1 = open
export function gate(s, n, m, t) {
  return sigmoid(softmax(n, m, (x) => x / t).log - s / t);
}

export function normal(x) { // its distribution function, by the series of Marsaglia 2004
  if (Math.abs(x) > 7) return x > 0 ? 1 : 0;
  let term = x, sum = x;
  for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum) && k < 300; k += 2) sum += term *= (x * x) / k;
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}

// How many negatives share the push: exp of the entropy of their shares; one that is drawn in counts not
export function effective(push, m) {
  const pushed = Float64Array.from(push, (x) => Math.max(x, 0)), all = total(pushed, m);
  if (!(all > 0)) return 0;
  return Math.exp(total(pushed.map((x) => (x / all > 0 ? (-x / all) * Math.log(x / all) : 0)), m));
}

// Every loss beside the package's own numbers, which the page carries: what is said of it
export function compare({ check }) {
  let worst = 0, name = "";
  for (const of of check) {
    const p = Object.fromEntries(Object.entries(of.p).map(([key, v]) => [key, v === "inf" ? Infinity : v]));
    of.s.forEach((s, i) => {
      const found = loss(of.loss, p, s, of.n[i], null, of.s.flat());
      const pairs = [[found.value, of.value[i]], ...of.pull[i].map((v, j) => [found.pull[j], v]), ...of.push[i].map((v, j) => [found.push[j], v])];
      for (const [own, given] of pairs) {
        const off = Math.abs(own - given) / Math.max(1, Math.abs(given));
        if (!(off <= worst)) [worst, name] = [off, of.loss];
      }
    });
  }
  return worst < 1e-6 ? `✓ ${check.length} losses and their forces, compared with the package's own numbers: equal to 1e-6.`
    : `✗ ${name} differs from the package by ${worst}: do not trust the numbers of this page.`;
}
