import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

/**
 * 23,400 when it was set, of which the JSON of request and answer is 4,300, and the sender 1,500. A request that allocates more costs
 * its share of collections too.
 */
const MOST_BYTES_PER_REQUEST = 24_500

test('a small chat allocates no more than it did', async () => {
  const flags = ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=64']

  const { stdout } = await run(process.execPath, [...flags, 'bench/allocations.mjs'])

  const { bytesPerRequest } = JSON.parse(stdout) as { readonly bytesPerRequest: number }
  // Far below, the measurement itself is broken.
  expect(bytesPerRequest).toBeGreaterThan(5_000)
  expect(bytesPerRequest).toBeLessThan(MOST_BYTES_PER_REQUEST)
})
