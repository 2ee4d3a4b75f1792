import { Buffer } from 'node:buffer'
import type {
  AnswerContext,
  IncomingCall,
  OperationMaker,
  SandboxCall,
  SandboxOperation,
} from '../sandbox-operation.ts'

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
interface NewBatch<Facts> {
  readonly id: string
  /** Key of the owner. Each key is an account here, and others cannot see the batch. */
  readonly apiKey: string
  readonly facts: Facts
  readonly items: readonly BatchItem[]
  readonly lifeMs: number
  /** Whether the batch fails when it is processed. */
  readonly isFaulty?: boolean
}

/**
 * Marks in the text of a request that steer its batch. `stuck` is never answered, so that the batch ends when it expires or is
 * cancelled. `expired` ends with the batch and without an answer. With `failed`, the vendor cannot process the batch.
 */
const MARKS = ['stuck', 'expired', 'failed'] as const
type Mark = (typeof MARKS)[number]

/** Maximum batches, and files, of a vendor. The oldest ones are dropped first. */
const MAX_ENTRIES = 1_000

interface HeldBatch<Facts> extends NewBatch<Facts> {
  readonly marks: readonly (Mark | undefined)[]
  readonly createdMs: number
  readonly startMs: number
  readonly outcomes: (BatchOutcome | undefined)[]
  canceledMs: number | undefined
}

/** The batches of one vendor in one sandbox. */
export class VendorBatches<Facts> {
  readonly #run: BatchRun
  readonly #times: BatchTimes
  readonly #batches = new Map<string, HeldBatch<Facts>>()

  /** @param run Answers the requests of a batch, in order, when they are due. */
  constructor(run: BatchRun, times: BatchTimes) {
    this.#run = run
    this.#times = times
  }

