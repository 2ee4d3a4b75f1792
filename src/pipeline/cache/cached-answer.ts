import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync, inflateRaw, inflateRawSync } from 'node:zlib'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { Usage } from '../../core/usage.ts'
import type { CachedAnswers } from '../../endpoints/cached-answers.ts'
import { findString } from '../../wire/json-spans.ts'

/** Minimum size for compression. Smaller answers gain less than the 15 µs it costs; large ones are compressed on another thread. */
const COMPRESSED_FROM_BYTES = 4096
const OWN_THREAD_FROM_BYTES = 128 * 1024

/** Number of events that are searched for the id of a streamed answer, and its minimum length: a short id may occur elsewhere too. */
const EVENTS_WITH_ID = 4
const SHORTEST_ID = 8

/** Speed matters more than size, because the events of a stream are repetitive. */
const COMPRESSION = { level: 1 } as const

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** Facts of an answer in addition to its bytes. */
export interface AnswerFacts {
  /** Unix milliseconds. */
  readonly storedAtMs: number
  /** Time from which the answer is stale, in Unix milliseconds. */
  readonly staleFromMs: number
  readonly isStream: boolean
  readonly contentType: string
  /** Id of the vendor that created it, for hooks. */
  readonly vendor: string
  /** Usage of the original call. */
  readonly usage: Usage
  readonly dropped: readonly string[]
}

/** Head of an entry, before its bytes. */
interface EntryHead extends AnswerFacts {
  readonly byteLength: number
  readonly isCompressed: boolean
  /** Offset of each id from the previous one, and the length of the id. */
  readonly idSteps: readonly number[]
  readonly idLength: number
  /** Position of the cost of the call, or `undefined` if the answer has none. */
  readonly cost?: { readonly start: number; readonly end: number } | undefined
}

/** Decoded entry. */
export interface CachedAnswer extends AnswerFacts {
  /** Returns the bytes with a new id and this cost, in one or several chunks. */
  chunks(cost: string): MaybePromise<readonly Buffer[]>
}

const HEAD_LENGTH_BYTES = 4

type AnswerRules = Pick<CachedAnswers<never, never>, 'idPaths' | 'costMark'>

/** Encodes an entry: length of the head, the head as JSON, then the bytes. */
export function encodeAnswer(facts: AnswerFacts, body: Buffer, rules: AnswerRules): MaybePromise<Uint8Array> {
  const { byteLength } = body
  if (byteLength >= OWN_THREAD_FROM_BYTES)
    return deflate(body, COMPRESSION).then((packed) => entryOf(facts, body, packed, rules))
  const packed = byteLength < COMPRESSED_FROM_BYTES ? body : deflateRawSync(body, COMPRESSION)
  return entryOf(facts, body, packed, rules)
}

function entryOf(facts: AnswerFacts, body: Buffer, deflated: Buffer, rules: AnswerRules): Uint8Array {
  const { idPaths, costMark } = rules
  const ids = idPaths === undefined ? NO_IDS : idsIn(body, facts.isStream, idPaths)
  const packed = deflated.byteLength < body.byteLength ? deflated : body
  // Every member by name: serializing an object created by spreading takes four microseconds more.
  const head: EntryHead = {
    storedAtMs: facts.storedAtMs,
    staleFromMs: facts.staleFromMs,
    isStream: facts.isStream,
    contentType: facts.contentType,
    vendor: facts.vendor,
    usage: facts.usage,
    dropped: facts.dropped,
    idSteps: ids.idSteps,
    idLength: ids.idLength,
    byteLength: body.byteLength,
    isCompressed: packed !== body,
    cost: costMark === undefined || !facts.isStream ? undefined : costIn(body, costMark),
  }
  const text = JSON.stringify(head)
  const textLength = Buffer.byteLength(text)
  // Not from a pool, which would be retained as a whole with the entry.
  const entry = Buffer.allocUnsafeSlow(HEAD_LENGTH_BYTES + textLength + packed.byteLength)
  entry.writeUInt32LE(textLength, 0)
  entry.write(text, HEAD_LENGTH_BYTES)
  packed.copy(entry, HEAD_LENGTH_BYTES + textLength)
  return entry
}

/** Decodes an entry; undefined if it is invalid. */
export function decodeAnswer(entry: Uint8Array): CachedAnswer | undefined {
  try {
    const bytes = Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength)
    const bodyStart = HEAD_LENGTH_BYTES + bytes.readUInt32LE(0)
    const answer = JSON.parse(bytes.toString('utf8', HEAD_LENGTH_BYTES, bodyStart)) as EntryHead & {
      chunks: CachedAnswer['chunks']
    }
    if (!isHead(answer)) return undefined
    const packed = bytes.subarray(bodyStart)
    answer.chunks = chunksReader(answer, packed)
    return answer
  } catch {
    return undefined
  }
}

