import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

/** 12.4 on Node 20 when it was set, 2.9 of which are Node's own. */
const MAX_MEGABYTES = 13

test('a gateway that waits for requests keeps no more in its heap than it did', async () => {
  const { stdout } = await run(process.execPath, ['--expose-gc', 'bench/idle-heap.mjs'])

  console.log(`idle gateway, megabytes of heap: ${stdout.trim()}`)
  const { node, imported, idle } = JSON.parse(stdout) as Readonly<Record<'node' | 'imported' | 'idle', number>>
  // Otherwise the measurement itself is broken.
  expect(imported).toBeGreaterThan(node)
  expect(idle).toBeGreaterThan(imported)
  expect(idle).toBeLessThan(MAX_MEGABYTES)
})
