import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { BatchRunner } from '../tasks/batches/batch-runner.ts'
import type { DeferredRunner } from '../tasks/deferred-runner.ts'
import type { TaskWorker } from '../tasks/task-worker.ts'
import type { WebhookDeliverer } from '../tasks/webhook-deliverer.ts'
import type { InFlight } from './in-flight.ts'

/** What is under way in a gateway that closes. */
export interface GatewayWork {
  readonly inFlight: InFlight
  readonly runner: DeferredRunner
  readonly batches: BatchRunner | undefined
  readonly worker: TaskWorker
  readonly deliverer: WebhookDeliverer
}

/** Lets work end for at most `drainMs` in all, and ends the rest. Settlements that wait come after all that can add to them. */
export async function endWork(
  { clock, settlementRetries }: PipelineContext,
  { inFlight, runner, batches, worker, deliverer }: GatewayWork,
  drainMs: number,
): Promise<void> {
  const untilMs = clock.now() + drainMs
  const left = (): { readonly drainMs: number } => ({ drainMs: Math.max(0, untilMs - clock.now()) })
  await inFlight.drain(clock, drainMs)
  await Promise.all([runner.stop(left()), batches?.stop(left())])
  await settlementRetries.drain(left().drainMs)
  await Promise.all([worker.stop(left()), deliverer.stop(left())])
}
