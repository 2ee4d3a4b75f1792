import { afterAll, beforeAll } from 'vitest'
import { type FakeClock, fakeClock, type Sandbox, sandboxVendors } from '../../../../src/testing/index.ts'

/** A sandbox on a port whose batches move with a clock of the test: 1 s until they run, 2 s until they end. */
export interface BatchSandbox {
  readonly sandbox: Sandbox
  readonly clock: FakeClock
  readonly origin: string
}

/** Starts it before the tests of a file and closes it after them. */
export function batchSandbox(): BatchSandbox {
  const clock = fakeClock()
  const sandbox = sandboxVendors({ clock, batchPendingMs: 1_000, batchRunningMs: 2_000 })
  let origin = ''
  beforeAll(async () => {
    origin = (await sandbox.listen()).origin
  })
  afterAll(() => sandbox.close())
  return {
    sandbox,
    clock,
    get origin() {
      return origin
    },
  }
}
