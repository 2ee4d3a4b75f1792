import type { MaybePromise } from '../../core/maybe-promise.ts'

/**
 * The functions of a test runner that a contract suite needs. Vitest's and Jest's own fit; for `node:test` pass
 * `{ describe, it, expect: (actual) => ({ toEqual: (expected) => assert.deepStrictEqual(actual, expected) }) }`.
 */
export interface ContractRunner {
  describe(name: string, body: () => void): unknown
  it(name: string, body: () => Promise<void>): unknown
  expect(actual: unknown): { toEqual(expected: unknown): unknown }
}

/** How a suite gets a fresh, empty driver for each case. */
export interface ContractSubject<Driver> {
  /** Called once for each case; returns a started, empty driver. */
  create(): MaybePromise<Driver>
  /** Called with the driver when its case is over, whatever its outcome. */
  dispose?(driver: Driver): MaybePromise<void>
}

/** Clock of a suite. Drivers that use the given `nowMs` need none; those with their own clock pass it here. */
export interface ContractClock {
  /** Unix milliseconds. */
  now(): number
  advance(milliseconds: number): MaybePromise<void>
}

/** A clock that moves only when `advance` is called. */
export function standingClock(startMs = 1_750_000_000_000): ContractClock {
  let nowMs = startMs
  return {
    now: () => nowMs,
    advance(milliseconds) {
      nowMs += milliseconds
    },
  }
}

/** Runs one case with its own driver. */
export async function withDriver<Driver>(
  subject: ContractSubject<Driver>,
  body: (driver: Driver) => Promise<void>,
): Promise<void> {
  const driver = await subject.create()
  try {
    await body(driver)
  } finally {
    await subject.dispose?.(driver)
  }
}

/** Name of the error that a call ends with, thrown or rejected; `'no error'` when it succeeds. */
export async function failureName(call: () => MaybePromise<unknown>): Promise<string> {
  try {
    await call()
  } catch (error) {
    return error instanceof Error ? error.name : String(error)
  }
  return 'no error'
}
