import { Buffer } from 'node:buffer'
import { parseExactJson } from '../../core/exact-json.ts'
import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import { joinChunks } from '../../wire/join-chunks.ts'
import { EXACT_BODY } from './batch-lines.ts'
import type { PlannedRequest } from './check-requests.ts'
import { planId } from './submit-batch.ts'

const NEWLINE = 0x0a

/** Size of a part of the plan that is read at a time, and the maximum number of parts in memory. */
const WINDOW_BYTES = 512 * 1024
const MOST_WINDOWS = 64

/** Gives access to the requests of a batch by number, in any order, without all of them in memory. */
export class PlanIndex {
  readonly #settings: BatchSettings
  readonly #planId: string
  /** End offset of each request in bytes, without the line break. */
  readonly #ends: readonly number[]
  /** Parts by number; the last one was used last. */
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

  /** Number of requests. */
  get size(): number {
    return this.#ends.length
  }

  /** Returns a request by its number, or `undefined` if there is no such request. */
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
      // A later access reads it again.
      this.#windows.delete(number)
      throw error
    }
  }
}
