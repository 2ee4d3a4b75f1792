/** Content to store. */
export interface NewBlob {
  /** Id of 1 to 128 letters, digits, `_` and `-`. */
  readonly id: string
  /** Time in Unix milliseconds from which `purge` may delete it. */
  readonly expiresAtMs: number
}

/** Range of bytes from `start`, counted from 0, up to but not including `end`. Without `end`, it reaches to the end. */
export interface BlobRange {
  /** First byte, counted from 0. */
  readonly start: number
  readonly end?: number | undefined
}

/** Content that is read in chunks. */
export interface StoredBlob {
  /** Size of the whole content in bytes, whatever the requested range. */
  readonly byteLength: number
  readonly content: AsyncIterable<Uint8Array>
}

/** Bytes by id, never completely in memory. It does not check owners. */
export interface BlobStore {
  /**
   * Stores content. Earlier content of the id is replaced at the end, in one step. If the content fails, its error is thrown, and
   * the id keeps its earlier content.
   * @returns The size in bytes.
   */
  put(blob: NewBlob, content: AsyncIterable<Uint8Array>): Promise<number>
  /**
   * Returns content, or undefined for an unknown id. A range beyond the end is empty. If content is deleted or replaced during a
   * read, the read continues with the old content, or throws; it never returns other content.
   */
  get(id: string, range?: BlobRange): Promise<StoredBlob | undefined>
  /** Deletes content. Returns false if there is none. */
  delete(id: string): Promise<boolean>
  /** Deletes up to `limit` expired blobs and returns how many were deleted. */
  purge(nowMs: number, limit: number): Promise<number>
}

/** Size of one database row in bytes; the last row of a blob is smaller. */
export const BLOB_ROW_BYTES = 512 * 1024

const BLOB_ID = /^[A-Za-z0-9_-]{1,128}$/

/**
 * Rejects an id that could be a path.
 * @throws RangeError
 */
export function assertBlobId(id: string): void {
  if (!BLOB_ID.test(id)) throw new RangeError('the id of a blob has 1 to 128 letters, digits, "_" and "-"')
}

/** Returns the bytes in chunks of equal size; the last one may be smaller. */
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
 * Reads a range from rows of {@link BLOB_ROW_BYTES}.
 * @param row Returns the row at an index, counted from 0.
 * @throws Error if a row is missing, because the blob was deleted or replaced meanwhile.
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
