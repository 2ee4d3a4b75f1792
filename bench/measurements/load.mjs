import { checkAnswer, checkCharge, settledBalance } from '../check-answer.mjs'

const LEAST_WARM_UP_SECONDS = 3

/**
 * Measures proxies under load: each is started once, warmed up, and then measured in turns. A scenario with few requests per
 * second names a busier one to be warmed up by, because Node compiles only what has run some thousand times.
 */
export const load = {
  async prepare({ lab, proxy, scenario, options }) {
    const running = await lab.startProxy(proxy)
    const warmUpOptions = { seconds: Math.max(options.seconds, LEAST_WARM_UP_SECONDS) }
    let prepared
    for (const step of scenario.warmUp === undefined ? [scenario] : [scenario.warmUp, scenario]) {
      prepared = { running, expectedBytes: await checkAnswer({ driver: lab.driver, proxy, running, scenario: step }) }
      await oneRun({ lab, proxy, scenario: step, prepared, options: warmUpOptions })
    }
    return prepared
  },

  async measure({ lab, proxy, scenario, prepared, options }) {
    const before = await settledBalance(prepared.running, scenario)
    const { result, cpu, profile } = await oneRun({ lab, proxy, scenario, prepared, options })
    const after = await settledBalance(prepared.running, scenario)
    const { answers } = result
    checkCharge({ proxy, before, after, answers, costNanoDollars: scenario.costNanoDollars })
    return {
      cpuMicroseconds: cpu / (answers * scenario.unitsPerAnswer),
      answersPerSecond: (answers * 1_000) / result.elapsedMs,
      p50Ms: result.p50Ms,
      p99Ms: result.p99Ms,
      firstByteMs: result.firstByteP50Ms,
      profile,
    }
  },

  finish: ({ prepared }) => prepared.running.stop(),
}

async function oneRun({ lab, proxy, scenario, prepared, options }) {
  const { running, expectedBytes } = prepared
  const { connections, answersPerConnection = Number.POSITIVE_INFINITY, spreadMs = 0 } = scenario.load
  await lab.driver.ask('open', { port: running.port, count: connections })
  if (options.isProfiling) await running.startProfile()
  const cpuBefore = await running.cpuMicroseconds()
  const result = await lab.driver.ask('run', {
    request: scenario.request(proxy),
    durationMs: answersPerConnection === Number.POSITIVE_INFINITY ? options.seconds * 1_000 : undefined,
    answersPerConnection,
    spreadMs,
    expectedBytes,
  })
  const cpu = (await running.cpuMicroseconds()) - cpuBefore
  const profile = options.isProfiling ? await running.stopProfile() : undefined
  await lab.driver.ask('close')
  if (result.faults.length > 0) throw new Error(`${proxy.name}, ${scenario.name}: ${result.faults.join(', ')}`)
  return { result, cpu, profile }
}
