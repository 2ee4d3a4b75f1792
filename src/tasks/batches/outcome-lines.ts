import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import type { BatchOutcome, BatchStore } from '../../stores/batch-store.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { factsOf, LONGEST_WAIT_MS } from './batch-record.ts'

/** Places of outcomes that are read at once. */
const PAGE = 5_000
/** Outcomes with their texts that are read at once. */
const WHOLE_PAGE = 100

/** The outcomes of a batch are deleted at its end, and outlive it should that fail. */
const OUTCOMES_KEPT_MS = LONGEST_WAIT_MS + 30 * 24 * 60 * 60_000

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

/** All outcomes in order. */
export async function* outcomesOf(outcomes: BatchStore, batchId: string): AsyncIterable<BatchOutcome> {
  for (let after = -1; ; ) {
    const page = await outcomes.page(batchId, after, WHOLE_PAGE)
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    after = last.line
  }
}
