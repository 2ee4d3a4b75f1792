import { checkAnswer, checkCharge, settledBalance } from '../check-answer.mjs'
import { requestsFor } from '../request-for.mjs'
import { within } from '../within.mjs'

/**
 * Warm-up, in which Node compiles hot code. How many answers that takes depends on the program, and how many
 * seconds on the machine, so turns are added until an answer becomes no cheaper.
 */
const MIN_WARM_UP_SECONDS = 3
const FURTHER_TURN_SECONDS = 2
const MAX_ADDITIONAL_TURNS = 6
const STEADY_SHARE = 0.95
/** Warm-up before each measured turn, in seconds. */
const LEAD_IN_SECONDS = 0.5
const ANSWERS_WITHIN_MS = 300_000

/**
 * Measures proxies under load: each is started once, warmed up, and then measured in turns. A scenario with few requests per
 * second names a busier one for its warm-up, because Node compiles only code that has run some thousand times.
 */
export const load = {
  async prepare({ lab, proxy, scenario, options }) {
    const running = await lab.startProxy(proxy)
    try {
      return await warmUp({ lab, proxy, scenario, options, running })
    } catch (error) {
      await running.stop()
      throw error
    }
  },

  async measure({ lab, proxy, scenario, prepared, options }) {
    // V8 drops part of its compiled code during the turns of other proxies.
    if (scenario.load.answersPerConnection === undefined)
      await oneRun({ lab, proxy, scenario, prepared, options: { seconds: LEAD_IN_SECONDS } })
    return measureTurn({ lab, proxy, scenario, prepared, options })
  },

  finish: ({ prepared }) => prepared.running.stop(),
}

/**
 * Measures proxies at a fixed rate: requests are sent on schedule, whether or not earlier ones have been answered. The rate is
 * `load.perSecond`, or `load.shareOfMaximum` of what the proxy has just answered to the load of `warmUp`, which also warms it up.
 */
export const loadAtRate = {
  prepare: ({ scenario, ...given }) => load.prepare({ ...given, scenario: scenario.warmUp }),

  async measure({ scenario, options, ...turn }) {
    const { shareOfMaximum, minSeconds = 0 } = scenario.load
    const perSecond = scenario.load.perSecond ?? (await maximumRate({ scenario, options, ...turn })) * shareOfMaximum
    return measureTurn({
      ...turn,
      scenario: { ...scenario, load: { ...scenario.load, perSecond } },
      options: { ...options, seconds: Math.max(options.seconds, minSeconds) },
    })
  },

  finish: load.finish,
}

async function maximumRate({ scenario, options: { seconds }, ...turn }) {
  const { answersPerSecond } = await measureTurn({ ...turn, scenario: scenario.warmUp, options: { seconds } })
  return answersPerSecond
}

/** One run whose answers must have been charged exactly. */
async function measureTurn({ lab, proxy, scenario, prepared, options }) {
  const before = await settledBalance(prepared.running, scenario)
  const { result, used, profile, leastShare } = await oneRun({ lab, proxy, scenario, prepared, options })
  const after = await settledBalance(prepared.running, scenario)
  const { answers } = result
  checkCharge({ proxy, before, after, answers, costNanoDollars: scenario.costNanoDollars })
  const perUnit = (microseconds) => microseconds / (answers * scenario.unitsPerAnswer)
  return {
    ...Object.fromEntries(Object.entries(used).map(([name, microseconds]) => [name, perUnit(microseconds)])),
    answersPerSecond: (answers * 1_000) / result.elapsedMs,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    firstByteMs: result.firstByteP50Ms,
    ...(leastShare === undefined ? {} : { leastShare }),
    profile,
  }
}

