import { Buffer } from 'node:buffer'
import { isJsonObject, parseVendorJson } from '../../core/json.ts'
import { ChunkCursor, type ChunkPlace, chunksBetween } from './chunk-cursor.ts'
import { asBuffer } from './json-bytes.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

// What stands around the vectors is short; an answer where it is not is read the slow way.
const MAX_EDGE_BYTES = 16_384
const PEEK_BYTES = 512

/** An embedding answer taken apart without reading its vectors. */
export interface EmbeddingsShell {
  /** Every member of the answer but `data`. */
  readonly members: Readonly<Record<string, unknown>>
  /** The bytes of `data` behind its opening bracket, the closing one included. */
  readonly vectors: readonly Uint8Array[]
  /** How many vectors there are. */
  readonly count: number
  /** How the first vector is written. */
  readonly encoding: 'float' | 'base64'
}

/**
 * Takes an embedding answer apart. The list of vectors is walked over item by item, jumping from the beginning of each
 * vector to its end; what stands before and behind the list is parsed. Undefined when anything is not of the expected
 * form (escapes, nested lists, lists in front of `data`): the answer has to be read as a whole then.
 */
export function embeddingsShell(chunks: readonly Uint8Array[]): EmbeddingsShell | undefined {
  const cursor = new ChunkCursor(chunks)
  if (cursor.skipBehind(OPEN_BRACKET) === undefined) return undefined
  const opening = cursor.place
  const head = edgeText(chunksBetween(chunks, { chunk: 0, offset: 0 }, opening))
  // A single brace in front of it: the member stands at the top.
  if (head === undefined || !/^\s*\{[^{]*"data"\s*:\s*\[$/.test(head)) return undefined
  const count = walkItems(cursor)
  if (count === undefined) return undefined
  const closing = cursor.place
  const tail = edgeText(chunksBetween(chunks, closing, endOf(chunks)))
  const shell = tail === undefined ? undefined : parseVendorJson(`${head}]${tail}`)
  if (!isJsonObject(shell)) return undefined
  const { data, ...members } = shell
  const vectors = chunksBetween(chunks, opening, closing)
  const encoding = firstEncoding(vectors)
  // A second member called `data` would have replaced the empty list.
  if (encoding === undefined || !Array.isArray(data) || data.length > 0) return undefined
  return { members, vectors, count, encoding }
}

/** Walks to behind the bracket that closes the list; gives the number of objects in it. */
function walkItems(cursor: ChunkCursor): number | undefined {
  let depth = 1
  let count = 0
  for (;;) {
    const byte = cursor.next()
    if (byte === undefined) return undefined
    if (byte === QUOTE) {
      const last = cursor.skipBehind(QUOTE)
      if (last === undefined || last === BACKSLASH) return undefined
    } else if (byte === OPEN_BRACE) {
      if (depth === 1) count += 1
      depth += 1
    } else if (byte === CLOSE_BRACE) depth -= 1
    else if (byte === OPEN_BRACKET) {
      // A vector: numbers hold no bracket. One that did would leave a bracket behind, which ends the walk below.
      if (depth !== 2 || cursor.skipBehind(CLOSE_BRACKET) === undefined) return undefined
    } else if (byte === CLOSE_BRACKET) return depth === 1 ? count : undefined
    if (depth < 1) return undefined
  }
}

function endOf(chunks: readonly Uint8Array[]): ChunkPlace {
  return { chunk: chunks.length, offset: 0 }
}

function edgeText(pieces: readonly Uint8Array[]): string | undefined {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return length > MAX_EDGE_BYTES ? undefined : Buffer.concat(pieces).toString('utf8')
}

function firstEncoding(vectors: readonly Uint8Array[]): 'float' | 'base64' | undefined {
  let text = ''
  for (const piece of vectors) {
    text += asBuffer(piece).toString('latin1', 0, PEEK_BYTES)
    if (text.length >= PEEK_BYTES) break
  }
  const match = /^\s*\{[^[]*?"embedding"\s*:\s*(["[])/.exec(text)
  if (match === null) return undefined
  return match[1] === '"' ? 'base64' : 'float'
}
