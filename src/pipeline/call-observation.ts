import { type Clock, systemClock } from '../core/clock.ts'
import type { ErrorCode, GatewayError } from '../core/errors.ts'
import type { GatewayEvent } from '../core/events.ts'
import type { Logger } from '../core/logger.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type {
  AttemptEnd,
  GatewayState,
  ObservedToolCall,
  Observer,
  RequestEnd,
  RequestFacts,
  RequestOutcome,
  StoreFacts,
  ToolCallEnd,
  ToolCallFacts,
  ToolCallOutcome,
} from '../core/observer.ts'
import type { Usage } from '../core/usage.ts'
import type { Transport, TransportControl, TransportHandler, TransportRequest } from '../transport/transport.ts'

/** Facts of a request for observers. Some may not be known yet. */
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

/** Request that calls a vendor. */
export interface ObservedCall {
  readonly requestId: string
  readonly endpoint: { readonly id: string; readonly kind: string }
  readonly isStream: boolean
}

/** Candidate that it calls. */
export interface ObservedCandidate {
  readonly vendor: { readonly id: string; readonly origin: string; readonly telemetryName?: string | undefined }
  readonly model: { readonly id: string; readonly upstream: string }
}

/** Observers of a gateway. Exceptions of one observer affect neither requests nor other observers. */
export class Observers implements SendingObservers {
  readonly all: readonly Observer[]
  readonly hearsEvents: boolean
  /** Whether any observer receives store operations. */
  readonly hearsStore: boolean
  /** Whether any observer receives tool calls. */
  readonly hearsToolCalls: boolean
  readonly senders: readonly IndexedObserver[]
  readonly headerGivers: readonly IndexedObserver[]
  readonly #logger: Logger
  #state: (() => GatewayState) | undefined
  /** Returns milliseconds with a fraction, from an arbitrary origin. */
  readonly nowMs: () => number
  /** Transport with observers, or `undefined` if none of them takes part in sending. */
  readonly #transport: ObservedTransport | undefined

  /** @param transport Transport of calls to vendors. */
  constructor(all: readonly Observer[], { logger, clock }: ObserverParts, transport: Transport) {
    this.all = all
    this.#logger = logger
    // The machine's clock counts whole milliseconds, and most measured durations are shorter.
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
   * Starts the observation of a request.
   * @param toolCalls Return value of each observer for the tool call that makes the request; undefined without a tool call.
   */
  begin(record: ObservedRequest, toolCalls: readonly unknown[] | undefined): CallObservation {
    const facts = new StartedRequest(record)
    const states = this.each('requestStarted', (observer, index) =>
      observer.requestStarted?.(facts, toolCalls?.[index]),
    )
    return new CallObservation(this, states, facts.startedAtMs)
  }

  /** Starts the observation of calls that run after their request, whose observation has ended. */
  later(startedAtMs: number): CallObservation {
    return new CallObservation(this, [], startedAtMs, true)
  }

  event(event: GatewayEvent): void {
    if (this.hearsEvents) this.each('event', (observer) => observer.event?.(event))
  }

  /** Notifies the observers of the new gateway. Exceptions reach the host. */
  attached(state: () => GatewayState): void {
    this.#state = state
    for (const observer of this.all) observer.attached?.(state)
  }

  /** Notifies the observers that the gateway has closed. */
  detached(): void {
    const state = this.#state
    if (state !== undefined) this.each('detached', (observer) => observer.detached?.(state))
  }

  get #takePartInSending(): boolean {
    return this.senders.length > 0 || this.headerGivers.length > 0
  }

  /** Returns a transport whose requests belong to no attempt. */
  aside(transport: Transport): Transport {
    return this.#takePartInSending ? new ObservedTransport(transport, this) : transport
  }

  /** Returns the transport of an attempt, or `undefined` for the default one. */
  transportOf(states: readonly unknown[]): Transport | undefined {
    return this.#transport?.for(states)
  }

