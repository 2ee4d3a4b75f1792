import type { PipelineContext } from '../pipeline/pipeline-context.ts'
import type { BatchService } from '../tasks/batches/batch-requests.ts'
import type { BatchRunner } from '../tasks/batches/batch-runner.ts'
import type { WakeWebhooks } from '../tasks/update-task.ts'

/** Loaded modules that run and serve files and batches. */
export interface LoadedBatches extends BatchService {
  readonly engine: typeof import('../tasks/batches/batch-engine.ts')
  readonly runner: BatchRunner
}

/**
 * Loads the modules of batches if the gateway has batches, so that other gateways do not keep them in memory. Returns `undefined` if
 * there are none.
 */
export async function loadBatches(
  context: PipelineContext,
  wakeWebhooks: WakeWebhooks,
  onBegin: () => void,
): Promise<LoadedBatches | undefined> {
  const { batches: settings } = context
  if (settings === undefined) return undefined
  const engine = await import('../tasks/batches/batch-engine.ts')
  return { engine, settings, runner: new engine.BatchRunner(context, settings, wakeWebhooks, onBegin) }
}
