// See docs/decisions/0029-speed.md.

import { GatewayError } from './errors.ts'

/** A call that can be aborted. */
export interface AbortableCall {
  abort(): void
}

/**
 * Calls in progress. A cancellation, which arrives separately, finds its call here. An owner that closes can wait for the calls
 * and abort the rest.
 */
export class InFlightCalls {
  /** Calls, each with the name that cancels it. */
  readonly #calls = new Map<AbortableCall, string | undefined>()
  #onEmpty: (() => void)[] = []
  #isAborting = false

  /** Adds a call that has begun. */
  add(call: AbortableCall, name?: string): void {
    this.#calls.set(call, name)
    if (this.#isAborting) call.abort()
  }

  delete(call: AbortableCall): void {
    this.#calls.delete(call)
    if (this.#calls.size > 0) return
    for (const resolve of this.#onEmpty.splice(0)) resolve()
  }

  /** Aborts the oldest call of that name, if there is one. */
  cancel(name: string): void {
    for (const [call, itsName] of this.#calls) {
      if (itsName !== name) continue
      call.abort()
      return
    }
  }

  /** Resolves when no call remains. */
  ended(): Promise<void> {
    return this.#calls.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#onEmpty.push(resolve))
  }

  /** Aborts all calls, and every call added from now on. */
  abortAll(): void {
    this.#isAborting = true
    for (const call of [...this.#calls.keys()]) call.abort()
  }
}

/** Runs a limited number of jobs at the same time. */
export class Pool {
  readonly #size: number
  readonly #underWay = new Set<Promise<void>>()
  #fault: { readonly error: unknown } | undefined

  constructor(size: number) {
    this.#size = size
  }

  /**
   * Starts a job once there is room.
   * @throws the error of an earlier job.
   */
  async begin(work: () => Promise<void>): Promise<void> {
    while (this.#underWay.size >= this.#size) await Promise.race(this.#underWay)
    this.#throwFault()
    const running: Promise<void> = work()
      .catch((error: unknown) => {
        this.#fault ??= { error }
      })
      .finally(() => this.#underWay.delete(running))
    this.#underWay.add(running)
  }

  /** Waits for all jobs. Never rejects. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /**
   * Waits for all jobs.
   * @throws the error of a job.
   */
  async ended(): Promise<void> {
    await this.settled()
    this.#throwFault()
  }

  #throwFault(): void {
    if (this.#fault !== undefined) throw this.#fault.error
  }
}

/** Writer that has buffered data instead of passing it to the socket. */
export interface Sender {
  /** Sends the buffered data. Must not throw. */
  sendHeld(): void
}

let senders: Sender[] = []

/** Maximum number of senders per batch, so that the first of hundreds need not wait for the last, nor keep their memory. */
const MAX_SENDERS = 32

/**
 * Sends the buffered data at the end of this turn of the event loop, together with all other data that became ready in it. A
 * write wakes its reader. If the reader has gone to sleep since the last write, waking it costs more than the write, so
 * consecutive writes wake a local caller only once. The delay never exceeds work that the event loop would have done next anyway.
 */
export function sendAtEndOfTurn(sender: Sender): void {
  if (senders.length === 0) setImmediate(sendAll)
  if (senders.push(sender) >= MAX_SENDERS) sendAll()
}

/** Runs a function at the end of this turn of the event loop, after the buffered data is sent. */
export function workAtEndOfTurn(work: () => void): void {
  setImmediate(() => {
    sendAll()
    work()
  })
}

/** Resolves at the end of this turn of the event loop, after the buffered data is sent. */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => workAtEndOfTurn(resolve))
}

/** Size of a request body, in bytes, above which each step runs in a separate turn of the event loop. */
const LARGE_BYTES = 256 * 1024

/** Returns whether a body is so large that it is processed in several turns of the event loop. */
export function isLargeBody(bytes: Uint8Array | undefined): boolean {
  return bytes !== undefined && bytes.byteLength > LARGE_BYTES
}

function sendAll(): void {
  const sending = senders
  senders = []
  for (const sender of sending) sender.sendHeld()
}

/** Maximum work for the schemas of one request, in units. The slowest units together take less than a tenth of a second. */
const MAX_SCHEMA_UNITS = 100_000

/** Number of characters that cost as much to copy as one member. */
const CHARACTERS_PER_UNIT = 32

/**
 * Budget of a translation for all schemas of a request together. Each step pays for the values that it visits, copies and writes,
 * so the budget limits both the time and the size of the result.
 */
export class WorkBudget {
  #left = MAX_SCHEMA_UNITS

  /**
   * Pays for a step.
   * @param param Member of the request that causes the work, such as `tools[3].function.parameters`.
   * @throws GatewayError `invalid_request` that names the member, if the budget is used up.
   */
  pay(units: number, param: string): void {
    this.#left -= units
    if (this.#left >= 0) return
    const message = `${param}: the schemas of this request are too large once their references and combinations are resolved. Send fewer or smaller schemas.`
    throw new GatewayError('invalid_request', { message, param })
  }

  /** Pays for text by its length. Throws like {@link pay}. */
  payForText(length: number, param: string): void {
    this.pay(length / CHARACTERS_PER_UNIT, param)
  }

  /** Pays for a JSON value, down to a number of levels: one unit for each member and entry, plus its text. Throws like {@link pay}. */
  payFor(value: unknown, param: string, levels = Number.POSITIVE_INFINITY): void {
    if (typeof value === 'string') this.payForText(value.length, param)
    if (levels === 0 || typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) {
      this.pay(value.length, param)
      for (const entry of value) this.payFor(entry, param, levels - 1)
    } else {
      for (const name in value) {
        this.pay(1 + name.length / CHARACTERS_PER_UNIT, param)
        this.payFor((value as Record<string, unknown>)[name], param, levels - 1)
      }
    }
  }
}
