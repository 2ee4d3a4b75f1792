import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)

/** 12.4 on Node 20 when it was set, 2.9 of which are Node's own. */
const MAX_MEGABYTES = 13

test('an idle gateway uses no more heap than before', async () => {
  const { stdout } = await run(process.execPath, ['--expose-gc', 'bench/idle-heap.mjs'])

  console.log(`idle gateway, megabytes of heap: ${stdout.trim()}`)
  const { node, imported, idle } = JSON.parse(stdout) as Readonly<Record<'node' | 'imported' | 'idle', number>>
  // A lower value means that the measurement is broken.
  expect(imported).toBeGreaterThan(node)
  expect(idle).toBeGreaterThan(imported)
  expect(idle).toBeLessThan(MAX_MEGABYTES)
})
