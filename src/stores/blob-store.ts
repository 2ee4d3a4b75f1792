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
async function* equalPieces(content: AsyncIterable<Uint8Array>, byteLength: number): AsyncIterable<Uint8Array> {
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

/** Blobs in rows of a database. `Handle` names the rows of one blob. */
export interface BlobRows<Handle> extends Pick<BlobStore, 'delete' | 'purge'> {
  /** Creates a blob that no reader finds. */
  begin(blob: NewBlob): Promise<Handle>
  addRow(handle: Handle, place: number, bytes: Uint8Array): Promise<unknown>
  /** Completes a blob, which replaces the earlier one of its id. */
  finish(handle: Handle, id: string, byteLength: number): Promise<unknown>
  /** Removes a blob that was not completed. */
  remove(handle: Handle): Promise<unknown>
  find(id: string): Promise<{ readonly handle: Handle; readonly byteLength: number } | undefined>
  row(handle: Handle, place: number): Promise<Uint8Array | undefined>
}

/** Creates a store of blobs whose content is in rows of {@link BLOB_ROW_BYTES}. */
export function blobsInRows<Handle>(rows: BlobRows<Handle>): BlobStore {
  return {
    async put(blob, content) {
      assertBlobId(blob.id)
      const handle = await rows.begin(blob)
      let byteLength = 0
      try {
        let place = 0
        for await (const bytes of equalPieces(content, BLOB_ROW_BYTES)) {
          await rows.addRow(handle, place++, bytes)
          byteLength += bytes.byteLength
        }
        await rows.finish(handle, blob.id, byteLength)
      } catch (error) {
        await rows.remove(handle)
        throw error
      }
      return byteLength
    },
    async get(id, range = { start: 0 }) {
      const found = await rows.find(id)
      if (found === undefined) return undefined
      const { handle, byteLength } = found
      return { byteLength, content: rangeOfRows(byteLength, range, (place) => rows.row(handle, place)) }
    },
    delete: (id) => rows.delete(id),
    purge: (nowMs, limit) => rows.purge(nowMs, limit),
  }
}

/**
 * Reads a range from rows of {@link BLOB_ROW_BYTES}.
 * @param row Returns the row at an index, counted from 0.
 * @throws Error if a row is missing, because the blob was deleted or replaced meanwhile.
 */
async function* rangeOfRows(
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
