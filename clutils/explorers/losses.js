// Losses of level "similarity", from their papers' formulas: an anchor's value, and its forces in closed form.
//
// A loss takes p (hyper-parameters by their names in Python), s (similarities to the positives), n (to the
// negatives), m (how many negatives lie at each n; null: one), N (how many negatives in all) and batch (the
// positives of the whole batch, which a few losses look at). It gives value, pull = -dl/ds of each positive,
// push = dl/dn of each single negative, and temperature where it has one, as it was used.

const total = (x, m) => {
  let sum = 0;
  for (let j = 0; j < x.length; j++) sum += m ? m[j] * x[j] : x[j];
  return sum;
};
const mean = (x) => total(x) / x.length;
const softplus = (c) => (c > 0 ? c + Math.log1p(Math.exp(-c)) : Math.log1p(Math.exp(c)));
export const sigmoid = (c) => (c >= 0 ? 1 / (1 + Math.exp(-c)) : Math.exp(c) / (1 + Math.exp(c)));
const lossOverWeight = (c) => (c < -40 ? 1 : softplus(c) / sigmoid(c));

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

// A mean over positives of f(c), c = log sum exp(logits) - s/t: f gives value and slope, tilt = dlog/dn
function ofContrast({ s, t, log, tilt }, f) {
  const pull = new Float64Array(s.length);
  let value = 0, slopes = 0;
  for (let i = 0; i < s.length; i++) {
    const [own, slope] = f(log - s[i] / t, s[i]);
    value += own / s.length;
    pull[i] = slope / t / s.length;
    slopes += slope / s.length;
  }
  return { value, pull, push: tilt.map((x) => slopes * x), temperature: t };
}
const softly = (c) => [softplus(c), sigmoid(c)]; // InfoNCE; its slope is W
const plain = (t) => ({ s, n, m }) => {
  const { log, share } = softmax(n, m, (x) => x / t);
  return { s, t, log, tilt: share.map((x) => x / t) };
};
const evenly = (s, amount) => new Float64Array(s.length).fill(amount / s.length);

// The debiased contrast and its slope: what false negatives add is taken off, and never more than there is
function debiased(c, s, N, t, prior) {
  if (prior === 0) return { c, slope: 1, clamped: false };
  const share = Math.log(N * prior) - c, smallest = Math.log(N) - (1 + s) / t;
  const estimate = share < -1e-30 ? c + Math.log(-Math.expm1(share)) - Math.log1p(-prior) : -Infinity;
  if (estimate > smallest) return { c: estimate, slope: -1 / Math.expm1(share), clamped: false };
  return { c: smallest, slope: 1, clamped: true };
}

function reweighted({ temperature: t, class_prior: prior }, { s, n, m, N }, beta) {
  const harder = softmax(n, m, (x) => (x * (1 + beta)) / t);
  const weights = softmax(n, m, (x) => (x * beta) / t);
  const log = harder.log - weights.log + Math.log(N);
  const push = new Float64Array(n.length), pull = new Float64Array(s.length);
  let value = 0;
  for (let i = 0; i < s.length; i++) {
    const d = debiased(log - s[i] / t, s[i], N, t, prior);
    const slope = (sigmoid(d.c) * d.slope) / t / s.length;
    value += softplus(d.c) / s.length;
    pull[i] = slope;
    if (d.clamped) continue;
    for (let j = 0; j < n.length; j++)
      push[j] += slope * ((1 + beta) * harder.share[j] - beta * weights.share[j]);
  }
  return { value, pull, push, temperature: t };
}

function infoNCE(p, a) {
  return ofContrast(plain(p.temperature)(a), softly);
}

function supCon({ temperature: t }, a) {
  const { s, n, m } = a;
  if (s.length === 1 && n.length) return infoNCE({ temperature: t }, a);
  const everyone = [...s, ...n], counts = [...s.map(() => 1), ...(m || n.map(() => 1))];
  const { log, share } = softmax(everyone, counts, (x) => x / t);
  return {
    value: log - mean(s) / t,
    pull: Float64Array.from(s, (_, i) => (1 / s.length - share[i]) / t),
    push: Float64Array.from(n, (_, j) => share[s.length + j] / t),
    temperature: t,
  };
}

