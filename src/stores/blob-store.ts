/** Content to keep. */
export interface NewBlob {
  /** 1 to 128 letters, digits, `_` and `-`. */
  readonly id: string
  /** Unix milliseconds from which `purge` may delete it. */
  readonly expiresAtMs: number
}

/** A part of some content: from the byte `start`, counted from 0, up to `end`, which is not part of it; absent: to the end. */
export interface BlobRange {
  /** First byte, counted from 0. */
  readonly start: number
  readonly end?: number | undefined
}

/** Content that is read piece by piece. */
export interface StoredBlob {
  /** Bytes of the whole content, whatever range was asked for. */
  readonly byteLength: number
  readonly content: AsyncIterable<Uint8Array>
}

/** Bytes by id, never whole in memory. It knows no owners. */
export interface BlobStore {
  /**
   * Keeps content; what the id held before is replaced at the end, in one step. If the content fails, its error is thrown, and the
   * id holds what it held before.
   * @returns how many bytes it has.
   */
  put(blob: NewBlob, content: AsyncIterable<Uint8Array>): Promise<number>
  /**
   * Undefined for an unknown id. A range beyond the end is empty. Content that is deleted or replaced while it is read goes on as it was,
   * or throws; it never becomes another.
   */
  get(id: string, range?: BlobRange): Promise<StoredBlob | undefined>
  /** False: there is none. */
  delete(id: string): Promise<boolean>
  /** Deletes at most `limit` that have expired; gives their number. */
  purge(nowMs: number, limit: number): Promise<number>
}

/** Bytes of one row of a database; the last of a blob has fewer. */
export const BLOB_ROW_BYTES = 512 * 1024

const BLOB_ID = /^[A-Za-z0-9_-]{1,128}$/

/**
 * Refuses an id that could be a path.
 * @throws RangeError
 */
export function assertBlobId(id: string): void {
  if (!BLOB_ID.test(id)) throw new RangeError('the id of a blob has 1 to 128 letters, digits, "_" and "-"')
}

/** The same bytes in pieces of the same size; the last one may be smaller. */
export async function* equalPieces(content: AsyncIterable<Uint8Array>, byteLength: number): AsyncIterable<Uint8Array> {
  let piece = new Uint8Array(byteLength)
  let filled = 0
  for await (const chunk of content) {
    for (let start = 0; start < chunk.byteLength; ) {
      const taken = chunk.subarray(start, start + byteLength - filled)
      piece.set(taken, filled)
      filled += taken.byteLength
      start += taken.byteLength
      if (filled < byteLength) continue
      yield piece
      piece = new Uint8Array(byteLength)
      filled = 0
    }
  }
  if (filled > 0) yield piece.subarray(0, filled)
}

/**
 * Reads a range out of rows of {@link BLOB_ROW_BYTES}.
 * @param row gives the row at a place, counted from 0.
 * @throws Error when a row is gone: the blob was deleted or replaced meanwhile.
 */
export async function* rangeOfRows(
  byteLength: number,
  { start, end = byteLength }: BlobRange,
  row: (place: number) => Promise<Uint8Array | undefined>,
): AsyncIterable<Uint8Array> {
  const last = Math.min(end, byteLength)
  for (let position = start; position < last; ) {
    const place = Math.floor(position / BLOB_ROW_BYTES)
    const bytes = await row(place)
    if (bytes === undefined) throw new Error('the blob was deleted while it was read')
    const first = place * BLOB_ROW_BYTES
    yield bytes.subarray(position - first, last - first)
    position = first + BLOB_ROW_BYTES
  }
}
