import { createHash } from 'node:crypto'
import { asText } from '../request-fields.ts'
import { countTokens } from './chat-turn.ts'

/**
 * The embedding of a text: equal texts have equal vectors. The shorter vector of a text is the truncated longer one, normalised
 * again unless `normalise` is false, as with real models of nested dimensions. Values are exact 32-bit floats, so that base64 keeps
 * them unchanged.
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

/** Numbers from 0 to 1, derived from the seed (a 32-bit counter with mixed bits). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}

/** The texts of an `input` field; token ids count as the text of their numbers. Undefined for any other type. */
export function inputTexts(input: unknown): string[] | undefined {
  if (typeof input === 'string') return [input]
  if (!Array.isArray(input)) return undefined
  if (input.length > 0 && input.every((entry) => typeof entry === 'number')) return [input.join(' ')]
  if (input.every((entry) => typeof entry === 'string')) return input
  if (input.every((entry) => Array.isArray(entry))) return input.map((entry) => (entry as unknown[]).join(' '))
  return undefined
}

/** Everything that was sent to be embedded, for fault marks. */
export function inputPromptText(body: { readonly input?: unknown }): string {
  return (inputTexts(body.input) ?? []).map(asText).join('\n')
}

/** How the vectors of an answer look. */
export interface VectorFormat {
  readonly dimensions: number
  readonly nativeDimensions: number
  readonly base64: boolean
}

/** The `data` list of an answer. */
export function embeddingData(texts: readonly string[], format: VectorFormat): Record<string, unknown>[] {
  return texts.map((text, index) => {
    const vector = unitVector(text, format.dimensions, format.nativeDimensions)
    return { object: 'embedding', index, embedding: format.base64 ? vectorToBase64(vector) : vector }
  })
}

/** Tokens of all texts: each is counted on its own. */
export function embeddingTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + countTokens([text]), 0)
}
