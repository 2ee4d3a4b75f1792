import { checkAnswer } from '../check-answer.mjs'
import { requestFor } from '../request-for.mjs'
import { scenario as brief } from '../scenarios/first-byte.mjs'
import { within } from '../within.mjs'

const STREAMS = 1_000
const SETTLE_MS = 3_000
const WARM_UP_STREAMS = 100
const OPEN_WITHIN_MS = 60_000

/** Measures the memory of many open streams. A heap never shrinks to its earlier size, so each turn has a new process. */
export const openStreams = {
  prepare: async () => ({}),

  async measure({ lab, proxy, scenario }) {
    const running = await lab.startProxy(proxy)
    try {
      const { before, after } = await memoryOfStreams({ lab, proxy, scenario, running })
      return {
        residentKilobytes: (after.resident - before.resident) / STREAMS / 1_024,
        ...(after.used === undefined
          ? {}
          : {
              usedKilobytes: (after.used - before.used) / STREAMS / 1_024,
              youngKilobytes: (after.young - before.young) / STREAMS / 1_024,
            }),
      }
    } finally {
      await lab.driver.ask('close')
      await running.stop()
    }
  },

  finish: async () => {},
}

async function memoryOfStreams({ lab, proxy, scenario, running }) {
  const { driver } = lab
  const { port } = running
  const expectedBytes = await checkAnswer({ driver, proxy, running, scenario: brief })
  await driver.ask('open', { port, count: WARM_UP_STREAMS })
  const request = requestFor({ scenario: brief, proxy, running })
  const warmUp = driver.ask('run', { requests: [request], answersPerConnection: 3, expectedBytes })
  const { faults } = await within(OPEN_WITHIN_MS, `${proxy.name}, ${WARM_UP_STREAMS} streams`, warmUp)
  if (faults.length > 0) throw new Error(`${proxy.name}, ${brief.name}: ${faults.join(', ')}`)
  await driver.ask('close')
  const before = await running.memoryBytes()
  await driver.ask('open', { port, count: STREAMS })
  const opened = driver.ask('openStreams', { request: requestFor({ scenario, proxy, running }) })
  await within(OPEN_WITHIN_MS, `${proxy.name}, ${STREAMS} open streams`, opened)
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  return { before, after: await running.memoryBytes() }
}
