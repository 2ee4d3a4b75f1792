import { describe, expect, test } from 'vitest'
import { consoleBrowser } from '../../test/console/support/console-browser.ts'
import { executablePath } from '../../test/console/support/open-console.ts'

// The check needs Chromium on the machine.
describe.skipIf(executablePath === undefined)('the page of the console in a browser', { timeout: 60_000 }, () => {
  const open = consoleBrowser()

  test('is painted within a second by a processor that is four times slower', async () => {
    const { page } = await open()
    const session = await page.context().newCDPSession(page)
    await session.send('Emulation.setCPUThrottlingRate', { rate: 4 })
    const paintedMs: number[] = []
    // Other work of the machine only makes the page slower, so the fastest of five runs counts.
    while (paintedMs.length < 5 && !paintedMs.some((ms) => ms <= 1_000)) {
      await page.reload()
      await page.getByLabel('Operator key').waitFor()
      const first = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime
      paintedMs.push((await page.evaluate(first)) ?? Number.POSITIVE_INFINITY)
    }

    expect(Math.min(...paintedMs)).toBeLessThanOrEqual(1_000)
  })
})
