import { expect } from 'vitest'
import type { IdempotencyStore } from '../../../src/stores/idempotency-store.ts'
import { exampleClaim } from '../../../src/testing/contracts/contract-runner.ts'

/** Claims last by the clock of the store: processes whose clocks are 16 minutes slow or fast change nothing about it. */
export async function expectClaimsByOneClock({ claim }: IdempotencyStore): Promise<void> {
  const claimed = (key: string, claimedBy: string, nowMs: number, lastsMs = 900_000) =>
    claim(
      { ...exampleClaim({ key, claimedBy }), expiresAtMs: nowMs + 86_400_000, pendingUntilMs: nowMs + lastsMs },
      nowMs,
    )
  const wrongMs = 16 * 60_000
  const clocks = [Date.now(), Date.now() - wrongMs, Date.now() + wrongMs]
  for (const [index, nowMs] of clocks.entries()) {
    expect(await claimed(`key ${index}`, 'req_1', nowMs)).toEqual({ status: 'claimed' })
    for (const otherMs of clocks)
      expect(await claimed(`key ${index}`, 'req_2', otherMs)).toEqual({ status: 'in_flight' })
    expect(await claimed(`over ${index}`, 'req_1', nowMs, 0)).toEqual({ status: 'claimed' })
    expect(await claimed(`over ${index}`, 'req_2', nowMs)).toEqual({ status: 'claimed' })
  }
}
