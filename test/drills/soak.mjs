/*
 * A gateway on SQLite under a mixed, steady load for a long time: does anything grow, leak or go wrong?
 *
 *   npm run soak                   an hour
 *   npm run soak -- --minutes 1    as the gate runs it
 *
 * Every ten seconds it prints the measurements of the gateway's process. It exits with status 0 if all answers were right, the money is
 * exact, nothing is left behind and the heap did not grow; else with 1 and the reasons.
 */
import { parseArgs } from 'node:util'
import { createClient } from 'signalbox/client'
import { Load } from './soak/load.mjs'
import { startServers } from './soak/start-servers.mjs'
import { faultsOf, heapGrowth, TABLE_HEAD, tableRow } from './soak/verdict.mjs'

const SAMPLE_EVERY_MS = 10_000
/** Videos and their webhooks end, and idle connections are let go, within this time after the last call. */
const QUIET_WITHIN_MS = 90_000
const SEED = 97_561

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' } } })
const minutes = Number(values.minutes)
if (!(minutes >= 1)) throw new RangeError(`--minutes is a number from 1 on, not ${values.minutes}`)

const servers = await startServers()
const videos = []
const callers = servers.apiKeys.map((apiKey) => ({
  client: createClient({ baseURL: `${servers.origin}/v1`, apiKey, timeoutMs: 60_000, maxRetries: 0 }),
  videos,
  webhookUrl: servers.receiver.url,
}))
const load = new Load(callers, seededNumbers(SEED))
const samples = []
const startedAtMs = performance.now()
let sampledAtMs = startedAtMs
let cpuBefore = process.cpuUsage()

try {
  console.log(`${minutes} minutes\n${TABLE_HEAD}`)
  await sample()
  samples.length = 0
  load.start()
  while (performance.now() - startedAtMs < minutes * 60_000) {
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_EVERY_MS))
    const { cpuShare } = await sample()
    load.steer(cpuShare)
    // The stand-ins remember calls for tests that ask for them; nobody asks here.
    servers.sandbox.reset()
  }
  await load.stop()
  const last = await untilQuiet()
  const money = await servers.ask('money')
  const faults = faultsOf({ samples, last, money, load, videos, receiver: servers.receiver })
  report(money, faults)
} finally {
  await servers.close()
}

/** Measures, and prints a row. */
async function sample() {
  const measured = await servers.ask('sample')
  const nowMs = performance.now()
  const { user, system } = process.cpuUsage(cpuBefore)
  cpuBefore = process.cpuUsage()
  const cpuShare = ((user + system) / 1_000 + measured.cpuMs) / Math.max(1, nowMs - sampledAtMs)
  sampledAtMs = nowMs
  const row = { ...measured, atMs: nowMs - startedAtMs, made: load.total, perSecond: load.perSecond, cpuShare }
  samples.push(row)
  console.log(tableRow(row))
  return row
}

/** Waits for a limited time until no work is in flight, held or open, and returns the last measurement. */
async function untilQuiet() {
  const untilMs = performance.now() + QUIET_WITHIN_MS
  for (;;) {
    const measured = await servers.ask('sample')
    const isTold = videos.every((id) => servers.receiver.messages.has(id))
    const isQuiet = measured.held === 0n && measured.callsUnderWay === 0 && measured.sockets === 0 && isTold
    if (isQuiet || performance.now() > untilMs) return measured
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

function report({ spent, endings }, faults) {
  console.log(`\nmade: ${[...load.made].map(([name, count]) => `${count} ${name}`).join(', ')}`)
  console.log(
    `ended: ${Object.entries(endings)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ')}`,
  )
  const growth = heapGrowth(samples)
  if (growth !== undefined)
    console.log(`heap: ${Math.round(growth.grownBytes)} bytes in ${growth.calls} calls after the warm-up`)
  console.log(`money: ${Number(spent) / 1e9} dollars, ${videos.length} videos`)
  for (const fault of faults) console.error(`FAILED: ${fault}`)
  if (faults.length > 0) process.exitCode = 1
  else console.log('ok')
}

/** Numbers from 0 up to 1 that are the same in every run (the generator `mulberry32`). */
function seededNumbers(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
