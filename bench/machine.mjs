import { createRequire } from 'node:module'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import { canPin } from './child-process.mjs'

/** Describes the machine, with the versions of Node of the proxies, by default our own. */
export function machine(nodes = []) {
  const memory = Math.round(totalmem() / 1_024 ** 3)
  const pinning = canPin ? 'proxy alone on core 0, vendor and driver on core 1' : 'processes not pinned'
  const { version: undici } = createRequire(import.meta.url)('undici/package.json')
  const versions = nodes.length === 0 ? process.versions.node : nodes.join(' and ')
  const system = `${type()} ${release()}, Node ${versions}, undici ${undici}`
  return `${availableParallelism()} × ${cpus()[0].model}, ${memory} GB, ${system}; ${pinning}`
}
