import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

/**
 * 29,000 when it was set, of which the JSON of request and answer is 4,200, the sender 2,000, and the `async` functions of the stages
 * 8,000. A request that allocates more costs its share of collections too. The same build differs by up to 7 % from one machine to
 * another.
 */
const MAX_BYTES_PER_REQUEST = 31_000

/**
 * Rules of a preset are compiled when the gateway is created; checking a request against them allocates nothing. Another pass over the
 * request would add a fifth.
 */
const PRESET_RATIO = { least: 0.87, most: 1.13 }

type BenchedVendor = 'openai' | 'compatible' | 'preset'

/** Number of runs of each, in turns. Late compilation and half-used pages can only add to the allocations of a run. */
const RUNS = 3

/** Returns the lowest result of a vendor's runs, which end when one is within the bound. */
async function leastWithin(vendor: BenchedVendor, most: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let run = 0; run < RUNS && least >= most; run++) least = Math.min(least, await bytesPerChat(vendor))
  return least
}

async function leastOf<Vendor extends BenchedVendor>(vendors: readonly Vendor[]): Promise<Record<Vendor, number>> {
  const least = Object.fromEntries(vendors.map((vendor) => [vendor, Number.POSITIVE_INFINITY])) as Record<
    Vendor,
    number
  >
  for (let run = 0; run < RUNS; run++)
    for (const vendor of vendors) least[vendor] = Math.min(least[vendor], await bytesPerChat(vendor))
  return least
}

async function bytesPerChat(vendor: BenchedVendor): Promise<number> {
  const flags = ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=64']
  const { stdout } = await run(process.execPath, [...flags, 'bench/allocations.mjs', vendor])
  return (JSON.parse(stdout) as { readonly bytesPerRequest: number }).bytesPerRequest
}

test('a small chat allocates no more than it did', async () => {
  const bytesPerRequest = await leastWithin('openai', MAX_BYTES_PER_REQUEST)

  // A much lower value means that the measurement is broken.
  expect(bytesPerRequest).toBeGreaterThan(5_000)
  expect(bytesPerRequest).toBeLessThan(MAX_BYTES_PER_REQUEST)
})

test('a chat at a preset allocates what it does at the same server without one', async () => {
  const { compatible: plain, preset } = await leastOf(['compatible', 'preset'])

  expect(plain).toBeGreaterThan(5_000)
  expect(preset / plain).toBeLessThan(PRESET_RATIO.most)
  // A much lower value means that one of the two measures something else.
  expect(preset / plain).toBeGreaterThan(PRESET_RATIO.least)
})
