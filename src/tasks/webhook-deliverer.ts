import { isYoungerThan, scheduleCutOff, type Timer } from '../core/clock.ts'
import { textOfError } from '../core/errors.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { DeliveryState, WebhookDelivery } from '../stores/webhook-store.ts'
import { checkPublicUrl } from '../transport/egress.ts'
import type { TransportFailure } from '../transport/transport.ts'
import { type HeaderMap, retryAfterSeconds } from '../wire/headers.ts'
import { Download, DownloadError } from './download.ts'
import { WorkLoop } from './job-runner.ts'
import { signingSecrets, webhookHeaders } from './webhook-payload.ts'

/** Maximum duration of one attempt, from connecting to the end of the answer, in milliseconds. */
const WEBHOOK_TIMEOUT_MS = 15_000

/** Maximum number of bytes read from a response body. The content is ignored; an ordinary response ends by itself within this limit. */
const MAX_BODY_BYTES = 64 * 1024

/** Receiver's response, or the reason why there is none. */
export interface WebhookResponse {
  /** HTTP status, or `undefined` if there was no response. */
  readonly status?: number
  /** Display text of the failure, or `undefined` if the message was delivered. */
  readonly error?: string
  /** Wait requested by the header `retry-after`. */
  readonly retryAfterSeconds?: number | undefined
}

const MESSAGE_HEADERS = [
  ...['content-type', 'application/json', 'user-agent', 'signalbox', 'accept-encoding', 'identity'],
  // Messages are rare. The receiver would have closed a reused connection by then, and an attempt would fail.
  ...['connection', 'close'],
]

function readHead(status: number, headers: HeaderMap, nowMs: number): WebhookResponse {
  if (status >= 200 && status < 300) return { status }
  const isRedirect = status >= 300 && status < 400
  return {
    status,
    error: `answered with status ${status}${isRedirect ? '; redirects are not followed' : ''}`,
    retryAfterSeconds: retryAfterSeconds(headers, nowMs),
  }
}

const PHASES: Readonly<Record<TransportFailure['phase'], string>> = {
  connect: 'no connection',
  sent: 'no answer',
  body: 'the answer broke off',
}

function textOf({ phase, kind, error }: TransportFailure): string {
  return `${PHASES[phase]} (${kind}): ${error.message === '' ? error.name : error.message}`
}

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/**
 * Waits after the first failure, the second, and so on: three days in total (Standard Webhooks 1.0, "Retries and failures", suggests
 * this schedule). A failure after the last wait ends the delivery.
 */
const WAITS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
] as const

/** Jitter as a share of a wait, so that messages that failed together do not return together. */
const JITTER = 0.15

const MAX_RETRY_AFTER_MS = 24 * HOUR_MS

/** Too many requests, or temporarily unavailable: the receiver may set the wait. */
const THROTTLED = [429, 503]

/** The receiver is permanently gone. */
const GONE = 410

/** Decision after an attempt. */
export interface NextStep {
  readonly state: DeliveryState
  /** Time of the next attempt, in Unix milliseconds; the time of this attempt if there is no next one. */
  readonly nextAttemptAtMs: number
}

/**
 * Decides whether and when to retry after an attempt.
 * @param attempt `failuresBefore` is the number of failed attempts before this one. `random` is at least 0 and below 1.
 */
export function stepAfter(attempt: {
  readonly answer: WebhookResponse
  readonly failuresBefore: number
  readonly nowMs: number
  readonly random: number
}): NextStep {
  const { answer, failuresBefore, nowMs, random } = attempt
  if (answer.error === undefined) return { state: 'delivered', nextAttemptAtMs: nowMs }
  if (answer.status === GONE) return { state: 'disabled', nextAttemptAtMs: nowMs }
  const waitMs = WAITS_MS[failuresBefore]
  if (waitMs === undefined) return { state: 'failed', nextAttemptAtMs: nowMs }
  const spreadMs = Math.round(waitMs * (1 + JITTER * (2 * random - 1)))
  return { state: 'pending', nextAttemptAtMs: nowMs + Math.max(spreadMs, askedWaitMs(answer)) }
}

