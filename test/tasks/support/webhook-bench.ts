import type { GatewayEvent } from '../../../src/core/events.ts'
import { contextOf } from '../../../src/gateway/context.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import type { PipelineContext } from '../../../src/pipeline/pipeline-context.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { type MemoryWebhooks, memoryWebhooks } from '../../../src/stores/memory/memory-tasks.ts'
import type { DeliveryAttempt, WebhookDelivery, WebhookStore } from '../../../src/stores/webhook-store.ts'
import { WebhookDeliverer } from '../../../src/tasks/webhook-deliverer.ts'
import { type FakeClock, fakeClock } from '../../../src/testing/index.ts'

/** Signs for accounts without a secret of their own. */
export const GATEWAY_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
export const ACCOUNT = 'acct_one'
export const TASK = 'task_one'

/** Options of a deliverer's gateway. */
export interface BenchOptions extends Partial<GatewayOptions> {
  /** Whether there is a secret for accounts without their own. Default true. */
  readonly hasSecret?: boolean
}

/** A store of messages in memory, on a clock that is moved by hand, and deliverers that work from it. */
export interface WebhookBench {
  readonly clock: FakeClock
  readonly webhooks: MemoryWebhooks
  readonly events: readonly GatewayEvent[]
  /** The event that comes next. */
  nextEvent(): Promise<GatewayEvent>
  /** Makes a deliverer with a context of its own; without jitter. `faults` replaces methods of its store. */
  deliverer(options?: BenchOptions, faults?: Partial<WebhookStore>): WebhookDeliverer
  /** Queues a message about {@link TASK}, due at once. */
  queue(id: string, url: string): void
  /** Resolves once `count` attempts were recorded in total, and returns them in order of recording. */
  recorded(count: number): Promise<readonly DeliveryAttempt[]>
  delivery(id: string): Promise<WebhookDelivery>
  close(): Promise<void>
}

/** Builds one. Its clock begins at the real time, because receivers refuse old messages. */
export function webhookBench(): WebhookBench {
  const clock = fakeClock({ startMs: Date.now() })
  const webhooks = memoryWebhooks()
  const events: GatewayEvent[] = []
  const attempts: DeliveryAttempt[] = []
  const waiting = new Set<() => void>()
  let onNextEvent: (event: GatewayEvent) => void = () => undefined
  const contexts: PipelineContext[] = []
  const deliverers: WebhookDeliverer[] = []
  const noting: WebhookStore = {
    ...webhooks,
    record(id, outcome) {
      webhooks.record(id, outcome)
      attempts.push(outcome.attempt)
      // Waiting tests go on after the deliverer has done what follows from the record.
      setImmediate(() => {
        for (const look of [...waiting]) look()
      })
    },
  }
  return {
    clock,
    webhooks,
    events,
    nextEvent: () =>
      new Promise((resolve) => {
        onNextEvent = resolve
      }),
    deliverer({ hasSecret = true, ...options } = {}, faults = {}) {
      const context = contextOf({
        vendors: [],
        billing: 'off',
        allowPrivateUrls: true,
        ...(hasSecret ? { webhookSecret: GATEWAY_SECRET } : {}),
        onEvent(event) {
          events.push(event)
          onNextEvent(event)
        },
        clock,
        ...options,
        store: { ...memoryStore(), webhooks: { ...noting, ...faults } },
      })
      const deliverer = new WebhookDeliverer(context, { random: () => 0.5 })
      contexts.push(context)
      deliverers.push(deliverer)
      return deliverer
    },
    queue(id, url) {
      const nowMs = clock.now()
      const body = JSON.stringify({ type: 'video.generation.completed', data: { id: TASK, message: id } })
      webhooks.add({ id, accountId: ACCOUNT, taskId: TASK, url, body, createdAtMs: nowMs, nextAttemptAtMs: nowMs })
    },
    recorded: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (attempts.length < count) return
          waiting.delete(look)
          resolve(attempts)
        }
        waiting.add(look)
        look()
      }),
    async delivery(id) {
      const found = (await webhooks.list(ACCOUNT, TASK)).find((delivery) => delivery.id === id)
      if (found === undefined) throw new Error(`there is no message ${id}`)
      return found
    },
    async close() {
      const stopping = deliverers.map((deliverer) => deliverer.stop({ drainMs: 0 }))
      clock.advance(0)
      await Promise.all(stopping)
      await Promise.all(contexts.flatMap((context) => [context.publicTransport.close(), context.transport.close()]))
    },
  }
}