  add(batch: NewBatch<Facts>, nowMs: number): VendorBatch<Facts> {
    const held: HeldBatch<Facts> = {
      ...batch,
      marks: batch.items.map(({ call }) => markOf(call)),
      createdMs: nowMs,
      startMs: nowMs + this.#times.pendingMs,
      outcomes: batch.items.map(() => undefined),
      canceledMs: undefined,
    }
    keepNewest(this.#batches, batch.id, held)
    return this.#look(held, nowMs)
  }

  /** Returns the batch if this key has submitted it. Answers due requests first. */
  find(id: string, apiKey: string, nowMs: number): VendorBatch<Facts> | undefined {
    const batch = this.#batches.get(id)
    return batch?.apiKey === apiKey ? this.#look(batch, nowMs) : undefined
  }

  /** Returns the batches that {@link find} would find for the key, newest first. */
  list(apiKey: string, nowMs: number): VendorBatch<Facts>[] {
    const own = [...this.#batches.values()].filter((batch) => batch.apiKey === apiKey)
    return own.map((batch) => this.#look(batch, nowMs)).reverse()
  }

  /** Starts no more requests. No effect on a batch that has ended. */
  cancel(id: string, nowMs: number): void {
    const batch = this.#batches.get(id)
    if (batch !== undefined && this.#look(batch, nowMs).endedMs === undefined) batch.canceledMs ??= nowMs
  }

  delete(id: string): void {
    this.#batches.delete(id)
  }

  /** Answers the requests that are due, and returns the state at this moment. */
  #look(batch: HeldBatch<Facts>, nowMs: number): VendorBatch<Facts> {
    const { pendingMs, runningMs } = this.#times
    const { canceledMs = Number.POSITIVE_INFINITY, startMs, marks, items, outcomes } = batch
    const expiresMs = batch.createdMs + batch.lifeMs
    const isFailing = batch.isFaulty === true || marks.includes('failed')
    const doneMs = isFailing ? startMs : marks.includes('stuck') ? Number.POSITIVE_INFINITY : startMs + runningMs
    const endMs = Math.min(doneMs, expiresMs, canceledMs + pendingMs)
    const isOver = nowMs >= endMs
    if (!isFailing) {
      const lastTurnMs = Math.min(nowMs, endMs, canceledMs)
      for (const [index, { call }] of items.entries()) {
        const turnMs = startMs + (runningMs * (index + 1)) / items.length
        if (outcomes[index] !== undefined || marks[index] !== undefined || turnMs > lastTurnMs) continue
        outcomes[index] = { kind: 'answered', ...this.#run(batch.id, call) }
      }
      const kind = canceledMs < Math.min(doneMs, expiresMs) ? 'canceled' : 'expired'
      if (isOver) for (const index of items.keys()) outcomes[index] ??= { kind }
    }
    const lost = outcomes.find((outcome) => outcome?.kind !== 'answered')
    const current = canceledMs <= nowMs ? 'canceling' : nowMs < startMs ? 'pending' : 'running'
    const ended = lost === undefined ? 'completed' : lost.kind === 'canceled' ? 'canceled' : 'expired'
    const state = !isOver ? current : isFailing && endMs === doneMs ? 'failed' : ended
    return { ...batch, state, expiresMs, endedMs: isOver ? endMs : undefined }
  }
}

/** Sets an entry, and drops the oldest one of more than 1,000. */
function keepNewest<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > MAX_ENTRIES && oldest !== undefined) map.delete(oldest)
}

function markOf({ bytes }: IncomingCall): Mark | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return MARKS.find((mark) => text.includes(`[[batch:${mark}]]`))
}

/** Returns a request of a batch as a single call with the credential of the batch. */
export function batchedCall(path: string, body: unknown, { headers, query }: SandboxCall): IncomingCall {
  const bytes = Buffer.from(JSON.stringify(body ?? null))
  return { method: 'POST', path, query, headers: { ...headers, 'content-type': 'application/json' }, bytes }
}

/** Returns the lines of a file, without blank ones. */
export function jsonLines(bytes: Uint8Array): string[] {
  return Buffer.from(bytes)
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
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
export class UploadedFiles {
  readonly #files = new Map<string, UploadedFile>()

  /** Stores a file, replacing one with the same id. */
  add(file: UploadedFile): UploadedFile {
    keepNewest(this.#files, file.id, file)
    return file
  }

  find(id: string, apiKey: string, nowMs: number): UploadedFile | undefined {
    const file = this.#files.get(id)
    return file?.apiKey === apiKey && nowMs < file.expiresMs ? file : undefined
  }

  /** Lists the files, newest first. */
  list(apiKey: string, nowMs: number): UploadedFile[] {
    return [...this.#files.values()].filter((file) => this.find(file.id, apiKey, nowMs) !== undefined).reverse()
  }

  delete(id: string): void {
    this.#files.delete(id)
  }
}

/** The parts of a vendor's paths and objects in which batches, or files, differ between vendors. */
interface ItemRoutes<Item extends { readonly id: string }> {
  readonly operation: OperationMaker
  /** Name of the operation for one item: `batch`, `file`. */
  readonly name: string
  /** Pattern of the path of one item. Its group is the id. */
  readonly one: RegExp
  /** Returns the item of a call with this id. Throws RefusedCall if there is none. */
  found(call: SandboxCall, id: string, nowMs: number): Item
  shown(item: Item, call: SandboxCall): unknown
  when?(call: Pick<SandboxCall, 'headers'>): boolean
  readonly list?: {
    readonly path: string
    /** Query fields of the cursor and of the page size, and the default size. */
    readonly query: readonly [after: string, limit: string, usual: number]
    items(call: SandboxCall, nowMs: number): Item[]
    shown(page: readonly Item[], hasMore: boolean, call: SandboxCall): unknown
  }
  readonly cancel?: { readonly path: RegExp; cancel(item: Item, call: SandboxCall, nowMs: number): unknown }
  /** Deletes an item, and returns the answer. */
  delete?(item: Item): unknown
}

/** Creates the operations that look at, list, cancel and delete the items of a vendor. */
export function itemOperations<Item extends { readonly id: string }>(routes: ItemRoutes<Item>): SandboxOperation[] {
  const { operation, name, one, found, list, cancel, when = () => true } = routes
  const operations = [
    operation({
      operation: name,
      get: one,
      when,
      json: (call, { nowMs }, _request, [id = '']) => routes.shown(found(call, id, nowMs), call),
    }),
    operation({
      operation: `${name}-delete`,
      delete: one,
      when: (call) => routes.delete !== undefined && when(call),
      json: (call, { nowMs }, _request, [id = '']) => routes.delete?.(found(call, id, nowMs)),
    }),
  ]
  if (cancel !== undefined) {
    const answer = (call: SandboxCall, { nowMs }: AnswerContext, _request: unknown, [id = '']: readonly string[]) =>
      cancel.cancel(found(call, id, nowMs), call, nowMs)
    operations.push(operation({ operation: `${name}-cancel`, post: cancel.path, needsJson: false, json: answer }))
  }
  if (list !== undefined) {
    const answer = (call: SandboxCall, { nowMs }: AnswerContext): unknown => {
      const [after, limit, usual] = list.query
      const query = new URLSearchParams(call.query)
      const items = list.items(call, nowMs)
      const start = query.has(after) ? items.findIndex(({ id }) => id === query.get(after)) + 1 : 0
      const end = start + Number(query.get(limit) ?? usual)
      return list.shown(items.slice(start, end), end < items.length, call)
    }
    operations.push(operation({ operation: `${name}-list`, get: list.path, when, json: answer }))
  }
  return operations
}
