/** Calls that wait to resume reading. */
const waiting: (() => void)[] = []

/**
 * Resumes CPU-bound calls one after another, one in each turn of the event loop, so that everything else in the process
 * runs in between.
 * @param resume Resumes reading; called once, never before this function has returned.
 */
export function yieldToEventLoop(resume: () => void): void {
  waiting.push(resume)
  if (waiting.length === 1) setImmediate(nextTurn)
}

function nextTurn(): void {
  const resume = waiting.shift()
  if (waiting.length > 0) setImmediate(nextTurn)
  resume?.()
}
