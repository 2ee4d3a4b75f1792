import { Buffer } from 'node:buffer'
import { parseExactJson } from '../../core/exact-json.ts'
import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { EXACT_BODY } from './batch-lines.ts'
import type { PlannedRequest } from './check-requests.ts'
import { planId } from './submit-batch.ts'

const NEWLINE = 0x0a

/** Bytes of the plan that are read at once, and how often: what is kept is bounded by both. */
const WINDOW_BYTES = 512 * 1024
const MOST_WINDOWS = 64

/** The requests of a batch by their number, in any order, without all of them in memory. */
export class PlanIndex {
  readonly #settings: BatchSettings
  readonly #planId: string
  /** Where each request ends, in bytes; the line break not included. */
  readonly #ends: readonly number[]
  /** By number, the latest used last. */
  readonly #windows = new Map<number, Promise<Uint8Array>>()

  private constructor(settings: BatchSettings, id: string, ends: readonly number[]) {
    this.#settings = settings
    this.#planId = id
    this.#ends = ends
  }

  static async of(settings: BatchSettings, batchId: string): Promise<PlanIndex> {
    const id = planId(batchId)
    const plan = await settings.blobs.get(id)
    if (plan === undefined) throw new Error(`the requests of the batch ${batchId} are gone`)
    const ends: number[] = []
    let position = 0
    for await (const piece of plan.content) {
      for (let at = piece.indexOf(NEWLINE); at !== -1; at = piece.indexOf(NEWLINE, at + 1)) ends.push(position + at)
      position += piece.byteLength
    }
    return new PlanIndex(settings, id, ends)
  }

  /** How many requests there are. */
  get size(): number {
    return this.#ends.length
  }

  /** Undefined: there is no such request. */
  async request(line: number): Promise<PlannedRequest | undefined> {
    const end = this.#ends[line]
    if (end === undefined) return undefined
    const start = line === 0 ? 0 : this.#ends[line - 1]! + 1
    const parts: Uint8Array[] = []
    for (let window = Math.floor(start / WINDOW_BYTES); window * WINDOW_BYTES < end; window++) {
      const first = window * WINDOW_BYTES
      const bytes = await this.#window(window)
      parts.push(bytes.subarray(Math.max(0, start - first), end - first))
    }
    return parseExactJson(Buffer.from(joinChunks(parts)).toString(), EXACT_BODY) as PlannedRequest
  }

  #window(number: number): Promise<Uint8Array> {
    const known = this.#windows.get(number)
    this.#windows.delete(number)
    const window = known ?? this.#read(number)
    this.#windows.set(number, window)
    for (const oldest of this.#windows.keys()) {
      if (this.#windows.size <= MOST_WINDOWS) break
      this.#windows.delete(oldest)
    }
    return window
  }

  async #read(number: number): Promise<Uint8Array> {
    const start = number * WINDOW_BYTES
    try {
      const blob = await this.#settings.blobs.get(this.#planId, { start, end: start + WINDOW_BYTES })
      if (blob === undefined) throw new Error(`the requests ${this.#planId} are gone`)
      const parts: Uint8Array[] = []
      for await (const piece of blob.content) parts.push(Uint8Array.from(piece))
      return joinChunks(parts)
    } catch (error) {
      // It is read again when it is asked for again.
      this.#windows.delete(number)
      throw error
    }
  }
}
