import type { BatchOutcome, BatchStore } from '../batch-store.ts'
import { assertBlobId, type BlobStore } from '../blob-store.ts'
import type { FileRecord, FileStore } from '../file-store.ts'
import type { StoredUsage } from '../stored-usage.ts'
import { AccountShares } from './account-shares.ts'
import { accountKey } from './map-scans.ts'

/** Limits of stored files. */
export interface MemoryFilesOptions {
  /** Maximum size of all files together, in bytes. A file that exceeds it is rejected. Default 512 MiB. */
  readonly maxFileBytes?: number | undefined
}

const DEFAULT_MAX_BYTES = 512 * 1024 * 1024

interface KeptBlob {
  readonly bytes: readonly Uint8Array[]
  readonly byteLength: number
  readonly expiresAtMs: number
}

/** Content in this process, limited in size. */
export function memoryBlobs({ maxFileBytes = DEFAULT_MAX_BYTES }: MemoryFilesOptions = {}): BlobStore {
  const blobs = new Map<string, KeptBlob>()
  let total = 0

  function drop(id: string): boolean {
    total -= blobs.get(id)?.byteLength ?? 0
    return blobs.delete(id)
  }

  return {
    async put({ id, expiresAtMs }, content) {
      assertBlobId(id)
      const bytes: Uint8Array[] = []
      let byteLength = 0
      try {
        for await (const piece of content) {
          // Counted on arrival, because several files that arrive concurrently share the limit.
          byteLength += piece.byteLength
          total += piece.byteLength
          if (total > maxFileBytes) throw new Error(`there is no room for more than ${maxFileBytes} bytes of files`)
          bytes.push(Uint8Array.from(piece))
        }
      } catch (error) {
        total -= byteLength
        throw error
      }
      drop(id)
      blobs.set(id, { bytes, byteLength, expiresAtMs })
      return byteLength
    },

    async get(id, { start, end } = { start: 0 }) {
      const blob = blobs.get(id)
      if (blob === undefined) return undefined
      return { byteLength: blob.byteLength, content: rangeOf(blob, start, end ?? blob.byteLength) }
    },

    delete: async (id) => drop(id),

    async purge(nowMs, limit) {
      let count = 0
      for (const [id, { expiresAtMs }] of blobs) {
        if (count >= limit) break
        if (expiresAtMs <= nowMs && drop(id)) count++
      }
      return count
    },
  }
}

async function* rangeOf({ bytes }: KeptBlob, start: number, end: number): AsyncIterable<Uint8Array> {
  let position = 0
  for (const piece of bytes) {
    const part = piece.subarray(Math.max(0, start - position), Math.max(0, end - position))
    position += piece.byteLength
    if (part.byteLength > 0) yield part
  }
}

/** Owners of files in this process; synchronous. */
export function memoryFiles(): FileStore & { stored(accountId: string, nowMs: number): StoredUsage } {
  const files = new Map<string, FileRecord>()
  const sizes = new AccountShares()
  const drop = (accountId: string, id: string): boolean => {
    const name = accountKey(accountId, id)
    sizes.delete(accountId, name)
    return files.delete(name)
  }
  const ownedBy = (accountId: string, nowMs: number): FileRecord[] =>
    [...files.values()].filter((file) => file.accountId === accountId && file.expiresAtMs > nowMs)

  return {
    save(file) {
      const name = accountKey(file.accountId, file.id)
      files.set(name, file)
      sizes.set(file.accountId, name, file.byteLength, file.expiresAtMs)
    },
    find(accountId, id, nowMs) {
      const file = files.get(accountKey(accountId, id))
      return file === undefined || file.expiresAtMs <= nowMs ? undefined : file
    },
    list(accountId, { limit, order, after, purpose }, nowMs) {
      const sorted = ownedBy(accountId, nowMs).sort(inOrder)
      if (order === 'desc') sorted.reverse()
      const start = after === undefined ? 0 : sorted.findIndex(({ id }) => id === after) + 1
      if (after !== undefined && start === 0) return { files: [], hasMore: false }
      const behind = sorted.slice(start).filter((file) => purpose === undefined || file.purpose === purpose)
      return { files: behind.slice(0, limit), hasMore: behind.length > limit }
    },
    stored: (accountId, nowMs) => sizes.usage(accountId, nowMs, (name) => files.get(name)!.expiresAtMs),
    delete: drop,
    purge(nowMs, limit) {
      const expired = [...files.values()].filter(({ expiresAtMs }) => expiresAtMs <= nowMs).slice(0, limit)
      for (const { accountId, id } of expired) drop(accountId, id)
      return expired.map(({ id }) => id)
    },
  }
}

function inOrder(one: FileRecord, other: FileRecord): number {
  return one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : 1)
}

interface KeptBatch {
  readonly outcomes: Map<number, BatchOutcome>
  readonly expiresAtMs: number
  lastLine: number
}

const NO_BATCH: KeptBatch = { outcomes: new Map(), expiresAtMs: 0, lastLine: -1 }

/** Outcomes of batches in this process; synchronous. The maximum of open batches per caller limits them. */
export function memoryBatches(): BatchStore {
  const batches = new Map<string, KeptBatch>()

  function* behind(batchId: string, afterLine: number, limit: number): Iterable<BatchOutcome> {
    const { outcomes, lastLine } = batches.get(batchId) ?? NO_BATCH
    let count = 0
    for (let line = afterLine + 1; line <= lastLine && count < limit; line++) {
      const outcome = outcomes.get(line)
      if (outcome === undefined) continue
      count++
      yield outcome
    }
  }

  return {
    add(batchId, outcome, expiresAtMs) {
      const batch = batches.get(batchId) ?? { outcomes: new Map<number, BatchOutcome>(), expiresAtMs, lastLine: -1 }
      batches.set(batchId, batch)
      if (batch.outcomes.has(outcome.line)) return false
      batch.lastLine = Math.max(batch.lastLine, outcome.line)
      batch.outcomes.set(outcome.line, outcome)
      return true
    },
    tally(batchId) {
      const { outcomes } = batches.get(batchId) ?? NO_BATCH
      let answered = 0
      for (const { isAnswered } of outcomes.values()) if (isAnswered) answered++
      return { answered, failed: outcomes.size - answered }
    },
    page: (batchId, afterLine, limit) => [...behind(batchId, afterLine, limit)],
    lines: (batchId, afterLine, limit) => Array.from(behind(batchId, afterLine, limit), ({ line }) => line),
    delete(batchId, limit) {
      const taken = [...behind(batchId, -1, limit)]
      const batch = batches.get(batchId)
      for (const { line } of taken) batch?.outcomes.delete(line)
      if (batch?.outcomes.size === 0) batches.delete(batchId)
      return taken.length
    },
    purge(nowMs, limit) {
      let count = 0
      for (const [batchId, { outcomes, expiresAtMs }] of batches) {
        if (expiresAtMs > nowMs) continue
        for (const line of [...outcomes.keys()].slice(0, limit - count)) {
          outcomes.delete(line)
          count++
        }
        if (outcomes.size === 0) batches.delete(batchId)
      }
      return count
    },
  }
}
