import { fetchHandler } from '../adapters/fetch.ts'
import { createClient, type GatewayClient } from '../client/create-client.ts'
import type { Timer } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import type { ByteSink, ExchangeHandler, GatewayRequest } from '../core/exchange.ts'
import type { StageContext } from '../stages/stage-context.ts'
import { hashApiKey } from '../stores/api-key.ts'
import type { Principal } from '../stores/principal.ts'
import { TaskWorker } from '../tasks/task-worker.ts'
import { WebhookDeliverer } from '../tasks/webhook-deliverer.ts'
import { type Accounts, accountsOf } from './accounts.ts'
import { checkOptions } from './check-options.ts'
import { contextOf } from './context-of.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { InFlight } from './in-flight.ts'
import { type Keys, keysOf, newKeyRecord } from './keys.ts'
import { type ListedModel, modelList } from './model-list.ts'
import { serve } from './serve-request.ts'
import { type Webhooks, webhooksOf } from './webhooks.ts'

/** Holds whose time is over are looked for this often, and more often where holds live shortly. */
const LONGEST_SWEEP_INTERVAL_MS = 30_000
const SHORTEST_SWEEP_INTERVAL_MS = 1_000

/** Most holds that are ended in one transaction. */
const SWEEP_BATCH = 500

/** An AI gateway in this process. Mount it by an adapter, call it by `fetch`, or in process by `client`. */
export interface Gateway extends ExchangeHandler {
  /** Takes over one request; for adapters. Never throws. */
  handle(request: GatewayRequest, sink: ByteSink): void
  /** Answers a web-standard request. */
  fetch(request: Request): Promise<Response>
  /** A client that calls the gateway in this process as `principal`, without HTTP: same limits, same bill. */
  client(principal: Principal): GatewayClient
  /** The models of `GET /v1/models`. */
  models(): readonly ListedModel[]
  readonly accounts: Accounts
  readonly keys: Keys
  readonly webhooks: Webhooks
  /** Opens the store and begins background work: following tasks, delivering webhooks, sweeping holds. Called by the first request if not before. */
  start(): Promise<void>
  /**
   * Refuses new requests with 503, lets those under way end for at most `drainMs` (default 30,000), settles the rest, and
   * closes the store and all connections. When the store is down, it is waited for within the same time.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Makes a gateway.
 * @throws TypeError for options that contradict each other; RangeError for bad prices or models.
 */
export function createGateway(options: GatewayOptions): Gateway {
  checkOptions(options)
  const context = contextOf(options)
  const inFlight = new InFlight()
  let starting: Promise<void> | undefined
  let isStarted = false
  let sweeper: Timer | undefined
  let sweeping: Promise<void> | undefined
  const sweepIntervalMs = Math.min(
    LONGEST_SWEEP_INTERVAL_MS,
    Math.max(SHORTEST_SWEEP_INTERVAL_MS, context.holdTtlMs / 2),
  )
  let closing: Promise<void> | undefined
  const deliverer = new WebhookDeliverer(context)
  const wakeWebhooks = (): void => deliverer.wake()
  const worker = new TaskWorker(context, wakeWebhooks)

  const ready = (): Promise<void> => {
    starting ??= open(context, options).then(() => {
      isStarted = true
      // A process that died may have left holds behind.
      sweep()
      if (closing === undefined) {
        worker.start()
        deliverer.start()
      }
    })
    // A store that could not be opened is tried again by the next request.
    starting.catch(() => {
      starting = undefined
    })
    return starting
  }
  const sweep = (): void => {
    if (closing !== undefined) return
    sweeping = expireHolds(context, () => closing !== undefined).finally(() => {
      if (closing === undefined) sweeper = context.clock.schedule(sweepIntervalMs, sweep)
    })
  }
  const accept = (request: GatewayRequest, sink: ByteSink, principal?: Principal): void => {
    void serve(context, {
      request,
      sink,
      principal,
      inFlight,
      isClosing: closing !== undefined,
      wakeWebhooks,
      ready: isStarted ? undefined : ready,
    })
  }
  const handler: ExchangeHandler = { handle: accept }
  const answerFetch = fetchHandler(handler)

  return {
    handle: (request, sink) => accept(request, sink),
    fetch: (request) => answerFetch(request),
    client: (principal) =>
      createClient({
        baseURL: 'http://gateway.invalid/v1',
        fetch: fetchHandler({ handle: (request, sink) => accept(request, sink, principal) }),
      }),
    models: () => modelList(context.catalog.list(), context.vendors).data,
    accounts: accountsOf(context.store, context.clock, context.ids, ready),
    keys: keysOf(context.store, context.clock, context.ids, ready),
    webhooks: webhooksOf(context.store, context.clock, ready, wakeWebhooks),
    start: ready,
    close({ drainMs = 30_000 } = {}) {
      closing ??= (async () => {
        const startedAtMs = context.clock.now()
        sweeper?.cancel()
        await inFlight.drain(context.clock, drainMs)
        await context.settlementRetries.drain(startedAtMs + drainMs - context.clock.now())
        const leftMs = Math.max(0, startedAtMs + drainMs - context.clock.now())
        await Promise.all([sweeping, worker.stop(), deliverer.stop({ drainMs: leftMs })])
        await Promise.all([context.transport.close(), context.publicTransport.close()])
        if (starting !== undefined) await context.store.close()
      })()
      return closing
    },
    [Symbol.asyncDispose]() {
      return this.close()
    },
  }
}

async function open(context: StageContext, options: GatewayOptions): Promise<void> {
  try {
    await context.store.start()
    const nowMs = context.clock.now()
    for (const { key, account, tier, limits } of options.keys ?? []) {
      await context.store.ledger.createAccount({ id: account, ...(tier === undefined ? {} : { tier }) }, nowMs)
      const id = `key_${hashApiKey(key).slice(0, 24)}`
      await context.store.keys.insert(
        newKeyRecord(key, {
          id,
          accountId: account,
          label: 'configured',
          createdAtMs: nowMs,
          ...(limits === undefined ? {} : { limits }),
        }),
      )
    }
  } catch (cause) {
    throw new GatewayError('store_unavailable', { cause })
  }
}

async function expireHolds(context: StageContext, isOver: () => boolean): Promise<void> {
  try {
    let expired = SWEEP_BATCH
    while (expired === SWEEP_BATCH && !isOver())
      expired = await context.store.ledger.expire(context.clock.now(), SWEEP_BATCH)
  } catch (error) {
    context.logger.error('holds could not be expired', { error })
  }
}
