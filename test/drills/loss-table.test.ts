import { afterEach, describe, expect, test } from 'vitest'
import { planExits } from './support/exit-plan.ts'
import { type ExitRun, startExits } from './support/exit-run.ts'
import { isLong } from './support/fault-drill-settings.ts'
import { lossTable } from './support/loss-table.ts'

const COUNT = isLong ? 10_000 : 500
const SEED = Number(process.env['SEED'] ?? 20_261_122)

let run: ExitRun

afterEach(() => run.close())

describe('random exits', () => {
  test('lose the operator at most 0.5 % of what the vendors bill, and no account more than one call', {
    timeout: isLong ? 1_200_000 : 90_000,
  }, async () => {
    const plans = planExits(COUNT, SEED)
    run = await startExits(plans)
    const results = await run.makeAll()
    const table = lossTable(results)

    process.stdout.write(`${table.text}\n`)
    expect(results).toHaveLength(COUNT)
    expect(table.total.billed).toBeGreaterThan(0n)
    // Half a percent of the vendors' bill.
    expect(table.total.lost * 200n, table.text).toBeLessThanOrEqual(table.total.billed)
    // The same of the losses alone, for which nothing that was charged too much makes up; fewer calls spread wider.
    expect(table.total.lostAlone * (isLong ? 200n : 50n), table.text).toBeLessThanOrEqual(table.total.billed)
    for (const { account, lost, dearestCall } of table.accounts)
      expect(lost, `${account}\n${table.text}`).toBeLessThanOrEqual(dearestCall)
    expect(await run.held()).toBe(0n)
  })
})
