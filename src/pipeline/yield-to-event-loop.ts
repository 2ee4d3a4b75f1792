/** Calls that wait to be read from again. */
const waiting: (() => void)[] = []

/**
 * Lets calls whose bytes take long to work on be read from one after another, one in each turn of the event loop, so that
 * everything else in the process gets its turns in between.
 * @param resume Reads on; called once, never before this function has returned.
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
