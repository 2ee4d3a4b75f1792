import { createRequire } from 'node:module'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import { canPin } from './child-process.mjs'

/** The machine in words. */
export function machine() {
  const memory = Math.round(totalmem() / 1_024 ** 3)
  const pinning = canPin ? 'proxy alone on core 0, vendor and driver on core 1' : 'processes not pinned'
  const { version: undici } = createRequire(import.meta.url)('undici/package.json')
  const system = `${type()} ${release()}, Node ${process.versions.node}, undici ${undici}`
  return `${availableParallelism()} × ${cpus()[0].model}, ${memory} GB, ${system}; ${pinning}`
}