async function warmUp({ lab, proxy, scenario, options, running }) {
  const steps = scenario.warmUp === undefined ? [scenario] : [scenario.warmUp, scenario]
  let prepared
  for (const step of steps) {
    prepared = { running, expectedBytes: await checkAnswer({ driver: lab.driver, proxy, running, scenario: step }) }
    const turn = (seconds) => oneRun({ lab, proxy, scenario: step, prepared, options: { seconds } })
    const first = await turn(Math.max(options.seconds, MIN_WARM_UP_SECONDS))
    if (step === steps[0])
      await repeatUntilSteady(cpuPerAnswer(first), async () => cpuPerAnswer(await turn(FURTHER_TURN_SECONDS)))
  }
  return prepared
}

/**
 * Ends with the first turn in which an answer costs about as much as in the cheapest turn before.
 * @param {() => Promise<number>} turn resolves with the CPU of an answer
 */
export async function repeatUntilSteady(cpuOfFirst, turn) {
  let least = cpuOfFirst
  for (let count = 0; count < MAX_ADDITIONAL_TURNS; count++) {
    const cpu = await turn()
    if (cpu >= least * STEADY_SHARE) return
    least = cpu
  }
}

function cpuPerAnswer({ result, used }) {
  return used.cpuMicroseconds / result.answers
}

async function oneRun({ lab, proxy, scenario, prepared, options }) {
  const { running, expectedBytes } = prepared
  const { connections, answersPerConnection = Number.POSITIVE_INFINITY, spreadMs = 0, perSecond } = scenario.load
  try {
    await lab.driver.ask('open', { port: running.port, count: connections })
    if (options.isProfiling) await running.startProfile?.()
    const answeredBefore = await running.answersByWorker?.()
    const before = await readUsage(running)
    const requests = requestsFor({ scenario, proxy, running })
    const durationMs = answersPerConnection === Number.POSITIVE_INFINITY ? options.seconds * 1_000 : undefined
    const answered =
      perSecond === undefined
        ? lab.driver.ask('run', { requests, durationMs, answersPerConnection, spreadMs, expectedBytes })
        : lab.driver.ask('runAtRate', { port: running.port, requests, durationMs, perSecond, expectedBytes })
    const result = await within(ANSWERS_WITHIN_MS, `${proxy.name}, ${scenario.name}`, answered)
    const used = usedBetween(before, await readUsage(running))
    const leastShare = leastShareOf(answeredBefore, await running.answersByWorker?.())
    const profile = options.isProfiling ? await running.stopProfile?.() : undefined
    if (result.faults.length > 0) throw new Error(`${proxy.name}, ${scenario.name}: ${result.faults.join(', ')}`)
    return { result, used, profile, leastShare }
  } finally {
    await lab.driver.ask('close')
  }
}

/** Reads the microseconds of CPU time since the start; a part is undefined if it cannot be measured. */
async function readUsage(running) {
  return {
    main: await running.mainThreadMicroseconds?.(),
    server: await running.serverMicroseconds?.(),
    cpu: await running.cpuMicroseconds(),
  }
}

/**
 * Returns the CPU time between two readings: the total, the part of the main thread, and the part of helper threads, which collect
 * garbage, compile, and wait for files and disks. The main thread is read in ticks, so small negative values count as 0.
 * `serverMicroseconds` is the CPU time of a separate database server, which is not in the other values.
 */
export function usedBetween(before, after) {
  const cpuMicroseconds = after.cpu - before.cpu
  const used = { cpuMicroseconds }
  if (before.main !== undefined && after.main !== undefined) {
    used.mainThreadMicroseconds = Math.min(after.main - before.main, cpuMicroseconds)
    used.helperThreadsMicroseconds = cpuMicroseconds - used.mainThreadMicroseconds
  }
  if (before.server !== undefined && after.server !== undefined) used.serverMicroseconds = after.server - before.server
  return used
}

/** Returns the part of all answers that came from the least busy worker of a cluster; undefined without a cluster. */
function leastShareOf(before, after) {
  if (before === undefined || after === undefined) return undefined
  const answers = after.map((count, index) => count - before[index])
  return Math.min(...answers) / answers.reduce((sum, count) => sum + count, 0)
}