function askedWaitMs({ status, retryAfterSeconds }: WebhookResponse): number {
  if (status === undefined || retryAfterSeconds === undefined || !THROTTLED.includes(status)) return 0
  return Math.min(Math.ceil(retryAfterSeconds * SECOND_MS), MAX_RETRY_AFTER_MS)
}

/** Maximum number of concurrent messages, to all receivers and to one host. */
const MAX_DELIVERIES = 32
const MAX_DELIVERIES_PER_HOST = 4

/** Maximum number of messages that wait for a place in this process. */
const MAX_WAITING = 512

/** After this time a message that waits for its host makes room for messages to others, if there is no other room. */
const MAX_QUEUE_WAIT_MS = 10_000

/** Message that this process holds the lease of. */
export interface TakenDelivery {
  readonly delivery: WebhookDelivery
  /** Host and port of the receiver; empty if the address is not a URL. */
  readonly host: string
  /** Start of the lease, in Unix milliseconds. */
  readonly takenAtMs: number
  /** Time after which no attempt may begin, in Unix milliseconds: the lease could expire during it. */
  readonly startUntilMs: number
}

/**
 * Messages that were leased and not yet sent. At most 32 are in flight at the same time and 4 to one host, so that a receiver that
 * hangs does not delay the others. An account may have receivers under many names, so the account with the fewest messages in flight
 * comes first. A dropped message is leased again from the store after its lease has expired.
 */
export class WebhookQueue {
  #waiting: TakenDelivery[] = []
  #active = 0
  readonly #activeByHost = new Map<string, number>()
  readonly #activeByAccount = new Map<string, number>()

