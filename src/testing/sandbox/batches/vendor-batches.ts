import { Buffer } from 'node:buffer'
import type { IncomingCall } from '../sandbox-operation.ts'

/** Durations of batches. */
export interface BatchTimes {
  /** Milliseconds until a batch is processed, and until a cancelled one ends. */
  readonly pendingMs: number
  /** Milliseconds from the start of processing until the last request is answered. */
  readonly runningMs: number
}

/** A request of a batch. */
export interface BatchItem {
  /** Id of the request for its caller. */
  readonly key: string
  /** The request as a single call. */
  readonly call: IncomingCall
}

/** How a request of a batch ended. */
export type BatchOutcome =
  | { readonly kind: 'answered'; readonly status: number; readonly body: unknown }
  | { readonly kind: 'canceled' }
  | { readonly kind: 'expired' }

/** Answers a request of a batch. */
export type BatchRun = (batchId: string, call: IncomingCall) => { readonly status: number; readonly body: unknown }

/** State of a batch at one moment. Times are in Unix milliseconds. */
export interface VendorBatch<Facts> {
  readonly id: string
  readonly facts: Facts
  readonly items: readonly BatchItem[]
  /** Outcome of each item, or `undefined` if there is none yet. */
  readonly outcomes: readonly (BatchOutcome | undefined)[]
  readonly state: 'pending' | 'running' | 'canceling' | 'completed' | 'canceled' | 'expired' | 'failed'
  readonly createdMs: number
  readonly expiresMs: number
  readonly canceledMs: number | undefined
  /** Time of the end, or `undefined` before it. */
  readonly endedMs: number | undefined
}

/** A batch without an id. */
export interface NewBatch<Facts> {
  readonly id: string
  /** Key of the owner. Each key is an account here, and others cannot see the batch. */
  readonly apiKey: string
  readonly facts: Facts
  readonly items: readonly BatchItem[]
  readonly lifeMs: number
  /** Whether the batch fails when it is processed. */
  readonly isFaulty?: boolean
}

/** The batches of one vendor in one sandbox. */
export interface VendorBatches<Facts> {
  add(batch: NewBatch<Facts>, nowMs: number): VendorBatch<Facts>
  /** Returns the batch if this key has submitted it. Answers due requests first. */
  find(id: string, apiKey: string, nowMs: number): VendorBatch<Facts> | undefined
  /** Returns the batches that {@link find} would find for the key, newest first. */
  list(apiKey: string, nowMs: number): VendorBatch<Facts>[]
  /** Starts no more requests. No effect on a batch that has ended. */
  cancel(id: string, nowMs: number): void
  delete(id: string): void
}

/**
 * Marks in the text of a request that steer its batch. `stuck` is never answered, so that the batch ends when it expires or is
 * cancelled. `expired` ends with the batch and without an answer. With `failed`, the vendor cannot process the batch.
 */
const MARKS = ['stuck', 'expired', 'failed'] as const
type Mark = (typeof MARKS)[number]

/** The oldest batches are dropped first. */
const MAX_BATCHES = 1_000

interface HeldBatch<Facts> extends NewBatch<Facts> {
  readonly marks: readonly (Mark | undefined)[]
  readonly createdMs: number
  readonly startMs: number
  readonly outcomes: (BatchOutcome | undefined)[]
  canceledMs: number | undefined
}

