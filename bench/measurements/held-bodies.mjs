import { checkAnswer } from '../check-answer.mjs'
import { requestFor } from '../request-for.mjs'

/**
 * Number of parallel requests in the smaller run. Memory that a process needs only once is in both runs, and so not in their
 * difference. With fewer requests, the peak is about 40 MB of uncollected garbage, and hardly grows with the requests.
 */
const FEW = 32
const MANY = 96
/** Share of the memory in use by which a measured peak may lie below it, for the spread of single runs. */
const SPREAD = 0.1
const LOOK_EVERY_MS = 5
const ARRIVE_WITHIN_MS = 30_000
const SETTLE_MS = 1_000
const MEGABYTE = 1_000_000

/**
 * Measures the memory that one more request with large bodies takes: the vendor answers when it has all requests, and holds
 * back the last byte of every answer until all other bytes have arrived, so that all bodies are in memory at the same time.
 *
 * The peak is compared between two fresh processes. Within one process the difference would be too small, because the
 * allocator reuses the memory of earlier requests.
 */
export const heldBodies = {
  prepare: async () => ({}),

  async measure({ lab, proxy, scenario }) {
    const few = await measureProcess({ lab, proxy, scenario, count: FEW })
    const many = await measureProcess({ lab, proxy, scenario, count: MANY })
    const perRequest = (bytes) => bytes / (MANY - FEW) / MEGABYTE
    const peakMegabytes = perRequest(many.peak - few.peak)
    const waitingMegabytes = perRequest(many.waiting - few.waiting)
    const answeringMegabytes = perRequest(many.answering - few.answering)
    if (peakMegabytes < Math.max(waitingMegabytes, answeringMegabytes) * (1 - SPREAD))
      throw new Error(
        `${proxy.name}: a peak of ${peakMegabytes} MB is less than what is in use: something hides growth`,
      )
    return { peakMegabytes, waitingMegabytes, answeringMegabytes }
  },

  finish: async () => {},
}

/** `peak` resident bytes without any collection; bytes in use, after one, while the vendor works and while it answers. */
async function measureProcess({ lab, proxy, scenario, count }) {
  const { driver } = lab
  const running = await lab.startProxy(proxy)
  try {
    const expectedBytes = await checkAnswer({ driver, proxy, running, scenario: scenario.single })
    const request = requestFor({ scenario, proxy, running })
    const atOnce = (steps) => requestsAtOnce({ lab, request, count, expectedBytes, steps })
    await driver.ask('open', { port: running.port, count })
    await atOnce({})
    const { peakResident: peak } = await running.memoryBytes()
    const used = {}
    const look = (name) => async () => {
      used[name] = (await running.memoryBytes()).used
    }
    await atOnce({ onWaiting: look('waiting'), onAnswering: look('answering') })
    await driver.ask('close')
    return { peak, ...used }
  } finally {
    await running.stop()
  }
}

/** Sends one request on every open connection; `steps` are called while all requests wait, and while the end of all answers is missing. */
async function requestsAtOnce({ lab, request, count, expectedBytes, steps }) {
  const answered = lab.driver.ask('run', { requests: [request], answersPerConnection: 1, expectedBytes })
  const deadline = performance.now() + ARRIVE_WITHIN_MS
  while ((await lab.vendor.ask('heldCount')) < count) {
    if (performance.now() > deadline) throw new Error('not all requests have reached the vendor')
    await pause(LOOK_EVERY_MS)
  }
  await steps.onWaiting?.()
  await lab.vendor.ask('beginHeld')
  await pause(SETTLE_MS)
  await steps.onAnswering?.()
  await lab.vendor.ask('endHeld')
  const { faults } = await answered
  if (faults.length > 0) throw new Error(`requests at once: ${faults.join(', ')}`)
}

const pause = (durationMs) => new Promise((resolve) => setTimeout(resolve, durationMs))
