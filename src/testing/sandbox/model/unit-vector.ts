import { createHash } from 'node:crypto'

/**
 * The embedding of a text: equal texts give equal vectors, and the shorter vector of a text is the longer one cut off
 * and, unless `normalise` is false, brought to length 1 again, as with real models of nested dimensions.
 * Values are exact 32-bit floats, so that they survive base64 unchanged.
 */
export function unitVector(
  text: string,
  dimensions: number,
  nativeDimensions = dimensions,
  normalise = true,
): number[] {
  const next = randomFrom(createHash('sha256').update(text).digest().readUInt32LE(0))
  const values = Array.from({ length: Math.max(dimensions, nativeDimensions) }, () => next() * 2 - 1)
  const kept = values.slice(0, dimensions)
  const length = Math.hypot(...(normalise ? kept : values))
  return kept.map((value) => Math.fround(value / length))
}

/** The vector as base64 of little-endian 32-bit floats. */
export function vectorToBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  vector.forEach((value, position) => {
    bytes.writeFloatLE(value, position * 4)
  })
  return bytes.toString('base64')
}

/** Numbers from 0 to 1 that follow from the seed (a 32-bit counter whose bits are mixed). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}
