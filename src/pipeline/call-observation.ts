import { type Clock, systemClock } from '../core/clock.ts'
import type { ErrorCode, GatewayError } from '../core/errors.ts'
import type { GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import { isPending, type MaybePromise } from '../core/maybe-promise.ts'
import type {
  AttemptEnd,
  GatewayState,
  Observer,
  RequestEnd,
  RequestFacts,
  RequestOutcome,
  StoreFacts,
} from '../core/observer.ts'
import type { Usage } from '../core/usage.ts'
import type { Transport } from '../transport/transport.ts'
import { type IndexedObserver, ObservedTransport, type SendingObservers } from './observed-transport.ts'

/** What observers are told of a request, as far as its record has come. */
export interface ObservedRequest {
  readonly requestId: string
  readonly startedAtMs: number
  readonly request: { header(name: string): string | undefined }
  readonly called: { readonly id: string; readonly task?: object | undefined }
  readonly isAnnounced: boolean
  readonly principal?: { readonly accountId: string; readonly keyId: string }
  readonly body?: { readonly model: string }
  readonly chain?: readonly { readonly id: string }[]
  readonly isStream?: boolean
}

/** A request that asks a vendor. */
export interface ObservedCall {
  readonly requestId: string
  readonly endpoint: { readonly id: string; readonly kind: string }
  readonly isStream: boolean
}

/** Whom it asks. */
export interface ObservedCandidate {
  readonly vendor: { readonly id: string; readonly origin: string; readonly telemetryName?: string | undefined }
  readonly model: { readonly id: string; readonly upstream: string }
}

/** The observers of a gateway. What one of them throws reaches neither requests nor the others. */
export class Observers implements SendingObservers {
  readonly all: readonly Observer[]
  readonly hearsEvents: boolean
  /** Does anybody hear of the store? */
  readonly hearsStore: boolean
  /** Does anybody hear of calls of tools? */
  readonly hearsToolCalls: boolean
  readonly senders: readonly IndexedObserver[]
  readonly headerGivers: readonly IndexedObserver[]
  readonly #logger: Logger
  #state: (() => GatewayState) | undefined
  /** Milliseconds with a fraction, from an unknown beginning. */
  readonly nowMs: () => number
  /** Undefined: nobody takes part in sending. */
  readonly #transport: ObservedTransport | undefined

  /** @param transport How vendors are called. */
  constructor(all: readonly Observer[], { logger, clock }: ObserverParts, transport: Transport) {
    this.all = all
    this.#logger = logger
    // The machine's clock counts whole milliseconds, and most of what is measured is shorter.
    this.nowMs = clock === systemClock ? monotonicMs : () => clock.now()
    this.hearsEvents = all.some(({ event }) => event !== undefined)
    this.hearsStore = all.some(({ store }) => store !== undefined)
    this.hearsToolCalls = all.some((one) => one.toolCallStarted !== undefined || one.toolCallEnded !== undefined)
    const indexed = all.map((observer, index) => ({ observer, index }))
    this.senders = indexed.filter(({ observer }) => observer.runSend !== undefined)
    this.headerGivers = indexed.filter(({ observer }) => observer.attemptHeaders !== undefined)
    this.#transport = this.#takePartInSending ? new ObservedTransport(transport, this) : undefined
  }

  /**
   * Begins to observe a request.
   * @param toolCalls What each observer returned for the call of a tool that makes it; undefined: none does.
   */
  begin(record: ObservedRequest, toolCalls: readonly unknown[] | undefined): CallObservation {
    const facts = new StartedRequest(record)
    const { all } = this
    const states: unknown[] = []
    for (let index = 0; index < all.length; index++) {
      let state: unknown
      try {
        state = all[index]!.requestStarted?.(facts, toolCalls?.[index])
      } catch (error) {
        this.threw('requestStarted', error)
      }
      states.push(state)
    }
    return new CallObservation(this, states, facts.startedAtMs)
  }

  /** Begins to observe the calls of what runs after its request, whose observation has ended. */
  later(startedAtMs: number): CallObservation {
    return new CallObservation(this, [], startedAtMs, true)
  }

  event(event: GatewayEvent): void {
    if (!this.hearsEvents) return
    for (const observer of this.all) {
      try {
        observer.event?.(event)
      } catch (error) {
        this.threw('event', error)
      }
    }
  }

  /** Tells of the gateway, which has been made. What an observer throws is the host's to read. */
  attached(state: () => GatewayState): void {
    this.#state = state
    for (const observer of this.all) observer.attached?.(state)
  }

  /** The gateway has closed. */
  detached(): void {
    for (const observer of this.all) {
      try {
        if (this.#state !== undefined) observer.detached?.(this.#state)
      } catch (error) {
        this.threw('detached', error)
      }
    }
  }

  get #takePartInSending(): boolean {
    return this.senders.length > 0 || this.headerGivers.length > 0
  }

  /** A transport whose requests belong to no attempt. */
  aside(transport: Transport): Transport {
    return this.#takePartInSending ? new ObservedTransport(transport, this) : transport
  }

  /** How the requests of an attempt are sent; undefined: as all others. */
  transportOf(states: readonly unknown[]): Transport | undefined {
    return this.#transport?.for(states)
  }

  threw(method: keyof Observer, error: unknown): void {
    this.#logger.error('an observer threw', { method, error })
  }
}

/** Milliseconds from an unknown beginning. Costs two thirds of `performance.now()`, and is asked for eight times a request. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** A request as it arrives. A class: an object with a function of its own would cost two more allocations. */
class StartedRequest implements RequestFacts {
  readonly requestId: string
  readonly endpoint: string
  readonly startedAtMs: number
  readonly #request: ObservedRequest['request']

  constructor({ requestId, called, startedAtMs, request }: ObservedRequest) {
    this.requestId = requestId
    this.endpoint = called.id
    this.startedAtMs = startedAtMs
    this.#request = request
  }

  header(name: string): string | undefined {
    return this.#request.header(name)
  }
}

interface ObserverParts {
  readonly logger: Logger
  readonly clock: Clock
}

/** What a settled request was. */
export interface SettledFacts {
  readonly ending: { readonly kind: RequestOutcome; readonly error: GatewayError | undefined }
  readonly candidate: ObservedCandidate | undefined
  readonly status: number
  readonly usage: Usage | undefined
  readonly costNanoDollars: bigint | undefined
  readonly firstByteMs: number | undefined
}

/** One request, as observers are told of it. */
export class CallObservation {
  readonly observers: Observers
  readonly states: readonly unknown[]
  readonly #startedAtMs: number
  readonly #begunMs: number
  #isOver: boolean
  #attempts = 0
  #waits = 0
  #waitingSinceMs = 0
  #waitedMs = 0

  /** @param isOver Is only what it calls still to be told of? */
  constructor(observers: Observers, states: readonly unknown[], startedAtMs: number, isOver = false) {
    this.observers = observers
    this.states = states
    this.#startedAtMs = startedAtMs
    this.#begunMs = observers.nowMs()
    this.#isOver = isOver
  }

  /** Unix milliseconds of a moment. */
  unixMs(atMs: number): number {
    return this.#startedAtMs + (atMs - this.#begunMs)
  }

  /** From here on the gateway waits: for the caller's body, or a vendor. */
  waits(nowMs = this.observers.nowMs()): void {
    if (this.#waits++ === 0) this.#waitingSinceMs = nowMs
  }

  goesOn(nowMs = this.observers.nowMs()): void {
    if (--this.#waits === 0) this.#waitedMs += nowMs - this.#waitingSinceMs
  }

  attempt(candidate: ObservedCandidate, { requestId, endpoint, isStream }: ObservedCall): AttemptObservation {
    this.#attempts += 1
    const nowMs = this.observers.nowMs()
    this.waits(nowMs)
    const { vendor, model } = candidate
    const facts = {
      requestId,
      vendor: vendor.id,
      provider: vendor.telemetryName ?? vendor.id,
      origin: vendor.origin,
      model: model.id,
      upstream: model.upstream,
      endpoint: endpoint.id,
      kind: endpoint.kind,
      isStream,
      startedAtMs: this.unixMs(nowMs),
    }
    const { observers } = this
    const states: unknown[] = []
    for (let index = 0; index < observers.all.length; index++) {
      let state: unknown
      try {
        state = observers.all[index]!.attemptStarted?.(this.states[index], facts)
      } catch (error) {
        observers.threw('attemptStarted', error)
      }
      states.push(state)
    }
    return new AttemptObservation(this, states, nowMs)
  }

  /** Passes on what a store gives, and tells how long it took. */
  timed<Result>(operation: StoreFacts['operation'], run: () => MaybePromise<Result>): MaybePromise<Result> {
    if (!this.observers.hearsStore || this.#isOver) return run()
    const startedMs = this.observers.nowMs()
    let result: MaybePromise<Result>
    try {
      result = run()
    } catch (error) {
      this.#stored(operation, false, startedMs)
      throw error
    }
    if (!isPending(result)) {
      this.#stored(operation, true, startedMs)
      return result
    }
    return result.then(
      (value) => {
        this.#stored(operation, true, startedMs)
        return value
      },
      (error: unknown) => {
        this.#stored(operation, false, startedMs)
        throw error
      },
    )
  }

  #stored(operation: StoreFacts['operation'], isOk: boolean, startedMs: number): void {
    const facts = { operation, isOk, durationMs: this.observers.nowMs() - startedMs }
    const { observers } = this
    for (let index = 0; index < observers.all.length; index++) {
      try {
        observers.all[index]!.store?.(this.states[index], facts)
      } catch (error) {
        observers.threw('store', error)
      }
    }
  }

  /** The request has been settled. */
  settled(record: ObservedRequest, facts: SettledFacts): void {
    this.#end(record, facts)
  }

  /** The request has failed; has no effect after its settlement. */
  failed(record: ObservedRequest, error: GatewayError): void {
    const kind = record.isAnnounced && record.called.task !== undefined ? 'submitted' : 'refused'
    this.#end(record, { ...NOTHING, ending: { kind, error }, status: error.status })
  }

  /** The request is over in every case; has no effect after its settlement or failure. */
  over(record: ObservedRequest): void {
    if (this.#isOver) return
    // What is announced and has no end yet goes on as a task: a video, or an answer in the background.
    const kind = record.isAnnounced ? 'submitted' : 'replayed'
    const status = record.isAnnounced && record.called.task !== undefined ? 202 : 200
    this.#end(record, { ...NOTHING, ending: { kind, error: undefined }, status })
  }

  #end(record: ObservedRequest, facts: SettledFacts): void {
    if (this.#isOver) return
    this.#isOver = true
    const nowMs = this.observers.nowMs()
    const durationMs = nowMs - this.#begunMs
    const { candidate, ending, status, usage, costNanoDollars = 0n, firstByteMs } = facts
    const waitedMs = this.#waits > 0 ? this.#waitedMs + (nowMs - this.#waitingSinceMs) : this.#waitedMs
    const end: RequestEnd = {
      endpoint: record.called.id,
      outcome: ending.kind,
      status,
      code: ending.error?.code,
      accountId: record.principal?.accountId,
      keyId: record.principal?.keyId,
      requestedModel: record.body?.model,
      model: candidate?.model.id ?? record.chain?.[0]?.id,
      vendor: candidate?.vendor.id,
      isStream: record.isStream === true,
      usage,
      costNanoDollars,
      endedAtMs: this.unixMs(nowMs),
      durationMs,
      firstByteMs,
      overheadMs: Math.max(0, durationMs - waitedMs),
      attempts: this.#attempts,
    }
    const { observers } = this
    for (let index = 0; index < observers.all.length; index++) {
      try {
        observers.all[index]!.requestEnded?.(this.states[index], end)
      } catch (error) {
        observers.threw('requestEnded', error)
      }
    }
  }
}

const NOTHING = { candidate: undefined, usage: undefined, costNanoDollars: undefined, firstByteMs: undefined }

/** One call to a vendor, as observers are told of it. */
export class AttemptObservation {
  readonly #call: CallObservation
  readonly #states: readonly unknown[]
  readonly #begunMs: number
  #firstByteMs: number | undefined
  #isOver = false

  constructor(call: CallObservation, states: readonly unknown[], begunMs: number) {
    this.#call = call
    this.#states = states
    this.#begunMs = begunMs
  }

  /** How its requests are sent; undefined: as all others. */
  get transport(): Transport | undefined {
    return this.#call.observers.transportOf(this.#states)
  }

  /** The first content of a stream is there. */
  opened(): void {
    this.#firstByteMs = this.#call.observers.nowMs() - this.#begunMs
  }

  ended(outcome: string, status?: number, code?: ErrorCode): void {
    if (this.#isOver) return
    this.#isOver = true
    const { observers } = this.#call
    const nowMs = observers.nowMs()
    this.#call.goesOn(nowMs)
    const end: AttemptEnd = {
      outcome,
      status,
      code,
      endedAtMs: this.#call.unixMs(nowMs),
      durationMs: nowMs - this.#begunMs,
      firstByteMs: this.#firstByteMs,
    }
    for (let index = 0; index < observers.all.length; index++) {
      try {
        observers.all[index]!.attemptEnded?.(this.#states[index], end)
      } catch (error) {
        observers.threw('attemptEnded', error)
      }
    }
  }
}
