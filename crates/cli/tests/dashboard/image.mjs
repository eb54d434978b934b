// Makes images of pages small: PNG files with a palette.

import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const COLORS = 256;

/** The same image with at most 256 colors. The frequent ones stay as they are. */
export function withPalette(png) {
  const { width, height, pixels } = decode(png);
  const { palette, indexes } = paletteOf(pixels);
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) Buffer.from(indexes.buffer, y * width, width).copy(lines, y * (width + 1) + 1);
  const header = Buffer.from(chunk(png, "IHDR"));
  // Eight bits a pixel, with a palette.
  header.set([8, 3], 8);
  return Buffer.concat([SIGNATURE, encoded("IHDR", header), encoded("PLTE", palette),
    encoded("IDAT", deflateSync(lines, { level: 9 })), encoded("IEND", Buffer.alloc(0))]);
}

function* chunks(png) {
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    yield [png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + length)];
    at += 12 + length;
  }
}

function chunk(png, name) {
  return Buffer.concat([...chunks(png)].filter(([it]) => it === name).map(([, data]) => data));
}

function encoded(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** The colors of the pixels, as numbers. */
function decode(png) {
  const header = chunk(png, "IHDR");
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const size = header[9] === 6 ? 4 : 3;
  const data = inflateSync(chunk(png, "IDAT"));
  const pixels = new Uint32Array(width * height);
  let above = new Uint8Array(width * size);
  for (let y = 0; y < height; y += 1) {
    const start = y * (width * size + 1);
    const line = unfiltered(data[start], data.subarray(start + 1, start + 1 + width * size), above, size);
    for (let x = 0; x < width; x += 1) pixels[y * width + x] = line[x * size] << 16 | line[x * size + 1] << 8 | line[x * size + 2];
    above = line;
  }
  return { width, height, pixels };
}

/** A line before its filter, which is one of five. */
function unfiltered(filter, data, above, size) {
  const line = new Uint8Array(data.length);
  for (let at = 0; at < data.length; at += 1) {
    const left = at >= size ? line[at - size] : 0;
    const corner = at >= size ? above[at - size] : 0;
    line[at] = data[at] + [0, left, above[at], (left + above[at]) >> 1, nearest(left, above[at], corner)][filter];
  }
  return line;
}

function nearest(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

/** The most frequent colors, and those of each kind; each other one becomes that which differs least. */
function paletteOf(pixels) {
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const frequent = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  const kinds = new Map(frequent.toReversed().map((color) => [color >> 5 & 0x070707, color]));
  const ofKinds = [...kinds.values()].sort((a, b) => counts.get(b) - counts.get(a));
  const chosen = [...new Set([...frequent.slice(0, COLORS / 2), ...ofKinds, ...frequent])].slice(0, COLORS);
  const palette = Buffer.alloc(3 * chosen.length);
  chosen.forEach((color, at) => palette.writeUIntBE(color, 3 * at, 3));
  const places = new Map(chosen.map((color, at) => [color, at]));
  for (const color of counts.keys()) {
    if (places.has(color)) continue;
    const distances = chosen.map((other) => distance(color, other));
    places.set(color, distances.indexOf(Math.min(...distances)));
  }
  return { palette, indexes: Uint8Array.from(pixels, (pixel) => places.get(pixel)) };
}

function distance(one, other) {
  return [16, 8, 0].reduce((sum, lane) => sum + ((one >> lane & 255) - (other >> lane & 255)) ** 2, 0);
}
