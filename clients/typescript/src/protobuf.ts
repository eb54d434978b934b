// The wire format of Protocol Buffers for what Sawtooth's messages have: texts, bytes, flags and lists of them. As in
// proto3, single fields with their default value are left out.
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";

type Value = string | boolean | Uint8Array | readonly (string | Uint8Array)[];

/** Encodes a message, with its fields in the order of their numbers. */
export function encodeMessage(fields: readonly (readonly [number, Value])[]): Uint8Array {
  return concatBytes(...fields.map(([number, value]) => encodeField(number, value)));
}

function encodeField(number: number, value: Value): Uint8Array {
  if (typeof value === "boolean") return value ? Uint8Array.of(number << 3, 1) : new Uint8Array();
  if (typeof value === "string" || value instanceof Uint8Array) {
    return value.length === 0 ? new Uint8Array() : encodeBytes(number, value);
  }
  return concatBytes(...value.map((entry) => encodeBytes(number, entry)));
}

function encodeBytes(number: number, value: string | Uint8Array): Uint8Array {
  const bytes = typeof value === "string" ? utf8ToBytes(value) : value;
  return concatBytes(Uint8Array.of((number << 3) | 2), encodeLength(bytes.length), bytes);
}

function encodeLength(length: number): Uint8Array {
  const bytes: number[] = [];
  let rest = length;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Uint8Array.of(...bytes, rest);
}
