import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { factsOf } from './batch-record.ts'

/** Places of outcomes that are read at once. */
const PAGE = 5_000

/** The outcomes of a batch outlive the batch, and are deleted at its end. */
const OUTCOMES_KEPT_MS = 30 * 24 * 60 * 60_000

/** Unix milliseconds from which the outcomes of a batch may be purged. */
export function outcomesExpireAtMs(task: TaskRecord): number {
  return factsOf(task).expiresAtMs + OUTCOMES_KEPT_MS
}

/** The requests of a batch that have an outcome. */
export async function endedLines({ outcomes }: BatchSettings, batchId: string): Promise<Set<number>> {
  const ended = new Set<number>()
  for (let after = -1; ; ) {
    const lines = await outcomes.lines(batchId, after, PAGE)
    for (const line of lines) ended.add(line)
    const last = lines.at(-1)
    if (last === undefined) return ended
    after = last
  }
}
