import type { BatchSettings } from '../../pipeline/pipeline-context.ts'
import type { BatchOutcome, BatchStore } from '../../stores/batch-store.ts'
import type { TaskRecord } from '../../stores/task-store.ts'
import { factsOf, LONGEST_WAIT_MS } from './batch-record.ts'

/** Number of outcomes without text per page. */
const PAGE = 5_000
/** Number of outcomes with text per page. */
const WHOLE_PAGE = 100

/** Lifetime of outcomes if their deletion at the end of the batch fails. */
const OUTCOMES_KEPT_MS = LONGEST_WAIT_MS + 30 * 24 * 60 * 60_000

/** Unix milliseconds from which the outcomes of a batch may be purged. */
export function outcomesExpireAtMs(task: TaskRecord): number {
  return factsOf(task).expiresAtMs + OUTCOMES_KEPT_MS
}

/** Returns the lines of the requests that have an outcome. */
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

/** Yields all outcomes in order. */
export async function* outcomesOf(outcomes: BatchStore, batchId: string): AsyncIterable<BatchOutcome> {
  for (let after = -1; ; ) {
    const page = await outcomes.page(batchId, after, WHOLE_PAGE)
    yield* page
    const last = page.at(-1)
    if (last === undefined) return
    after = last.line
  }
}