function pairMargin({ margin }, { s, n, m, N }) {
  const hinges = new Float64Array(n.length), push = new Float64Array(n.length);
  for (let j = 0; j < n.length; j++) {
    const d = Math.sqrt(Math.max(2 - 2 * n[j], 1e-8)), gap = Math.max(margin - d, 0);
    hinges[j] = gap * gap;
    push[j] = 2 - 2 * n[j] < 1e-8 ? 0 : (2 * gap) / d / N;
  }
  return { value: 2 - 2 * mean(s) + total(hinges, m) / N, pull: evenly(s, 2), push };
}

function triplet({ margin, batch_hard, semi_hard }, { s, n, m, N }) {
  const pull = new Float64Array(s.length), push = new Float64Array(n.length), P = s.length;
  const counts = (j) => (m ? m[j] : 1), hinge = (i, x) => margin + 2 * x - 2 * s[i];
  let value = 0;
  const shared = (x, amount) => { // on the negatives that lie at x: those that tie share it
    let ties = 0;
    for (let j = 0; j < n.length; j++) if (n[j] === x) ties += counts(j);
    for (let j = 0; j < n.length; j++) if (n[j] === x) push[j] += amount / ties;
  };
  const nearest = (below) => {
    let best = -8;
    for (let j = 0; j < n.length; j++) if (counts(j) && n[j] < below && n[j] > best) best = n[j];
    return best;
  };
  if (batch_hard) {
    const lowest = Math.min(...s), hardest = nearest(Infinity), ties = s.filter((x) => x === lowest).length;
    value = margin + 2 * hardest - 2 * lowest;
    if (!(value >= 0)) return { value: 0, pull, push };
    for (let i = 0; i < P; i++) pull[i] = s[i] === lowest ? 2 / ties : 0;
    shared(hardest, 2);
    return { value, pull, push };
  }
  for (let i = 0; i < P; i++) {
    if (semi_hard) {
      const x = nearest(s[i]), h = hinge(i, x);
      if (!(h >= 0)) continue;
      value += h / P;
      pull[i] = 2 / P;
      shared(x, 2 / P);
    } else {
      for (let j = 0; j < n.length; j++) {
        const h = hinge(i, n[j]);
        if (!(h >= 0) || !counts(j)) continue;
        value += (counts(j) * h) / N / P;
        pull[i] += (2 * counts(j)) / N / P;
        push[j] += 2 / N / P;
      }
    }
  }
  return { value, pull, push };
}

function weightedDecoupled({ temperature: t, sigma }, a) {
  const largest = Math.max(...a.batch), weight = (x) => Math.exp((x - largest) / sigma);
  let average = 0;
  for (const x of a.batch) average += weight(x) / a.batch.length;
  const found = ofContrast(plain(t)(a), (c, s) => [c + ((weight(s) / average - 1) * s) / t, 1]);
  found.pull = Float64Array.from(a.s, (x) => (2 - weight(x) / average) / t / a.s.length);
  return found;
}

function dualTemperature({ temperature: t, ratio }, a) {
  const hot = softmax(a.n, a.m, (x) => x / (t * ratio)).log;
  const gate = (s) => sigmoid(hot - s / (t * ratio));
  return ofContrast(plain(t)(a), (c, s) => [gate(s) * lossOverWeight(c), gate(s)]);
}

function rince({ temperature: t, q, weight }, a) {
  const { log, share } = softmax(a.n, a.m, (x) => x / t), P = a.s.length;
  const pull = new Float64Array(P), push = new Float64Array(share.length);
  let value = 0;
  for (let i = 0; i < P; i++) {
    const match = a.s[i] / t, c = log - match, W = sigmoid(c), above = softplus(c) + Math.log(weight);
    const all = q < 1e-12 ? 1 : Math.exp(q * (match + above)); // (weight Z)^q
    const own = q < 1e-12 ? 1 : Math.exp(q * match); // (E+)^q
    value += (q < 1e-12 ? above : (-all * Math.expm1(-q * above)) / q) / P;
    pull[i] = (own - all * sigmoid(-c)) / t / P;
    for (let j = 0; j < push.length; j++) push[j] += (all * W * share[j]) / t / P;
  }
  return { value, pull, push, temperature: t };
}

function alphaCL({ temperature: t, alpha }, { s, n, m }) {
  const push = Float64Array.from(n, (x) => Math.exp(-(Math.max(1 - x, 0) ** alpha) / t));
  const weights = total(push, m);
  return { value: total(push.map((w, j) => w * n[j]), m) - weights * mean(s), pull: evenly(s, weights), push,
    temperature: t };
}

