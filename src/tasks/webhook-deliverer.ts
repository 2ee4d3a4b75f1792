import { scheduleCutOff, type Timer } from '../core/clock.ts'
import { textOfError } from '../core/errors.ts'
import { emit, type PipelineContext, reportFault } from '../pipeline/pipeline-context.ts'
import type { DeliveryState, WebhookDelivery } from '../stores/webhook-store.ts'
import { checkPublicUrl } from '../transport/egress.ts'
import { postWebhook, WEBHOOK_TIMEOUT_MS, type WebhookCall, type WebhookResponse } from './webhook-call.ts'
import { type TakenDelivery, WebhookQueue } from './webhook-queue.ts'
import { stepAfter } from './webhook-schedule.ts'
import { signingSecrets, webhookHeaders } from './webhook-signature.ts'

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
export class WebhookDeliverer {
  readonly #context: PipelineContext
  readonly #random: () => number
  readonly #queue = new WebhookQueue()
  readonly #attempts = new Set<Promise<void>>()
  readonly #calls = new Set<WebhookCall>()
  #isRunning = false
  #isGivingUp = false
  #looking: Promise<void> | undefined
  /** Whether another query was requested during the current one. */
  #looksAgain = false
  /** Whether the store has more messages than there was room for. */
  #hasMore = false
  #timer: Timer | undefined
  #timerAtMs = Number.POSITIVE_INFINITY

  constructor(context: PipelineContext, options: WebhookDelivererOptions = {}) {
    this.#context = context
    this.#random = options.random ?? Math.random
  }

  /** Whether work is in progress in this process. */
  get isBusy(): boolean {
    return this.#looking !== undefined || this.#attempts.size > 0
  }

  /** Starts to deliver. Has no effect if it has started. The store must be open. */
  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#isGivingUp = false
    this.wake()
  }

  /** Looks for new messages immediately. Has no effect before `start`. */
  wake(): void {
    if (!this.#isRunning) return
    this.#looksAgain = true
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
      if (this.#looksAgain) this.wake()
    })
  }

  /**
   * Starts no more attempts and waits for running ones, for at most `drainMs` (default 15,000). Then they are aborted without a
   * record, so another process repeats them. Messages without a started attempt are free for other processes immediately. Afterwards
   * the store may be closed.
   */
  async stop({ drainMs = DEFAULT_DRAIN_MS }: { readonly drainMs?: number } = {}): Promise<void> {
    this.#isRunning = false
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerAtMs = Number.POSITIVE_INFINITY
    let timer: Timer | undefined
    const cutOff = new Promise<void>((resolve) => {
      timer = scheduleCutOff(this.#context.clock, drainMs, () => {
        this.#isGivingUp = true
        for (const call of this.#calls) call.abort()
        resolve()
      })
    })
    await Promise.race([this.#underWay(), cutOff])
    timer?.cancel()
    await this.#release()
  }

  /** Never rejects: the leases expire anyway. */
  async #release(): Promise<void> {
    const { clock, store } = this.#context
    const ids = this.#queue.giveUp(clock.now())
    if (ids.length === 0) return
    try {
      await store.webhooks.release?.(ids)
    } catch (error) {
      reportFault(this.#context, undefined, 'webhooks: release', error)
    }
  }

  async #underWay(): Promise<void> {
    await this.#looking
    await Promise.all(this.#attempts)
  }

  async #look(): Promise<void> {
    while (this.#looksAgain && this.#isRunning) {
      this.#looksAgain = false
      this.#hasMore = await this.#take()
      this.#begin()
      if (this.#hasMore && this.#queue.room(this.#context.clock.now()) >= BATCH) this.#looksAgain = true
    }
    this.#lookAt(this.#context.clock.now() + LOOK_INTERVAL_MS)
  }

  /** Returns whether the store may have more. */
  async #take(): Promise<boolean> {
    const { clock, store } = this.#context
    const nowMs = clock.now()
    const limit = Math.min(BATCH, this.#queue.room(nowMs))
    if (limit === 0) return true
    try {
      const taken = await store.webhooks.leaseDue({ nowMs, leaseUntilMs: nowMs + LEASE_MS, limit })
      const times = { takenAtMs: nowMs, startUntilMs: nowMs + START_WITHIN_MS }
      for (const delivery of taken) this.#queue.add({ delivery, host: hostOf(delivery.url), ...times })
      return taken.length === limit
    } catch (error) {
      reportFault(this.#context, undefined, 'webhooks: take', error)
      return false
    }
  }

  #begin(): void {
    const { clock } = this.#context
    for (let taken = this.#nextTaken(); taken !== undefined; taken = this.#nextTaken()) {
      const begun = taken
      const attempt = this.#deliver(begun).finally(() => {
        this.#attempts.delete(attempt)
        this.#queue.ended(begun)
        this.#begin()
        if (this.#hasMore && this.#queue.room(clock.now()) >= BATCH) this.wake()
      })
      this.#attempts.add(attempt)
    }
  }

  #nextTaken(): TakenDelivery | undefined {
    return this.#isRunning ? this.#queue.next(this.#context.clock.now()) : undefined
  }

  /** Makes one attempt and records it. Never rejects. */
  async #deliver(taken: TakenDelivery): Promise<void> {
    const { clock, store } = this.#context
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
      if (step.state === 'pending') this.#lookAt(step.nextAttemptAtMs)
      this.#tell(delivery, step.state, answer)
    } catch (error) {
      reportFault(this.#context, undefined, `webhooks: deliver ${delivery.id}`, error)
    }
  }

  /** Returns `undefined` if the attempt was given up because the deliverer stops, or because the lease could expire during it. */
  async #attempt({ delivery, startUntilMs }: TakenDelivery, nowMs: number): Promise<WebhookResponse | undefined> {
    const { store, clock, publicTransport, names, allowPrivateUrls, webhookSecret } = this.#context
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
    const call = postWebhook({ transport: publicTransport, clock, url: check.url, headers, body })
    this.#calls.add(call)
    return call.answer.finally(() => this.#calls.delete(call))
  }

  #tell(delivery: WebhookDelivery, state: DeliveryState, { status, error }: WebhookResponse): void {
    const { id: deliveryId, taskId, accountId } = delivery
    const attempts = delivery.attempts.length + 1
    emit(this.#context, { type: 'webhook-attempted', deliveryId, taskId, accountId, state, status, error, attempts })
    if (state === 'failed' || state === 'disabled')
      this.#context.logger.warn('a webhook failed permanently', { deliveryId, taskId, accountId, state, error })
  }

  /** Sets the single timer to the earliest time. */
  #lookAt(timeMs: number): void {
    if (!this.#isRunning || timeMs >= this.#timerAtMs) return
    const { clock } = this.#context
    this.#timer?.cancel()
    this.#timerAtMs = timeMs
    this.#timer = clock.schedule(timeMs - clock.now(), () => {
      this.#timer = undefined
      this.#timerAtMs = Number.POSITIVE_INFINITY
      this.wake()
    })
  }
}

/** Number of failures since the last resend, because resending a message restarts its schedule. */
function failuresOf({ attempts, resentAtMs = 0 }: WebhookDelivery): number {
  return attempts.filter(({ error, atMs }) => error !== undefined && atMs >= resentAtMs).length
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : ''
}
