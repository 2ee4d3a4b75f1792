import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { audioHeader } from '../../../wire/audio/audio-header.ts'
import { ChunkedBytes } from '../../../wire/audio/container-headers.ts'
import { asList, asNumber, asText, type Fields } from '../request-fields.ts'
import { countTokens, type ScriptedTurn } from './chat-turn.ts'

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
function vectorToBase64(vector: readonly number[]): string {
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

/** Returns the texts of an `input` field of one string or a list of strings, or `undefined` for any other value. */
export function inputWords(input: unknown): string[] | undefined {
  const texts = typeof input === 'string' ? [input] : input
  return Array.isArray(texts) && texts.every((text) => typeof text === 'string') ? texts : undefined
}

/** Returns an answer in OpenAI's layout. `report` writes the usage for a number of tokens. */
export function embeddingAnswer(
  texts: readonly string[],
  facts: { model: string; dimensions: number; nativeDimensions: number; isBase64?: boolean },
  report: (tokens: number) => object | undefined,
): object {
  const { model, dimensions, nativeDimensions, isBase64 = false } = facts
  const data = texts.map((text, index) => {
    const vector = unitVector(text, dimensions, nativeDimensions)
    return { object: 'embedding', index, embedding: isBase64 ? vectorToBase64(vector) : vector }
  })
  return { object: 'list', data, model, usage: report(embeddingTokens(texts)) }
}

/** Tokens of all texts: each is counted on its own. */
export function embeddingTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + countTokens([text]), 0)
}

/** Returns the texts to rank, or `undefined` unless they are a list of non-empty strings. */
export function rankedTexts(documents: unknown): readonly string[] | undefined {
  const texts = asList(documents)
  return texts.length > 0 && texts.every((text) => typeof text === 'string' && text !== '')
    ? (texts as readonly string[])
    : undefined
}

/** Returns all texts of the request, for fault marks. */
export function rankingPromptText({ query, documents }: Fields): string {
  return [query, ...asList(documents)].map(asText).join('\n')
}

/**
 * Ranks the documents by the share of the query's words that they contain. Equal scores keep their order. Scores are from 0 to 1.
 * @param most Maximum number of results, or `undefined` for all.
 */
export function ranking(query: string, texts: readonly string[], most: unknown, showsDocuments: boolean) {
  const words = wordsOf(query)
  const scored = texts.map((text, index) => {
    const held = new Set(wordsOf(text))
    const share = words.filter((word) => held.has(word)).length / Math.max(1, words.length)
    const relevance_score = Math.round((0.01 + 0.98 * share) * 10_000) / 10_000
    return { index, relevance_score, document: showsDocuments ? { text } : undefined }
  })
  scored.sort((one, other) => other.relevance_score - one.relevance_score)
  return scored.slice(0, asNumber(most) ?? texts.length)
}

/** Returns the tokens that a vendor reads: the query once per document, and the documents. */
export function rankingTokens(query: string, texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + countTokens([text]), countTokens([query]) * texts.length)
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/\p{L}+/gu) ?? []
}

const SEGMENT_SECONDS = 5

/**
 * Transcribes a recording: its length, or the text of a script, in segments of up to five seconds, and one token per word. Returns
 * `undefined` for an invalid recording.
 */
export function transcribeFixture(file: Buffer, script: ScriptedTurn | undefined) {
  const header = audioHeader(new ChunkedBytes([file]))
  if (header === undefined) return undefined
  const seconds = header.seconds ?? 1
  const text = script?.text ?? script?.chunks?.join('') ?? `This recording is ${seconds.toFixed(1)} seconds long.`
  const words = text.split(/(?<=\s)/)
  const count = Math.max(1, Math.ceil(seconds / SEGMENT_SECONDS))
  const perSegment = Math.ceil(words.length / count)
  const segments = Array.from({ length: count }, (_, index) => ({
    start: index * SEGMENT_SECONDS,
    end: Math.min(seconds, (index + 1) * SEGMENT_SECONDS),
    text: words.slice(index * perSegment, (index + 1) * perSegment).join(''),
  }))
  return { text, seconds, segments: segments.filter((segment) => segment.text !== ''), tokens: words.length }
}
