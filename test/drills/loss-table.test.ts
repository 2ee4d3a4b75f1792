import { afterEach, describe, expect, test } from 'vitest'
import { type ExitKind, planExits } from './support/exit-plan.ts'
import { type ExitRun, startExits } from './support/exit-run.ts'
import { isLong } from './support/fault-drill-settings.ts'
import { lossTable } from './support/loss-table.ts'

const COUNT = isLong ? 10_000 : 500
const SEED = Number(process.env['SEED'] ?? 20_261_122)

/** Rows of calls of tokens that no caller ended, and of which the gateway saw what was made. */
const ENDED_BY_VENDOR = [
  ...['no usage reported: chat, streamed', 'no usage reported: chat, whole'],
  ...['no usage reported: messages, streamed', 'no usage reported: messages, whole'],
  ...['vendor cuts: chat, streamed', 'vendor cuts: chat, whole'],
  ...['vendor cuts: messages, streamed', 'vendor cuts: messages, whole'],
]

/** Ends whose callers stay and whose vendors report usage. */
const PAID_AS_REPORTED: readonly ExitKind[] = ['whole answer', 'fallback', 'replay']

let run: ExitRun

afterEach(() => run.close())

describe('random exits', () => {
  test('lose the operator at most 0.5 % of what the vendors bill, and no account more than one call', {
    timeout: isLong ? 1_200_000 : 120_000,
  }, async () => {
    const plans = planExits(COUNT, SEED)
    run = await startExits(plans)
    const results = await run.makeAll()
    const table = lossTable(results)
    const { total, text } = table

    process.stdout.write(`${text}\n`)
    expect(results).toHaveLength(COUNT)
    expect(total.billed).toBeGreaterThan(0n)
    // Half a percent of the vendors' bill, for which nothing that was charged too much makes up; fewer calls spread wider.
    const bound = total.billed / (isLong ? 200n : 50n)
    // Usage that an event has reported does not count as lost.
    expect(total.lostAlone, text).toBeLessThanOrEqual(bound)
    for (const { account, lost, dearestCall } of table.accounts)
      expect(lost, `${account}\n${text}`).toBeLessThanOrEqual(dearestCall)
    expect(total.untoldCalls, text).toBe(0)
    // Calls that the vendor ended or did not report are charged within 25 % of its own count, for callers too.
    for (const name of isLong ? ENDED_BY_VENDOR : []) {
      const { billed, charged, told } = table.rows.get(name)!
      expect(charged * 4n, `${name}\n${text}`).toBeLessThanOrEqual(billed * 5n)
      expect((charged + told) * 4n, `${name}\n${text}`).toBeGreaterThanOrEqual(billed * 3n)
    }
    // Callers pay what vendors report, to the nano-dollar.
    expect(total.overchargedReported, text).toBe(0n)
    const whole = results.filter(({ plan }) => PAID_AS_REPORTED.includes(plan.kind))
    for (const { plan, billed, charged, told, hasReport } of whole)
      if (hasReport) expect({ plan, paid: charged + told }).toEqual({ plan, paid: billed })
    // A busy machine may run into a time-out of the gateway.
    expect(whole.filter(({ hasReport }) => !hasReport).length).toBeLessThanOrEqual(COUNT / 1_000)
    expect(await run.openMoney()).toEqual({ held: 0n, owed: 0n })
  })
})
