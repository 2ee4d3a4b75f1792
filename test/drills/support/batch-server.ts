import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { nodeHandler } from '../../../src/adapters/node.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { GatewayStore } from '../../../src/stores/gateway-store.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { TEST_MODELS } from '../../support/start-gateway.ts'
import { type BatchServerSettings, batchPrices } from './batch-kills-drill.ts'
import { openDrillStore } from './open-drill-store.ts'

/**
 * Gateway for batches in a separate process, which kills itself at a configured step. The first argument contains its settings as
 * JSON. It sends its address, starts its work with the first message or request, and sends its peak of memory in reply to `peak`.
 */
const settings = JSON.parse(process.argv[2] ?? '{}') as BatchServerSettings
const { key, account, dies, offsetMs } = settings
const gateway = createGateway({
  vendors: [openai({ apiKey: settings.vendorKey, baseURL: settings.vendorOrigin })],
  models: [...TEST_MODELS],
  prices: batchPrices,
  batches: { native: settings.native === true },
  taskPollIntervalMs: 20,
  store: dying(openDrillStore(settings.store).store),
  keys: [{ key, account }],
  // Leases of a killed process have expired by now.
  clock: { now: () => Date.now() + offsetMs, schedule: systemClock.schedule },
})

function dying(store: GatewayStore): GatewayStore {
  let kept = 0
  const die = (): void => void process.kill(process.pid, 'SIGKILL')
  const { tasks, batches } = store
  return {
    ...store,
    tasks: {
      ...tasks,
      async change(change, nowMs) {
        if (change.resolve?.kind !== 'settle') return await tasks.change(change, nowMs)
        if (dies === 'before-settlement') return await forEver(die)
        const made = await tasks.change(change, nowMs)
        return dies === 'after-settlement' ? await forEver(die) : made
      },
    },
    batches: {
      ...batches!,
      async add(...outcome) {
        // A step at the vendor's batch API is written down.
        const [id, { text }] = outcome
        const step = id.endsWith('_native') ? (JSON.parse(text) as { step: string }).step : undefined
        if (step !== undefined && dies === `before ${step}`) return await forEver(die)
        const isNew = await batches!.add(...outcome)
        if (step !== undefined) return dies === `after ${step}` ? await forEver(die) : isNew
        if (dies === 'under-way' && ++kept === 5) return await forEver(die)
        return isNew
      },
    },
  }
}

function forEver(die: () => void): Promise<never> {
  die()
  return new Promise(() => undefined)
}

const server = createServer(nodeHandler(gateway))
server.listen(0, '127.0.0.1', () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
})
/** The most memory that was resident. `maxRSS` would begin with that of the process which forked this one. */
function peakKibibytes(): number {
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return Number(kibibytes)
}

process.on('message', (message) => {
  void gateway.start()
  if (message === 'peak') process.send?.({ peakMebibytes: peakKibibytes() / 1_024 })
})
process.on('disconnect', () => process.exit(0))
