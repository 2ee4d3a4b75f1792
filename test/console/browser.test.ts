import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { listen } from '../support/listen.ts'
import { chatBody, TEST_ACCOUNT } from '../support/start-gateway.ts'
import {
  executablePath,
  launchBrowser,
  type OpenConsole,
  type OpenOptions,
  openConsole,
} from './support/open-console.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const XSS = '<img src=x onerror=alert(1)><script>alert(2)</script>"><svg onload=alert(3)>'
const VIEWS = [
  'overview',
  'requests',
  'accounts',
  `accounts/${TEST_ACCOUNT}`,
  'models',
  'vendors',
  'tasks',
  `tasks/${TEST_ACCOUNT}`,
  'playground',
]

// Without Chromium on the machine there is nothing to run it in.
describe.skipIf(executablePath === undefined)('the console in a browser', { timeout: 60_000 }, () => {
  let browser: Browser
  let opened: OpenConsole | undefined

  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterEach(async () => {
    await opened?.close()
    opened = undefined
  })
  afterAll(() => browser?.close())

  async function open(options: OpenOptions = {}): Promise<OpenConsole> {
    opened = await openConsole(browser, options)
    return opened
  }

  async function call(console: OpenConsole, text: string, rest: Record<string, unknown> = {}): Promise<string> {
    const response = await console.post('/v1/chat/completions', chatBody('cl-sonnet-4-6', text, rest))
    await response.text()
    await console.ended(response)
    return response.headers.get('x-request-id') ?? ''
  }

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
    await call(console, 'hello')
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

  test('one request shows its attempts as bars, its facts and its charge', async () => {
    const console = await open()
    const { page, show, faults, sandbox } = console
    sandbox.fault({ kind: 'status', status: 503, times: 1 })
    const id = await call(console, 'hello')
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
      await call(console, '[[fault:status=400]] hello')
      await call(console, 'hello')
    }
    await show('overview')
    const errors = page.getByRole('table', { name: 'Latest errors' })
    await errors.waitFor()

    // Records of calls without a charge come within a second, and the view reads again every five.
    await expect.poll(() => errors.getByRole('row').count(), { timeout: 20_000 }).toBe(1 + 8)
    expect(faults).toEqual([])
  })

  test('the sums of 24 hours say that lists beside them are of whole days', async () => {
    const console = await open()
    const { page, show } = console
    await call(console, 'hello')
    await show('overview?range=24h')
    await page.getByText('the top lists are of whole days in UTC').waitFor()
    await show('overview?range=7d')
    await page.getByRole('img', { name: /^Spend: 7 steps/ }).waitFor()

    expect(await page.getByText('of whole days in UTC').count()).toBe(0)
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

  test('who is no longer known as an operator is told so', async () => {
    let isKnown = true
    const authorize = () => (isKnown ? ({ name: 'ops', can: ['read'] } as const) : undefined)
    const { page, faults } = await open({ console: { authorize, operatorKeys: [] } })
    isKnown = false
    await page.getByRole('link', { name: 'Vendors' }).click()
    await page.getByRole('alert').getByText('no longer known').waitFor()

    expect(await page.getByLabel('Operator key').count()).toBe(1)
    expect(faults).toEqual([])
  })

  test('calls are found by time, and why one has no record is said', async () => {
    const console = await open()
    const { page, show } = console
    await call(console, 'hello')
    await show('requests?from=2026-01-01&to=2026-01-02')
    await page.getByText('No call fits these filters here.').waitFor()
    await page.getByRole('textbox', { name: /^to/ }).fill('')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByRole('table', { name: 'Requests' }).waitFor()
    const refused = await console.post('/v1/chat/completions', chatBody('no-such-model', 'hello'))
    await refused.text()
    await show(`requests/${refused.headers.get('x-request-id')}`)
    await page.getByRole('alert').getByText('refused before a vendor was asked').waitFor()
  })

  test('an answer of the cache is said to be one that no vendor gave', async () => {
    const console = await open({ gateway: { cache: { rules: [{ sampling: 'any' }] } } })
    const { page, show, faults } = console
    await call(console, 'hello')
    const id = await call(console, 'hello')
    await show('requests')
    await page.getByRole('table', { name: 'Requests' }).getByRole('row').nth(2).waitFor({ timeout: 20_000 })
    await show(`requests/${id}`)
    await page.getByText('No vendor was asked: the answer came from the response cache').waitFor()

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
    const id = await call(console, 'hello')
    await show('requests')
    await page.getByRole('form', { name: 'Request id' }).getByRole('textbox').fill(` ${id} `)
    await page.getByRole('button', { name: 'Show request' }).click()
    await page.getByRole('heading', { level: 1, name: id }).waitFor()
    await page.getByRole('table', { name: 'Attempts' }).waitFor()

    expect(faults).toEqual([])
  })

  test('an account is made, credited, given a key that is shown once, and frozen', async () => {
    const { page, show, faults, gateway } = await open()
    await show('accounts')
    await page.getByText('New account').click()
    await page.getByRole('form', { name: 'New account' }).getByRole('textbox', { name: /^Id/ }).fill('acct_browser')
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByRole('heading', { level: 1, name: 'acct_browser' }).waitFor()
    await page.getByText('Credit or correct').click()
    await page.getByRole('form', { name: 'Credit' }).getByLabel('Dollars').fill('12.50')
    await page.getByRole('button', { name: 'Add credit' }).click()
    await page.getByText('$12.50').first().waitFor()
    await page.getByText('New key').first().click()
    await page.getByRole('form', { name: 'New key' }).getByLabel('Label').fill('shop')
    await page.getByRole('button', { name: 'Create key' }).click()
    const shown = page.getByRole('status').getByText('sk-')
    await shown.waitFor()
    const key = (await shown.textContent()) ?? ''
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('End this key for good?').waitFor()
    await page.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('revoked', { exact: true }).waitFor()
    await page.getByText('Settings', { exact: true }).click()
    await page.getByLabel('Reason to freeze').fill('chargeback')
    await page.getByRole('button', { name: 'Freeze account' }).click()
    await page.getByText('Frozen since').waitFor()
    const [record] = await gateway.keys.list('acct_browser')

    expect(key).toMatch(/^sk-/)
    expect(await page.content()).not.toContain(key)
    expect(record).toMatchObject({ label: 'shop', revokedAtMs: expect.any(Number) })
    expect(await gateway.accounts.get('acct_browser')).toMatchObject({
      balance: 12_500_000_000n,
      frozen: { reason: 'chargeback' },
    })
    expect(faults).toEqual([])
  })

  test('the caps of an account and of a key are set, and what is used of them is shown', async () => {
    const console = await open()
    const { page, show, faults, gateway } = console
    await call(console, 'hello')
    const spent = await gateway.accounts.spending(TEST_ACCOUNT)
    await show(`accounts/${TEST_ACCOUNT}`)
    await page.getByText('Settings', { exact: true }).click()
    await page.getByRole('form', { name: 'Settings' }).getByLabel('Spending cap, dollars').fill('40')
    await page.getByRole('button', { name: 'Save settings' }).click()
    await page.locator('.card').filter({ hasText: '$40.00 a month' }).getByText('left').waitFor()
    const row = page.getByRole('table', { name: 'Keys' }).getByRole('row').nth(1)
    await row.getByRole('button', { name: 'Limits' }).click()
    const form = page.getByRole('form', { name: 'Limits' })
    await form.getByLabel('Requests per minute').fill('90')
    await form.getByLabel('Spending cap, dollars').fill('3')
    await form.getByLabel('Cap period').selectOption('day')
    await form.getByRole('button', { name: 'Save limits' }).click()
    await row.getByText('of $3.00 a day').waitFor()
    const [record] = await gateway.keys.list(TEST_ACCOUNT)
    await row.getByRole('button', { name: 'Limits' }).click()
    const rpm = await form.getByLabel('Requests per minute').inputValue()
    await form.getByLabel('Spending cap, dollars').fill('')
    await form.getByRole('button', { name: 'Save limits' }).click()
    await row.getByText('this month').waitFor()

    expect(spent?.month).toBeGreaterThan(0n)
    expect(record).toMatchObject({
      limits: { requestsPerMinute: 90 },
      spendingCap: { amount: 3_000_000_000n, period: 'day' },
    })
    expect(rpm).toBe('90')
    expect((await gateway.accounts.spending(TEST_ACCOUNT))?.keys[0]).toMatchObject({
      cap: undefined,
      month: spent?.month,
    })
    expect(faults).toEqual([])
  })

  test('what another operator changes meanwhile stays as it is', async () => {
    const { page, show, faults, gateway } = await open()
    const [key] = await gateway.keys.list(TEST_ACCOUNT)
    await show(`accounts/${TEST_ACCOUNT}`)
    await page.getByText('Settings', { exact: true }).click()
    await page.getByRole('button', { name: 'Limits' }).click()
    const spendingCap = { amount: 5_000_000_000n, period: 'day' } as const
    await gateway.accounts.update(TEST_ACCOUNT, { plan: null, spendingCap, creditLimit: 7_000_000_000n })
    await gateway.keys.update(key?.id ?? '', { spendingCap })
    await page.getByRole('form', { name: 'Settings' }).getByLabel('Name').fill('Test')
    await page.getByRole('button', { name: 'Save settings' }).click()
    await page.locator('.card').getByText('$5.00 a day').waitFor()
    await page.getByRole('form', { name: 'Limits' }).getByLabel('At once').fill('3')
    await page.getByRole('button', { name: 'Save limits' }).click()
    await page.getByRole('table', { name: 'Keys' }).getByText('3 at once').waitFor()

    const account = await gateway.accounts.get(TEST_ACCOUNT)
    expect(account).toMatchObject({ name: 'Test', spendingCap, creditLimit: 7_000_000_000n })
    expect((await gateway.keys.list(TEST_ACCOUNT))[0]).toMatchObject({ limits: { concurrency: 3 }, spendingCap })
    expect(faults).toEqual([])
  })

  test('a charge is refunded from the journal, and the journal is saved as CSV', async () => {
    const console = await open()
    const { page, show, faults } = console
    await call(console, 'hello')
    await show(`accounts/${TEST_ACCOUNT}`)
    await page.getByRole('button', { name: 'Refund' }).click()
    await page.getByRole('button', { name: 'Refund' }).click()
    await page.getByRole('table', { name: 'Journal' }).getByText('refund', { exact: true }).waitFor()
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'CSV of the journal' }).click()
    const saved = await saving
    const text = readFileSync(await saved.path(), 'utf8')

    expect(saved.suggestedFilename()).toBe(`journal-${TEST_ACCOUNT}.csv`)
    expect(text.split('\r\n')).toHaveLength(5)
    expect(await console.account()).toMatchObject({ balance: 100_000_000_000n })
    expect(faults).toEqual([])
  })

  test('a vendor key is ejected and restored', async () => {
    const { page, show, faults, gateway } = await open()
    await show('vendors')
    const row = page.getByRole('row').filter({ hasText: 'anthropic' })
    await row.getByRole('button', { name: 'Eject' }).click()
    await row.getByRole('button', { name: 'Eject' }).click()
    await row.getByText('operator').waitFor()
    const report = gateway.routes().vendors.find(({ vendor }) => vendor === 'anthropic')
    await row.getByRole('button', { name: 'Restore' }).click()
    await row.getByText('closed').waitFor()

    expect(report?.keys[0]).toMatchObject({ circuit: 'open', reason: 'operator' })
    expect(faults).toEqual([])
  })

  test('a webhook message that failed is sent again', async () => {
    const received: string[] = []
    const receiver = await listen((request, response) => {
      received.push(request.url ?? '')
      request.resume()
      response.writeHead(received.length === 1 ? 410 : 200).end()
    })
    const console = await open({ gateway: { taskPollIntervalMs: 20 } })
    const { page, show, faults, gateway } = console
    await gateway.webhooks.rotateSecret(TEST_ACCOUNT)
    const submitted = await console.post('/v1/videos/generations', {
      model: 'wv2.6-t2v',
      duration: 4,
      resolution: '720p',
      input: { prompt: 'a boat' },
      webhook_url: `${receiver.origin}/hook?token=canary`,
    })
    await console.taskEnded(String((await submitted.json()).task_id))
    await show('tasks?messages=disabled')
    await page.getByRole('table', { name: 'Webhook messages' }).getByText('disabled').waitFor()
    await show(`tasks/${TEST_ACCOUNT}`)
    await page.getByRole('button', { name: /^Messages about/ }).click()
    await page
      .getByRole('table', { name: /^Messages about/ })
      .getByText('disabled')
      .waitFor()
    await page.getByRole('button', { name: 'Send again' }).click()
    await page
      .getByRole('table', { name: /^Messages about/ })
      .getByText('delivered')
      .waitFor({ timeout: 20_000 })
    const content = await page.content()
    await receiver.close()

    expect(received).toHaveLength(2)
    expect(content).not.toContain('canary')
    expect(faults).toEqual([])
  })

  test('the playground streams an answer, and cancelling stops it', async () => {
    const console = await open()
    const { page, show, faults, sandbox } = console
    await show('playground')
    await page.getByLabel('Account that pays').selectOption(TEST_ACCOUNT)
    await page.getByLabel('Model').selectOption('cl-sonnet-4-6')
    await page.getByLabel('Message').fill('good morning')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('You said: good morning').waitFor()
    await page.getByRole('link', { name: /^req_/ }).waitFor()
    sandbox.fault({ kind: 'hang-body', events: 3, times: 1 })
    await page.getByLabel('Message').fill('a long tale')
    await page.getByRole('button', { name: 'Send' }).click()
    const ended = console.nextEnded()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Cancelled.').waitFor()

    expect((await ended).ending).toBe('abandoned')
    expect(faults).toEqual([])
  })

  test('texts of callers, models, operators and vendors stay texts in every view', async () => {
    const model = { id: `m ${XSS}`, kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4' } as const
    const row = { model: model.id, meter: 'input_token', amount: '1', per: 1_000_000 } as const
    const console = await open({
      gateway: {
        models: [model],
        prices: { currency: 'USD', prices: [row, { ...row, meter: 'output_token' }] },
      },
    })
    const { page, show, faults, gateway, sandbox } = console
    await gateway.accounts.create({ id: 'acct_x', name: XSS })
    await gateway.accounts.credit('acct_x', '5', { description: XSS })
    await gateway.accounts.freeze('acct_x', { reason: XSS.slice(0, 100) })
    await gateway.keys.create({ accountId: 'acct_x', label: XSS })
    const post = (text: string) =>
      console.post('/v1/chat/completions', chatBody(model.id, text, { user: XSS, max_tokens: 50 }), {
        'x-signalbox-tags': 'a,<b>',
      })
    await console.ended(await post(XSS))
    sandbox.fault({ kind: 'status', status: 400, times: 1 })
    await console.ended(await post('fail'))
    const id = (await gateway.usage.records()).records[0]!
    for (const view of [
      ...VIEWS,
      'accounts/acct_x',
      `requests/${id.id}?ended_at=${id.endedAtMs}`,
      `requests?model=${encodeURIComponent(model.id)}`,
      `accounts/${encodeURIComponent(XSS)}`,
      encodeURIComponent(XSS),
    ])
      await show(view)
    await show('playground')
    await page.getByLabel('Account that pays').selectOption(TEST_ACCOUNT)
    await page.getByLabel('Model').selectOption(model.id)
    await page.getByLabel('Message').fill(XSS)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('pre').getByText('<img src=x').waitFor()
    await show('models')
    await page.getByText(model.id, { exact: true }).first().waitFor()

    expect(await page.locator('img, script:not([src]), svg[onload], b').count()).toBe(0)
    expect(faults.filter((fault) => !fault.includes('status of 4'))).toEqual([])
  })

  test('another site can neither frame it nor change anything with the cookies of the operator', async () => {
    const console = await open({
      console: {
        operatorKeys: [{ name: 'ops', key: 'operator-key-0123456789abcdef' }],
        authorize: () => ({ name: 'alice', can: ['read', 'money'] }),
      },
    })
    const { page, address } = console
    const target = `${address}v1/accounts/${TEST_ACCOUNT}/credits`
    const evil = await listen((_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(`<iframe id=frame src="${address}"></iframe>
        <form id=form method=post enctype="text/plain" action="${target}"><input name='{"amount":"5","description":"' value='"}'></form>`)
    })
    await page.goto(evil.origin.replace('127.0.0.1', 'localhost'))
    await page.waitForLoadState('load')
    const framed = await page.frames().at(-1)?.locator('#app').count()
    const fetched = await page.evaluate(async (url) => {
      const headers = { 'content-type': 'application/json', 'x-signalbox-console': '1' }
      const body = '{"amount":"5"}'
      const tries = [{ headers }, { mode: 'no-cors' as const, headers: { 'content-type': 'text/plain' } }]
      return Promise.all(
        tries.map((options) =>
          fetch(url, { method: 'POST', body, credentials: 'include', ...options }).then(
            ({ type }) => type,
            () => 'refused',
          ),
        ),
      )
    }, target)
    await page.evaluate(() => (document.getElementById('form') as HTMLFormElement).submit())
    await page.waitForURL(target)
    const account = await console.account()
    await evil.close()

    expect(framed).toBe(0)
    expect(fetched).toEqual(['refused', 'opaque'])
    expect(account.balance).toBe(100_000_000_000n)
  })

  test('an operator who may only read is offered no change', async () => {
    const { page, show, faults } = await open({ console: { readOnly: true } })
    for (const view of VIEWS) {
      await show(view)
      const buttons = await page.locator('main').getByRole('button').allInnerTexts()
      expect(
        buttons.filter((text) => !/^(?:Show|Search|Table|CSV)/.test(text)),
        view,
      ).toEqual([])
    }
    expect(faults).toEqual([])
  })

  test.each(['light', 'dark'] as const)('every view passes the checks of axe, in %s', async (colorScheme) => {
    const console = await open({ colorScheme })
    const { page, show } = console
    console.sandbox.fault({ kind: 'status', status: 503, times: 1 })
    const id = await call(console, 'hello')
    const offences: string[] = []
    for (const view of [...VIEWS, `requests/${id}`]) {
      await show(view)
      await page.waitForLoadState('networkidle')
      // `evaluate` is not subject to the page's policy; the page itself could not load it.
      await page.evaluate(AXE)
      const found = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }
        return (await axe.run()).violations
          .filter(({ impact }) => impact === 'serious' || impact === 'critical')
          .map((violation) => `${violation.id}: ${violation.nodes.map(({ html }) => html).join(' ')}`)
      })
      offences.push(...found.map((offence) => `${view}: ${offence}`))
    }

    expect(offences).toEqual([])
  })

  test('is painted within a second by a processor that is four times slower', async () => {
    const { page } = await open()
    const session = await page.context().newCDPSession(page)
    await session.send('Emulation.setCPUThrottlingRate', { rate: 4 })
    const paintedMs: number[] = []
    // What else the machine does only adds to a time.
    while (paintedMs.length < 5 && !paintedMs.some((ms) => ms <= 1_000)) {
      await page.reload()
      await page.getByLabel('Operator key').waitFor()
      const first = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime
      paintedMs.push((await page.evaluate(first)) ?? Number.POSITIVE_INFINITY)
    }

    expect(Math.min(...paintedMs)).toBeLessThanOrEqual(1_000)
  })

  test('an address without a view leads back', async () => {
    const { page, show } = await open()
    await show('nowhere')
    await page.getByRole('link', { name: 'overview', exact: true }).click()

    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  })

  test.each([320, 1440])('at %d pixels nothing but tables is wider than the page', async (width) => {
    const console = await open({ viewport: { width, height: 800 } })
    const { page, show } = console
    const id = await call(console, 'hello')
    const wide: string[] = []
    for (const view of [...VIEWS, `requests/${id}`]) {
      await show(view)
      const excess = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      )
      if (excess > 0) wide.push(`${view}: ${excess}`)
    }

    expect(wide).toEqual([])
  })

  test('everything is reached by keyboard, and the theme is kept', async () => {
    const { page, show, faults } = await open()
    await show('overview')
    await page.reload()
    await page.getByLabel('Operator key').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.type('operator-key-0123456789abcdef')
    await page.keyboard.press('Enter')
    await page.getByRole('navigation', { name: 'Views' }).waitFor()
    const names: string[] = []
    for (let presses = 0; presses < 12; presses++) {
      await page.keyboard.press('Tab')
      names.push(await page.evaluate(() => document.activeElement?.textContent ?? ''))
      if (names.at(-1) === 'Accounts') break
    }
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Accounts' }).waitFor()
    await page.getByLabel('Theme').selectOption('dark')
    await page.reload()
    const theme = await page.evaluate(() => document.documentElement.dataset['theme'])

    expect(names[0]).toBe('Skip to content')
    expect(names).toContain('Accounts')
    expect(theme).toBe('dark')
    expect(faults).toEqual([])
  })
})

interface Violation {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string }[]
}