function sogCLR({ temperature: t }, { s, n, m, N }) {
  const { log, share } = softmax(n, m, (x) => x / t);
  return { value: t * (log - Math.log(N)) - mean(s), pull: evenly(s, 1), push: share, temperature: t };
}

export function adaptive(p, batch) { // MACL's temperature, eq. 7 with its floor
  const lowest = p.minimum_temperature ?? p.temperature / 10;
  return Math.max(p.temperature * (1 + p.alpha * (mean(batch) - p.alignment_threshold)), lowest);
}

function adnce({ temperature: t, mean: mu, deviation }, a) {
  const density = (x) => -(((x - mu) / deviation) ** 2) / 2;
  const least = softmax(a.n, a.m, density).log - Math.log(a.N);
  const { log, share } = softmax(a.n, a.m, (x) => x / t + density(x) - least);
  return ofContrast({ s: a.s, t, log, tilt: share.map((x) => x / t) }, softly);
}

// The sharpest weights within a Kullback-Leibler ball: Newton in log(1/temperature), bisection where it errs
function robust({ radius }, { s, n, m, N }) {
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
  const temperature = radius === 0 ? Infinity : binds ? spread / Math.exp(l) : 0;
  const value = total(found.share.map((q, j) => q * n[j]), m) - mean(s);
  return { value, pull: evenly(s, 1), push: Float64Array.from(found.share), temperature };
}

function sigLIP({ temperature: t, bias: b }, { s, n, m }) {
  const matched = s.map((x) => softplus(-x / t - b));
  return {
    value: mean(matched) + total(n.map((x) => softplus(x / t + b)), m),
    pull: Float64Array.from(s, (x) => sigmoid(-x / t - b) / t / s.length),
    push: Float64Array.from(n, (x) => sigmoid(x / t + b) / t),
    temperature: t,
  };
}

function attentionNCE({ temperature: t, d_pos, d_neg, detach_attention }, { s, n, m, N }) {
  const alpha = softmax(s, null, (x) => x / d_pos).share;
  const beta = softmax(n, m, (x) => x / d_neg).share.map((x) => N * x);
  const prototype = total(alpha.map((w, i) => w * s[i]));
  const { log, share } = softmax(n, m, (x, j) => (beta[j] * x) / t);
  const c = log - prototype / t, W = sigmoid(c), moves = detach_attention ? 0 : 1;
  const back = (moves * total(share.map((q, j) => q * beta[j] * n[j]), m)) / N / d_neg;
  return {
    value: softplus(c),
    pull: alpha.map((w, i) => (W / t) * w * (1 + (moves * (s[i] - prototype)) / d_pos)),
    push: share.map((q, j) => (W / t) * beta[j] * (q * (1 + (moves * n[j]) / d_neg) - back)),
    temperature: t,
  };
}

export const LOSSES = {
  PairMargin: pairMargin, Triplet: triplet, NTXent: infoNCE, SupCon: supCon, CLIP: infoNCE,
  Debiased: (p, a) => reweighted(p, a, 0),
  HardNegative: (p, a) => reweighted(p, a, p.beta),
  SSCL: (p, a) => reweighted(p, a, p.beta), // on the negatives that it is given
  FlatNCE: (p, a) => ofContrast(plain(p.temperature)(a), () => [1, 1]),
  Decoupled: (p, a) => ofContrast(plain(p.temperature)(a), (c) => [c, 1]),
  WeightedDecoupled: weightedDecoupled, DualTemperature: dualTemperature, RINCE: rince, AlphaCL: alphaCL,
  SogCLR: sogCLR,
  ISogCLR: (p, a) => {
    const found = sogCLR(p, a);
    return { ...found, value: found.value + p.temperature * p.radius };
  },
  MACL: (p, a) => ofContrast(plain(adaptive(p, a.batch))(a), (c) => [lossOverWeight(c), 1]),
  ADNCE: adnce, Robust: robust, SigLIP: sigLIP, AttentionNCE: attentionNCE,
};

export function loss(name, p, s, n, m = null, batch = s) {
  return LOSSES[name](p, { s, n, m, N: m ? total(m) : n.length, batch });
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
    : `✗ ${name} differs from the package by ${worst}: trust no number of this page.`;
}