  /** Returns how many more messages may be leased. */
  room(nowMs: number): number {
    if (this.#waiting.length >= MAX_WAITING)
      this.#keep(({ takenAtMs }) => isYoungerThan(MAX_QUEUE_WAIT_MS, takenAtMs, nowMs))
    return MAX_WAITING - this.#waiting.length
  }

  add(taken: TakenDelivery): void {
    this.#waiting.push(taken)
  }

  /** Returns the next message to send, in leasing order within an account. It counts as in flight until {@link ended}. */
  next(nowMs: number): TakenDelivery | undefined {
    this.#keep(({ startUntilMs }) => nowMs <= startUntilMs)
    if (this.#active >= MAX_DELIVERIES) return undefined
    const index = this.#nextIndex()
    const taken = this.#waiting[index]
    if (taken === undefined) return undefined
    this.#waiting.splice(index, 1)
    this.#active++
    count(this.#activeByHost, taken.host, 1)
    count(this.#activeByAccount, taken.delivery.accountId, 1)
    return taken
  }

  #nextIndex(): number {
    let found = -1
    let fewest = MAX_DELIVERIES
    for (const [index, { host, delivery }] of this.#waiting.entries()) {
      if ((this.#activeByHost.get(host) ?? 0) >= MAX_DELIVERIES_PER_HOST) continue
      const active = this.#activeByAccount.get(delivery.accountId) ?? 0
      if (active >= fewest) continue
      found = index
      fewest = active
      if (active === 0) break
    }
    return found
  }

  /** Drops the waiting messages. Returns the ids of those whose leases certainly still belong to this process. */
  giveUp(nowMs: number): readonly string[] {
    const given = this.#waiting.filter(({ startUntilMs }) => nowMs <= startUntilMs)
    this.#waiting = []
    return given.map(({ delivery }) => delivery.id)
  }

  /** Frees the place of a message. */
  ended({ host, delivery }: TakenDelivery): void {
    this.#active--
    count(this.#activeByHost, host, -1)
    count(this.#activeByAccount, delivery.accountId, -1)
  }

  #keep(fits: (taken: TakenDelivery) => boolean): void {
    if (this.#waiting.every(fits)) return
    this.#waiting = this.#waiting.filter(fits)
  }
}

/** Names without messages in flight are removed. */
function count(active: Map<string, number>, name: string, change: 1 | -1): void {
  const now = (active.get(name) ?? 0) + change
  if (now > 0) active.set(name, now)
  else active.delete(name)
}

/** Duration of a lease, in milliseconds, during which no other process sends the message. */
const LEASE_MS = 90_000

/**
 * Time after the start of a lease until which an attempt may begin, in milliseconds. It then ends before the lease, including the
 * time of the store.
 */
const START_WITHIN_MS = LEASE_MS - 2 * WEBHOOK_TIMEOUT_MS

/** Interval between queries for messages that other processes queued or abandoned, in milliseconds. */
const LOOK_INTERVAL_MS = 5_000

/** Maximum number of messages leased per query. */
const BATCH = 64

const DEFAULT_DRAIN_MS = WEBHOOK_TIMEOUT_MS

/** Options of {@link WebhookDeliverer}. */
export interface WebhookDelivererOptions {
  /** Returns a number from 0 to below 1 for the jitter. Default `Math.random`. */
  readonly random?: () => number
}

/**
 * Delivers webhooks by Standard Webhooks 1.0, each at least once and always with the same id. Any number of processes may deliver
 * from one store. An attempt without a recorded outcome is repeated after its lease has expired.
 */
export class WebhookDeliverer extends WorkLoop {
  protected readonly lookIntervalMs = LOOK_INTERVAL_MS
  readonly #random: () => number
  readonly #queue = new WebhookQueue()
  readonly #calls = new Set<Download>()
  #isGivingUp = false
  /** Whether the store has more messages than there was room for. */
  #hasMore = false

  constructor(context: PipelineContext, options: WebhookDelivererOptions = {}) {
    super(context, 'webhooks: take')
    this.#random = options.random ?? Math.random
  }

  override start(): void {
    this.#isGivingUp = false
    super.start()
  }

  /**
   * Starts no more attempts and waits for running ones, for at most `drainMs` (default 15,000). Then they are aborted without a
   * record, so another process repeats them. Messages without a started attempt are free for other processes immediately. Afterwards
   * the store may be closed.
   */
  async stop({ drainMs = DEFAULT_DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<void> {
    let timer: Timer | undefined
    // A receiver's name or the store may never answer, so an aborted attempt is not awaited.
    const cutOff = new Promise<void>((resolve) => {
      timer = scheduleCutOff(this.context.clock, drainMs, () => {
        this.#isGivingUp = true
        for (const call of this.#calls) call.abort()
        resolve()
      })
    })
    await Promise.race([this.drain(drainMs, () => undefined), cutOff])
    timer?.cancel()
    await this.#release()
  }

  /** Never rejects: the leases expire anyway. */
  async #release(): Promise<void> {
    const { clock, store } = this.context
    const ids = this.#queue.giveUp(clock.now())
    if (ids.length === 0) return
    try {
      await store.webhooks.release?.(ids)
    } catch (error) {
      reportFault(this.context, undefined, 'webhooks: release', error)
    }
  }

  protected async look(): Promise<void> {
    const { clock, store } = this.context
    const nowMs = clock.now()
    const limit = Math.min(BATCH, this.#queue.room(nowMs))
    this.#hasMore = limit === 0
    if (limit === 0) return
    const taken = await store.webhooks.leaseDue({ nowMs, leaseUntilMs: nowMs + LEASE_MS, limit })
    const times = { takenAtMs: nowMs, startUntilMs: nowMs + START_WITHIN_MS }
    for (const delivery of taken) {
      const host = URL.canParse(delivery.url) ? new URL(delivery.url).host : ''
      this.#queue.add({ delivery, host, ...times })
    }
    this.#hasMore = taken.length === limit
    this.#begin()
  }

  /** Starts attempts while there are places, and looks for more messages when there is room again. */
  #begin(): void {
    const { clock } = this.context
    while (!this.isStopped) {
      const taken = this.#queue.next(clock.now())
      if (taken === undefined) break
      const attempt = this.#deliver(taken).finally(() => {
        this.#queue.ended(taken)
        this.#begin()
      })
      this.track(attempt)
    }
    if (this.#hasMore && this.#queue.room(clock.now()) >= BATCH) this.wake()
  }

  /** Makes one attempt and records it. Never rejects. */
  async #deliver(taken: TakenDelivery): Promise<void> {
    const { clock, store } = this.context
    const { delivery } = taken
    try {
      const atMs = clock.now()
      const answer = await this.#attempt(taken, atMs)
      if (answer === undefined) return
      const nowMs = clock.now()
      const failuresBefore = failuresOf(delivery)
      const step = stepAfter({ answer, failuresBefore, nowMs, random: this.#random() })
      const { status, error } = answer
      const attempt = {
        atMs,
        durationMs: nowMs - atMs,
        ...(status === undefined ? {} : { status }),
        ...(error === undefined ? {} : { error }),
      }
      await store.webhooks.record(delivery.id, { attempt, ...step })
      if (step.state === 'pending') this.lookAt(step.nextAttemptAtMs)
      this.#tell(delivery, step.state, answer)
    } catch (error) {
      reportFault(this.context, undefined, `webhooks: deliver ${delivery.id}`, error)
    }
  }

  /** Returns `undefined` if the attempt was given up because the deliverer stops, or because the lease could expire during it. */
  async #attempt({ delivery, startUntilMs }: TakenDelivery, nowMs: number): Promise<WebhookResponse | undefined> {
    const { store, clock, names, allowPrivateUrls, webhookSecret } = this.context
    const { accountId } = delivery
    const secrets = await signingSecrets(store.webhooks, { accountId, webhookSecret, nowMs })
    const check = checkPublicUrl(delivery.url, { allowPrivate: allowPrivateUrls })
    if ('reason' in check) return { error: `the URL ${check.reason}` }
    try {
      await names.resolve(check.url.hostname, accountId)
    } catch (error) {
      return { error: `no connection: ${textOfError(error)}` }
    }
    if (this.#isGivingUp || clock.now() > startUntilMs) return undefined
    const { id, body } = delivery
    let headers: string[]
    try {
      headers = webhookHeaders({ secrets, id, timestampSeconds: Math.floor(nowMs / 1000), body })
    } catch (fault) {
      // An invalid message comes from outside of the gateway. It counts as a failure, so that it does not stay in the queue
      // indefinitely.
      return { error: fault instanceof Error ? fault.message : 'the message cannot be signed' }
    }
    return await this.#post(check.url, headers, body)
  }

  /**
   * Posts a message. The status decides after the response has ended or 64 KiB of it were read. A response that takes longer than 15
   * seconds or breaks off is a failure, whatever its status. Redirects are failures.
   */
  async #post(url: URL, headers: readonly string[], body: string): Promise<WebhookResponse | undefined> {
    const { clock, publicTransport } = this.context
    const call = new Download()
    let head: WebhookResponse = {}
    let isLate = false
    const deadline = clock.schedule(WEBHOOK_TIMEOUT_MS, () => {
      isLate = true
      call.abort()
    })
    this.#calls.add(call)
    try {
      const request = {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: 'POST',
        headers: [...MESSAGE_HEADERS, ...headers],
        body,
        firstByteTimeoutMs: WEBHOOK_TIMEOUT_MS,
        idleTimeoutMs: WEBHOOK_TIMEOUT_MS,
      } as const
      call.begin(publicTransport.send(request, call))
      const { status, headers: answered } = await call.head()
      head = readHead(status, answered, clock.now())
      let byteLength = 0
      for await (const chunk of call) {
        byteLength += chunk.byteLength
        if (byteLength >= MAX_BODY_BYTES) break
      }
      return head
    } catch (error) {
      if (!(error instanceof DownloadError)) throw error
      if (isLate) return { ...head, error: `no whole answer within ${WEBHOOK_TIMEOUT_MS / 1000} s` }
      return this.#isGivingUp ? undefined : { ...head, error: textOf(error.failure) }
    } finally {
      deadline.cancel()
      this.#calls.delete(call)
      call.abort()
    }
  }

  #tell(delivery: WebhookDelivery, state: DeliveryState, { status, error }: WebhookResponse): void {
    const { id: deliveryId, taskId, accountId } = delivery
    const attempts = delivery.attempts.length + 1
    emit(this.context, { type: 'webhook-attempted', deliveryId, taskId, accountId, state, status, error, attempts })
    if (state === 'failed' || state === 'disabled')
      this.context.logger.warn('a webhook failed permanently', { deliveryId, taskId, accountId, state, error })
  }
}

/** Number of failures since the last resend, because resending a message restarts its schedule. */
function failuresOf({ attempts, resentAtMs = 0 }: WebhookDelivery): number {
  return attempts.filter(({ error, atMs }) => error !== undefined && atMs >= resentAtMs).length
}