/** Creates an empty list of batches. `run` answers their requests in order when they are due. */
export function vendorBatches<Facts>(run: BatchRun, { pendingMs, runningMs }: BatchTimes): VendorBatches<Facts> {
  const batches = new Map<string, HeldBatch<Facts>>()

  /** Time at which a request is answered. */
  const turnOf = (batch: HeldBatch<Facts>, index: number): number =>
    batch.marks[index] === undefined
      ? batch.startMs + (runningMs * (index + 1)) / batch.items.length
      : Number.POSITIVE_INFINITY

  const look = (batch: HeldBatch<Facts>, nowMs: number): VendorBatch<Facts> => {
    const { canceledMs = Number.POSITIVE_INFINITY, startMs, marks, items, outcomes } = batch
    const expiresMs = batch.createdMs + batch.lifeMs
    const isFailing = batch.isFaulty === true || marks.includes('failed')
    const doneMs = isFailing ? startMs : marks.includes('stuck') ? Number.POSITIVE_INFINITY : startMs + runningMs
    const endMs = Math.min(doneMs, expiresMs, canceledMs + pendingMs)
    const isOver = nowMs >= endMs
    if (!isFailing) {
      const lastTurnMs = Math.min(nowMs, endMs, canceledMs)
      for (const [index, { call }] of items.entries()) {
        if (outcomes[index] !== undefined || turnOf(batch, index) > lastTurnMs) continue
        outcomes[index] = { kind: 'answered', ...run(batch.id, call) }
      }
      if (isOver) {
        const kind = canceledMs < Math.min(doneMs, expiresMs) ? 'canceled' : 'expired'
        for (const index of items.keys()) outcomes[index] ??= { kind }
      }
    }
    return {
      id: batch.id,
      facts: batch.facts,
      items,
      outcomes,
      state: stateOf(),
      createdMs: batch.createdMs,
      expiresMs,
      canceledMs: batch.canceledMs,
      endedMs: isOver ? endMs : undefined,
    }

    function stateOf(): VendorBatch<Facts>['state'] {
      if (!isOver) return canceledMs <= nowMs ? 'canceling' : nowMs < startMs ? 'pending' : 'running'
      if (isFailing && endMs === doneMs) return 'failed'
      const lost = outcomes.find((outcome) => outcome?.kind !== 'answered')
      return lost === undefined ? 'completed' : lost.kind === 'canceled' ? 'canceled' : 'expired'
    }
  }

  return {
    add(batch, nowMs) {
      const held: HeldBatch<Facts> = {
        ...batch,
        marks: batch.items.map(({ call }) => markOf(call)),
        createdMs: nowMs,
        startMs: nowMs + pendingMs,
        outcomes: batch.items.map(() => undefined),
        canceledMs: undefined,
      }
      batches.set(batch.id, held)
      const [oldest] = batches.keys()
      if (batches.size > MAX_BATCHES && oldest !== undefined) batches.delete(oldest)
      return look(held, nowMs)
    },
    find(id, apiKey, nowMs) {
      const batch = batches.get(id)
      return batch?.apiKey === apiKey ? look(batch, nowMs) : undefined
    },
    list: (apiKey, nowMs) =>
      [...batches.values()]
        .filter((batch) => batch.apiKey === apiKey)
        .map((batch) => look(batch, nowMs))
        .reverse(),
    cancel(id, nowMs) {
      const batch = batches.get(id)
      if (batch !== undefined && look(batch, nowMs).endedMs === undefined) batch.canceledMs ??= nowMs
    },
    delete(id) {
      batches.delete(id)
    },
  }
}

function markOf({ bytes }: IncomingCall): Mark | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return MARKS.find((mark) => text.includes(`[[batch:${mark}]]`))
}

/** Returns the lines of a file, without blank ones. */
export function jsonLines(bytes: Uint8Array): string[] {
  return Buffer.from(bytes)
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
}

/** Returns up to `limit` items after an id, newest first. */
export function pageAfter<Item extends { readonly id: string }>(
  items: readonly Item[],
  after: string | null,
  limit: number,
): { readonly page: Item[]; readonly hasMore: boolean } {
  const start = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1
  const page = items.slice(start, start + limit)
  return { page, hasMore: start + limit < items.length }
}

/** A file that a caller has uploaded or a vendor has written. */
export interface UploadedFile {
  readonly id: string
  /** Key of the owner. Each key is an account here, and others cannot see the file. */
  readonly apiKey: string
  readonly filename: string
  readonly purpose: string
  readonly bytes: Uint8Array
  /** Unix milliseconds. */
  readonly createdMs: number
  readonly expiresMs: number
}

/** The files of one vendor in one sandbox. */
export interface UploadedFiles {
  /** Stores a file, replacing one with the same id. */
  add(file: UploadedFile): UploadedFile
  find(id: string, apiKey: string, nowMs: number): UploadedFile | undefined
  /** Lists the files, newest first. */
  list(apiKey: string, nowMs: number): UploadedFile[]
  /** Returns false if there is no such file. */
  delete(id: string, apiKey: string, nowMs: number): boolean
}

/** The oldest files are dropped first. */
const MAX_FILES = 1_000

/** Creates an empty list of files. */
export function uploadedFiles(): UploadedFiles {
  const files = new Map<string, UploadedFile>()
  const find: UploadedFiles['find'] = (id, apiKey, nowMs) => {
    const file = files.get(id)
    return file?.apiKey === apiKey && nowMs < file.expiresMs ? file : undefined
  }
  return {
    add(file) {
      files.set(file.id, file)
      const [oldest] = files.keys()
      if (files.size > MAX_FILES && oldest !== undefined) files.delete(oldest)
      return file
    },
    find,
    list: (apiKey, nowMs) => [...files.values()].filter((file) => find(file.id, apiKey, nowMs) !== undefined).reverse(),
    delete: (id, apiKey, nowMs) => find(id, apiKey, nowMs) !== undefined && files.delete(id),
  }
}
