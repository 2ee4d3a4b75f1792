import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { listen } from '../support/listen.ts'
import { chatBody, TEST_ACCOUNT } from '../support/start-gateway.ts'
import { callThrough, consoleBrowser, VIEWS } from './support/console-browser.ts'
import { executablePath } from './support/open-console.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const XSS = '<img src=x onerror=alert(1)><script>alert(2)</script>"><svg onload=alert(3)>'

// Without Chromium on the machine there is nothing to run it in.
describe.skipIf(executablePath === undefined)('the page of the console in a browser', { timeout: 60_000 }, () => {
  const open = consoleBrowser()

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

  test.each([
    ['light', 1280],
    ['dark', 320],
  ] as const)('every view passes the checks of axe, in %s and %d pixels wide', async (colorScheme, width) => {
    const console = await open({ colorScheme, viewport: { width, height: 900 } })
    const { page, show } = console
    console.sandbox.fault({ kind: 'status', status: 503, times: 1 })
    const id = await callThrough(console, 'hello')
    const offences: string[] = []
    for (const view of [...VIEWS, `requests/${id}`]) {
      await show(view)
      await page.waitForLoadState('networkidle')
      // `evaluate` is not subject to the page's policy; the page itself could not load it.
      await page.evaluate(AXE)
      const found = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }
        return (await axe.run()).violations.map(
          (violation) => `${violation.id}: ${violation.nodes.map(({ html }) => html).join(' ')}`,
        )
      })
      offences.push(...found.map((offence) => `${view}: ${offence}`))
    }

    expect(offences).toEqual([])
  })

  test('an address without a view leads back', async () => {
    const { page, show } = await open()
    await show('nowhere')
    await page.getByRole('link', { name: 'overview', exact: true }).click()

    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  })

  test.each([320, 1440])('shows nothing but tables wider than the page at %d pixels', async (width) => {
    const console = await open({ viewport: { width, height: 800 } })
    const { page, show } = console
    const id = await callThrough(console, 'hello')
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
