// Numbers that Python packed into text.

export const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

export function unpack({ positions, points, looks }) { // numbers of 10 bits, as clutils.explorers.replay packs them
  const from = bytes(positions), found = new Float32Array(points * looks.length * 2);
  for (let k = 0; k < found.length; k++) {
    let v = 0;
    for (let b = 10 * k; b < 10 * k + 10; b++) v = (v << 1) | ((from[b >> 3] >> (7 - (b & 7))) & 1);
    found[k] = v / 1023;
  }
  return found;
}
