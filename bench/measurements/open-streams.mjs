import { checkAnswer } from '../check-answer.mjs'
import { scenario as brief } from '../scenarios/first-byte.mjs'

const STREAMS = 1_000
const SETTLE_MS = 3_000
const WARM_UP_STREAMS = 100

/** Measures the memory of many open streams. A heap never shrinks to where it was, so each turn has a process of its own. */
export const openStreams = {
  prepare: async () => ({}),

  async measure({ lab, proxy, scenario }) {
    const { driver } = lab
    const running = await lab.startProxy(proxy)
    const { port } = running
    const expectedBytes = await checkAnswer({ driver, proxy, running, scenario: brief })
    await driver.ask('open', { port, count: WARM_UP_STREAMS })
    await driver.ask('run', { request: brief.request(proxy), answersPerConnection: 3, expectedBytes })
    await driver.ask('close')
    const before = await running.memoryBytes()
    await driver.ask('open', { port, count: STREAMS })
    await driver.ask('openStreams', { request: scenario.request(proxy) })
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
    const after = await running.memoryBytes()
    await driver.ask('close')
    await running.stop()
    return {
      residentKilobytes: (after.resident - before.resident) / STREAMS / 1_024,
      usedKilobytes: (after.used - before.used) / STREAMS / 1_024,
    }
  },

  finish: async () => {},
}
