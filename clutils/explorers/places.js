// Places on the maps of a run, as clutils.explorers.replay packs them.

export function unpack({ positions: packed, points, looks }) { // numbers of 10 bits, one after another
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0)), found = new Float32Array(points * looks.length * 2);
  for (let k = 0; k < found.length; k++) {
    let v = 0;
    for (let b = 10 * k; b < 10 * k + 10; b++) v = (v << 1) | ((bytes[b >> 3] >> (7 - (b & 7))) & 1);
    found[k] = v / 1023;
  }
  return found;
}
