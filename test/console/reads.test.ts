import { describe, expect, test } from 'vitest'
import { BUILT_IN_SNAPSHOT } from '../../src/catalog/vendor-models/snapshot.ts'
import { systemClock } from '../../src/core/clock.ts'
import { OPERATOR_KEY } from '../admin/support/start-admin.ts'
import { chatBody } from '../support/start-gateway.ts'
import { callThrough, consoleBrowser } from './support/console-browser.ts'
import { executablePath } from './support/open-console.ts'

// Without Chromium on the machine there is nothing to run it in.
describe.skipIf(executablePath === undefined)('reading the console in a browser', { timeout: 60_000 }, () => {
  const open = consoleBrowser()

  test('a wrong key is refused in words, the right one opens the overview, and leaving closes it', async () => {
    const { page, faults } = await open()
    await page.getByRole('button', { name: 'Leave' }).click()
    await page.getByLabel('Operator key').fill('a-wrong-operator-key-000000')
    await page.getByRole('button', { name: 'Open' }).click()
    await page.getByRole('alert').getByText('not an operator').waitFor()

    expect(await page.getByRole('navigation').count()).toBe(0)
    expect(faults).toEqual([])
  })

  test('the overview sums up what was used, and says what to do where nothing was', async () => {
    const console = await open()
    const { page, show, faults } = console
    await page.getByText('No calls yet.').waitFor()
    await callThrough(console, 'hello')
    await show('overview?range=7d')
    await page.getByText('Latency, median').waitFor()
    const cards = await page.locator('.card').allInnerTexts()
    await page.getByRole('button', { name: 'Table of Requests' }).click()
    const table = page.getByRole('table', { name: 'Requests' })

    expect(cards.find((text) => text.startsWith('Requests'))).toContain('1')
    expect(await page.getByRole('img', { name: /^Spend: 7 steps/ }).count()).toBe(1)
    expect(await table.getByRole('row').count()).toBe(8)
    expect(faults).toEqual([])
  })

  test('the models view lists called models that retire soon, with their spend', async () => {
    const day = (days: number) => new Date(Date.now() + days * 24 * 60 * 60_000).toISOString().slice(0, 10)
    const models = [
      { id: 'ending', kind: 'chat', vendor: 'anthropic', upstream: 'claude-sonnet-4-6', retires: day(20) },
      { id: 'ended', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', retires: day(-20) },
      { id: 'staying', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', retires: day(200) },
    ] as const
    const price = (model: string) => ({ model, meter: 'request', amount: '0.25' }) as const
    const prices = { currency: 'USD', prices: models.map(({ id }) => price(id)) } as const
    const console = await open({ gateway: { models, prices } })
    const { page, show, faults } = console
    await show('models')
    await page.getByText('No model that was called in the last 30 days retires within 60 days.').waitFor()
    for (const model of ['ending', 'ended', 'ending', 'staying']) {
      const answer = await console.post('/v1/chat/completions', chatBody(model, 'hello'))
      await answer.text()
      await console.ended(answer)
    }
    await show('overview')
    await show('models')
    const table = page.getByRole('table', { name: 'Retiring models' })
    await table.waitFor()

    expect(await table.getByRole('row').allInnerTexts()).toEqual([
      expect.stringContaining('spend, 30 days'),
      expect.stringMatching(new RegExp(`ending\\s+anthropic\\s+${day(20)}\\s+2\\s+\\$0.50`)),
      expect.stringMatching(new RegExp(`ended\\s+openai\\s+${day(-20)}\\s+1\\s+\\$0.25`)),
    ])
    const all = page.getByRole('table', { name: 'Models', exact: true })
    expect(await all.getByRole('row', { name: 'staying' }).textContent()).toContain(day(200))
    expect(faults).toEqual([])
  })

  test('one request shows its attempts as bars, its facts and its charge', async () => {
    const console = await open()
    const { page, show, faults, sandbox } = console
    sandbox.fault({ kind: 'status', status: 503, times: 1 })
    const id = await callThrough(console, 'hello')
    await show('requests?ending=completed')
    await page.getByRole('table', { name: 'Requests' }).getByRole('link').first().click()
    await page.getByRole('heading', { level: 1, name: id }).waitFor()
    const attempts = page.getByRole('table', { name: 'Attempts' })
    await attempts.waitFor()

    expect(await attempts.getByRole('row').allInnerTexts()).toEqual([
      expect.stringContaining('vendor'),
      expect.stringMatching(/anthropic[\s\S]*failed[\s\S]*503/),
      expect.stringMatching(/anthropic[\s\S]*answered/),
    ])
    expect(await attempts.getByRole('img').count()).toBe(2)
    expect(await page.getByRole('table', { name: 'Journal' }).getByText('charge').count()).toBe(1)
    // A new view is read from its heading on.
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('H1')
    expect(faults).toEqual([])
  })

  test('the latest errors are as many as fit, though other calls lie between', async () => {
    const console = await open()
    const { page, show, faults } = console
    for (let count = 0; count < 9; count++) {
      await callThrough(console, '[[fault:status=400]] hello')
      await callThrough(console, 'hello')
    }
    await show('overview')
    const errors = page.getByRole('table', { name: 'Latest errors' })
    await errors.waitFor()

    // Records of calls without a charge come within a second, and the view reads again every five.
    await expect.poll(() => errors.getByRole('row').count(), { timeout: 20_000 }).toBe(1 + 8)
    expect(faults).toEqual([])
  })

  test('labels lists of whole days next to the sums of 24 hours', async () => {
    const console = await open()
    const { page, show } = console
    await callThrough(console, 'hello')
    await show('overview?range=24h')
    await page.getByText('the top lists are of whole days in UTC').waitFor()
    await show('overview?range=7d')
    await page.getByRole('img', { name: /^Spend: 7 steps/ }).waitFor()

    expect(await page.getByText('of whole days in UTC').count()).toBe(0)
  })

  test('shows the age of a catalog that is older than 60 days on the overview and on the page of vendors', async () => {
    // The page queries usage by its own clock, which must not be ahead of the gateway's clock.
    const days = Math.max(61, BUILT_IN_SNAPSHOT.ageDays(Date.now()) + 1)
    const atMs = Date.parse(BUILT_IN_SNAPSHOT.date) + days * 86_400_000
    const { page, show, faults } = await open({ gateway: { clock: { ...systemClock, now: () => atMs } } })
    const warning = page.getByText(`Models and list prices are of ${BUILT_IN_SNAPSHOT.date}, ${days} days ago.`)

    await warning.waitFor()
    await show('vendors')
    await warning.waitFor()

    expect(faults).toEqual([])
  })

  test('an answer that takes longer than the time between two reads is waited for', async () => {
    const { page, faults } = await open()
    await page.clock.install()
    let asked = 0
    let release = (): void => undefined
    await page.route('**/v1/vendors', async (route) => {
      asked += 1
      await new Promise<void>((resolve) => {
        release = resolve
      })
      await route.continue()
    })
    const first = page.waitForRequest('**/v1/vendors')
    await page.evaluate(() => {
      location.hash = '#/vendors'
    })
    await first
    await page.clock.runFor(20_000)
    const askedBefore = asked
    release()
    await page.getByRole('table').first().waitFor()

    expect(askedBefore).toBe(1)
    expect(faults).toEqual([])
  })

  test('notifies a user who is no longer known as an operator', async () => {
    let isKnown = true
    const authorize = () => (isKnown ? ({ name: 'ops', can: ['read'] } as const) : undefined)
    const { page, show, faults } = await open({ console: { authorize, operatorKeys: [] } })
    // A view that refreshes itself could show the message instead.
    await show('models')
    isKnown = false
    await page.getByRole('link', { name: 'Vendors' }).click()
    await page.getByRole('alert').getByText('no longer known').waitFor()

    expect(await page.getByLabel('Operator key').count()).toBe(1)
    expect(faults).toEqual([])
  })

  test('calls are found by time, and why one has no record is said', async () => {
    const console = await open()
    const { page, show } = console
    await callThrough(console, 'hello')
    await show('requests?from=2026-01-01&to=2026-01-02')
    await page.getByText('No call fits these filters here.').waitFor()
    await page.getByRole('textbox', { name: /^to/ }).fill('')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByRole('table', { name: 'Requests' }).waitFor()
    const refused = await console.post('/v1/chat/completions', chatBody('no-such-model', 'hello'))
    await refused.text()
    await show(`requests/${refused.headers.get('x-request-id')}`)
    await page.getByRole('alert').getByText('rejected before a vendor was called').waitFor()
  })

  test('an answer of the cache is said to be one that no vendor gave', async () => {
    const console = await open({ gateway: { cache: { rules: [{ sampling: 'any' }] } } })
    const { page, show, faults } = console
    await callThrough(console, 'hello')
    const id = await callThrough(console, 'hello')
    await show('requests')
    await page.getByRole('table', { name: 'Requests' }).getByRole('row').nth(2).waitFor({ timeout: 20_000 })
    await show(`requests/${id}`)
    await page.getByText('No vendor was called: the answer came from the response cache').waitFor()

    expect(faults).toEqual([])
  })

  test('lists changes of a subject with the values before and after', async () => {
    const { page, show, faults, address } = await open()
    await show('audit')
    await page.getByText('No changes in the last 365 days.').waitFor()
    const headers = { authorization: `Bearer ${OPERATOR_KEY}`, 'content-type': 'application/json' }
    const send = (method: string, path: string, body: object) =>
      fetch(`${address}v1/${path}`, { method, headers, body: JSON.stringify(body) })
    for (const id of ['acct_other', 'acct_audit']) await send('POST', 'accounts', { id, name: 'One' })
    const changed = await send('PATCH', 'accounts/acct_audit', { name: 'Two' })
    expect(changed.status).toBe(200)
    await show('overview')
    await show('audit')
    const table = page.getByRole('table', { name: 'Changes' })
    await table.getByRole('row').nth(3).waitFor()
    await page.getByLabel('Subject').fill('acct_audit')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await expect.poll(() => table.getByRole('row').count()).toBe(1 + 2)
    const newest = table.getByRole('row').nth(1)
    await newest.getByText('Details').click()

    expect(await newest.textContent()).toMatch(/ops[\s\S]*127\.0\.0\.1[\s\S]*update_account[\s\S]*acct_audit/)
    const details = JSON.parse((await newest.locator('pre').textContent()) ?? '')
    expect(details).toEqual({ input: { name: 'Two' }, before: { name: 'One' }, after: { name: 'Two' } })
    await show('audit?subject=nothing')
    await page.getByText('No change of this subject here.').waitFor()
    expect(faults).toEqual([])
  })

  test('a task leads to what it was charged', async () => {
    const console = await open({ gateway: { taskPollIntervalMs: 20 } })
    const { page, show, faults } = console
    const video = { model: 'wv2.6-t2v', duration: 4, resolution: '720p', input: { prompt: 'a boat' } }
    const submitted = await console.post('/v1/videos/generations', video)
    const id = String((await submitted.json()).task_id)
    await console.taskEnded(id)
    await show('tasks')
    await page.getByRole('link', { name: id }).click()
    await page.getByRole('heading', { level: 1, name: submitted.headers.get('x-request-id') ?? '' }).waitFor()
    await page.getByRole('table', { name: 'Journal' }).getByText('charge').waitFor()

    expect(faults).toEqual([])
  })

  test('a request is found by the id that its caller read', async () => {
    const console = await open()
    const { page, show, faults } = console
    const id = await callThrough(console, 'hello')
    await show('requests')
    await page.getByRole('form', { name: 'Request id' }).getByRole('textbox').fill(` ${id} `)
    await page.getByRole('button', { name: 'Show request' }).click()
    await page.getByRole('heading', { level: 1, name: id }).waitFor()
    await page.getByRole('table', { name: 'Attempts' }).waitFor()

    expect(faults).toEqual([])
  })
})