  /** Calls each observer and returns the results. An exception affects neither the request nor other observers. */
  each<Result>(
    method: keyof Observer,
    call: (observer: Observer, index: number) => Result,
  ): readonly (Result | undefined)[] {
    return this.all.map((observer, index) => {
      try {
        return call(observer, index)
      } catch (error) {
        this.threw(method, error)
        return undefined
      }
    })
  }

  threw(method: keyof Observer, error: unknown): void {
    this.#logger.error('an observer threw', { method, error })
  }
}

/** Returns milliseconds from an arbitrary origin. Costs two thirds of `performance.now()`, and is called eight times per request. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** Request at its arrival. A class, because an object with its own function would cost two more allocations. */
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

/** Facts of a settled request. */
export interface SettledFacts {
  readonly ending: { readonly kind: RequestOutcome; readonly error: GatewayError | undefined }
  readonly candidate: ObservedCandidate | undefined
  readonly status: number
  readonly usage: Usage | undefined
  readonly costNanoDollars: bigint | undefined
  readonly firstByteMs: number | undefined
}

/** Observation of one request. */
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

  /** @param isOver Whether only calls are still observed. */
  constructor(observers: Observers, states: readonly unknown[], startedAtMs: number, isOver = false) {
    this.observers = observers
    this.states = states
    this.#startedAtMs = startedAtMs
    this.#begunMs = observers.nowMs()
    this.#isOver = isOver
  }

  /** Converts a measured time to Unix milliseconds. */
  unixMs(atMs: number): number {
    return this.#startedAtMs + (atMs - this.#begunMs)
  }

  /** Notes that the gateway waits for the caller's body, or a vendor. */
  waits(nowMs = this.observers.nowMs()): void {
    if (this.#waits++ === 0) this.#waitingSinceMs = nowMs
  }

  continueTask(nowMs = this.observers.nowMs()): void {
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
    const states = this.observers.each('attemptStarted', (observer, index) =>
      observer.attemptStarted?.(this.states[index], facts),
    )
    return new AttemptObservation(this, states, nowMs)
  }

  /** Runs a store operation, and reports its duration to the observers. */
  async timed<Result>(operation: StoreFacts['operation'], run: () => MaybePromise<Result>): Promise<Result> {
    if (!this.observers.hearsStore || this.#isOver) return run()
    const startedMs = this.observers.nowMs()
    let isOk = false
    try {
      const result = await run()
      isOk = true
      return result
    } finally {
      this.#stored(operation, isOk, startedMs)
    }
  }

  #stored(operation: StoreFacts['operation'], isOk: boolean, startedMs: number): void {
    const facts = { operation, isOk, durationMs: this.observers.nowMs() - startedMs }
    this.observers.each('store', (observer, index) => observer.store?.(this.states[index], facts))
  }

  /** Notes that the request was settled. */
  settled(record: ObservedRequest, facts: SettledFacts): void {
    this.#end(record, facts)
  }

  /** Notes that the request failed. Without effect after its settlement. */
  failed(record: ObservedRequest, error: GatewayError): void {
    const kind = record.isAnnounced && record.called.task !== undefined ? 'submitted' : 'refused'
    this.#end(record, { ...NOTHING, ending: { kind, error }, status: error.status })
  }

  /** Notes that the request ended in any other way. Without effect after its settlement or failure. */
  over(record: ObservedRequest): void {
    if (this.#isOver) return
    // An announced request without an end continues as a task: a video, or a background answer.
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
    this.observers.each('requestEnded', (observer, index) => observer.requestEnded?.(this.states[index], end))
  }
}

const NOTHING = { candidate: undefined, usage: undefined, costNanoDollars: undefined, firstByteMs: undefined }

/** Observation of one call to a vendor. */
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

  /** Transport of its requests, or `undefined` for the default one. */
  get transport(): Transport | undefined {
    return this.#call.observers.transportOf(this.#states)
  }

  /** Notes the first content of a stream. */
  opened(): void {
    this.#firstByteMs = this.#call.observers.nowMs() - this.#begunMs
  }

  ended(outcome: string, status?: number, code?: ErrorCode): void {
    if (this.#isOver) return
    this.#isOver = true
    const { observers } = this.#call
    const nowMs = observers.nowMs()
    this.#call.continueTask(nowMs)
    const end: AttemptEnd = {
      outcome,
      status,
      code,
      endedAtMs: this.#call.unixMs(nowMs),
      durationMs: nowMs - this.#begunMs,
      firstByteMs: this.#firstByteMs,
    }
    observers.each('attemptEnded', (observer, index) => observer.attemptEnded?.(this.#states[index], end))
  }
}

/** Observer and the index of its states. */
interface IndexedObserver {
  readonly observer: Observer
  readonly index: number
}

/** The observers that take part in sending. */
interface SendingObservers {
  /** Observers that run the function that sends a request. */
  readonly senders: readonly IndexedObserver[]
  /** Observers that add headers to calls. */
  readonly headerGivers: readonly IndexedObserver[]
  threw(method: keyof Observer, error: unknown): void
}

/** Transport that lets observers take part in sending. */
class ObservedTransport implements Transport {
  readonly #inner: Transport
  readonly #observers: SendingObservers
  readonly #states: readonly unknown[] | undefined

  constructor(inner: Transport, observers: SendingObservers, states?: readonly unknown[]) {
    this.#inner = inner
    this.#observers = observers
    this.#states = states
  }

  get givesBytesAway(): boolean {
    return this.#inner.givesBytesAway === true
  }

  for(states: readonly unknown[]): Transport {
    return new ObservedTransport(this.#inner, this.#observers, states)
  }

  send(request: TransportRequest, handler: TransportHandler): TransportControl {
    const { senders } = this.#observers
    const states = this.#states
    const wanted = states === undefined ? request : this.#withHeaders(request, states)
    let sent: TransportControl | undefined
    const send = (): TransportControl => {
      sent ??= this.#inner.send(wanted, handler)
      return sent
    }
    let run = send
    for (let at = 0; at < senders.length; at++) {
      const { observer, index } = senders[at]!
      const inner = run
      run = () => observer.runSend?.(states?.[index], inner) ?? inner()
    }
    try {
      run()
    } catch (error) {
      this.#observers.threw('runSend', error)
    }
    // A failing observer must not stop the request.
    return send()
  }

  #withHeaders(request: TransportRequest, states: readonly unknown[]): TransportRequest {
    const { headerGivers } = this.#observers
    if (headerGivers.length === 0) return request
    const headers: string[] = []
    for (const { observer, index } of headerGivers) {
      try {
        headers.push(...(observer.attemptHeaders?.(states[index]) ?? NO_HEADERS))
      } catch (error) {
        this.#observers.threw('attemptHeaders', error)
      }
    }
    return headers.length === 0 ? request : { ...request, headers: [...request.headers, ...headers] }
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}

const NO_HEADERS: readonly string[] = []

/** Observation of one tool call. */
export class ToolCallObservation implements ObservedToolCall {
  readonly observers: Observers
  /** Return value of each observer. */
  readonly states: readonly unknown[]
  readonly #startedAtMs: number
  readonly #begunMs: number
  #isOver = false

  constructor(observers: Observers, clock: Clock, called: Omit<ToolCallFacts, 'startedAtMs'>) {
    const facts: ToolCallFacts = {
      ...called,
      startedAtMs: clock.now(),
      header: (name) => called.header(name),
      metadata: (name) => called.metadata(name),
    }
    this.observers = observers
    this.#startedAtMs = facts.startedAtMs
    this.#begunMs = observers.nowMs()
    this.states = observers.each('toolCallStarted', (observer) => observer.toolCallStarted?.(facts))
  }

  ended(outcome: ToolCallOutcome, code?: ErrorCode): void {
    if (this.#isOver) return
    this.#isOver = true
    const { observers } = this
    const durationMs = observers.nowMs() - this.#begunMs
    const end: ToolCallEnd = { outcome, code, endedAtMs: this.#startedAtMs + durationMs, durationMs }
    observers.each('toolCallEnded', (observer, index) => observer.toolCallEnded?.(this.states[index], end))
  }
}
