/** Time of `work` on the idle machine that the bounds of the checks were set on. `in-process.mjs` prints 48 µs for a chat there. */
const REFERENCE_MS = 15
/** Rounds until the engine has compiled the work, and rounds of which the quickest counts. */
const WARM_UP_ROUNDS = 5
const ROUNDS = 5

const TEXT = JSON.stringify(
  Array.from({ length: 12_000 }, (_, at) => ({
    role: 'user',
    content: `message ${at} of *many*`,
    at,
    tags: ['a', `t${at}`],
  })),
)

/** Work like that of the gateway: JSON is parsed, walked, searched and written. */
function work() {
  let marks = 0
  const walk = (value) => {
    if (typeof value === 'string') for (const _ of value.matchAll(/[*_]\w+/g)) marks += 1
    else if (typeof value === 'object') for (const member of Object.values(value)) walk(member)
  }
  const messages = JSON.parse(TEXT)
  walk(messages)
  return JSON.stringify(messages).length + marks
}

/**
 * How many times longer this process takes now than the machine that the bounds were set on. Bounds of time are multiplied by it, because
 * the machines that run the checks differ by a factor of 2 from one hour to the next. At least 1: a fast machine makes no bound stricter.
 */
export function slowness() {
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) work()
  let bestMs = Infinity
  for (let round = 0; round < ROUNDS; round += 1) {
    const began = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(began)
    bestMs = Math.min(bestMs, (user + system) / 1000)
  }
  return Math.max(1, bestMs / REFERENCE_MS)
}