const HEADER_TEXT = /^[\x20-\x7e]+$/

/** Whether a head is complete. A damaged head may still be JSON. */
function isHead({ contentType, storedAtMs, staleFromMs, byteLength, usage, dropped, idSteps }: EntryHead): boolean {
  if (typeof contentType !== 'string' || !HEADER_TEXT.test(contentType)) return false
  if (typeof storedAtMs !== 'number' || typeof staleFromMs !== 'number' || typeof byteLength !== 'number') return false
  return typeof usage === 'object' && usage !== null && Array.isArray(dropped) && Array.isArray(idSteps)
}

function chunksReader(head: EntryHead, packed: Buffer): CachedAnswer['chunks'] {
  return (cost) => chunksOf(head, packed, cost)
}

function chunksOf(head: EntryHead, packed: Buffer, cost: string): MaybePromise<readonly Buffer[]> {
  const { byteLength, isCompressed } = head
  if (!isCompressed) return edited(head, Buffer.from(packed), cost)
  const bound = { maxOutputLength: byteLength }
  if (byteLength < OWN_THREAD_FROM_BYTES) return edited(head, inflateRawSync(packed, bound), cost)
  return inflate(packed, bound).then((body) => edited(head, body, cost))
}

function edited({ idSteps, idLength, cost: place, byteLength }: EntryHead, body: Buffer, cost: string): Buffer[] {
  if (body.byteLength !== byteLength) throw new Error('the entry is damaged')
  const [first] = idSteps
  if (first !== undefined) {
    const id = freshId(body.toString('latin1', first, first + idLength))
    let position = 0
    for (let index = 0; index < idSteps.length; index++) {
      position += idSteps[index]!
      body.write(id, position, 'latin1')
    }
  }
  return place === undefined ? [body] : [body.subarray(0, place.start), Buffer.from(cost), body.subarray(place.end)]
}

const NO_IDS = { idSteps: [] as readonly number[], idLength: 0 }

/** Finds the id of an answer: at one position of a JSON answer, or in any number of events. */
function idsIn(body: Buffer, isStream: boolean, paths: readonly (readonly string[])[]): typeof NO_IDS {
  const id = isStream ? streamId(body, paths) : idAt(body, paths, 0, body.byteLength)
  if (id === undefined || id.length < SHORTEST_ID || !/^[\w.-]+$/.test(id)) return NO_IDS
  const quoted = Buffer.from(`"${id}"`)
  const idSteps: number[] = []
  let last = 0
  for (let at = body.indexOf(quoted); at !== -1; at = body.indexOf(quoted, at + quoted.byteLength)) {
    idSteps.push(at + 1 - last)
    last = at + 1
  }
  return { idSteps, idLength: id.length }
}

const DATA = Buffer.from('data:')

function streamId(body: Buffer, paths: readonly (readonly string[])[]): string | undefined {
  let start = 0
  for (let event = 0; event < EVENTS_WITH_ID; event++) {
    const at = body.indexOf(DATA, start)
    if (at === -1) return undefined
    const lineEnd = body.indexOf('\n', at)
    const end = lineEnd === -1 ? body.byteLength : lineEnd
    const id = idAt(body, paths, at + DATA.byteLength, end)
    if (id !== undefined && id !== '') return id
    start = end
  }
  return undefined
}

function idAt(body: Buffer, paths: readonly (readonly string[])[], start: number, end: number): string | undefined {
  for (const path of paths) {
    const span = findString(body, path, start, end)
    if (span !== undefined) return body.toString('latin1', span.start + 1, span.end - 1)
  }
  return undefined
}

/** Finds the cost. The last occurrence counts, because the cost is at the end. */
function costIn(body: Buffer, mark: string): EntryHead['cost'] {
  const at = body.lastIndexOf(mark)
  if (at === -1) return undefined
  const start = at + mark.length
  const end = body.indexOf('"', start)
  return end === -1 ? undefined : { start, end }
}

const LONGEST_PREFIX = 16
const DIGITS = '0123456789abcdef'
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Returns another id of the same length and kind: the prefix up to the first `-` or `_` stays, and so do such characters after it. */
function freshId(id: string): string {
  const mark = id.search(/[-_]/)
  const kept = mark === -1 || mark > LONGEST_PREFIX || /^[0-9a-f]+$/.test(id.slice(0, mark)) ? 0 : mark + 1
  const alphabet = /^[0-9a-f-]*$/.test(id.slice(kept)) ? DIGITS : LETTERS
  const random = randomBytes(id.length)
  let fresh = id.slice(0, kept)
  for (let index = kept; index < id.length; index++) {
    const sign = id[index]!
    fresh += /[a-zA-Z0-9]/.test(sign) ? alphabet[random[index]! % alphabet.length] : sign
  }
  return fresh
}
