import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { listen } from '../support/listen.ts'
import { TEST_ACCOUNT } from '../support/start-gateway.ts'
import { callThrough, consoleBrowser, VIEWS } from './support/console-browser.ts'
import { executablePath } from './support/open-console.ts'

// Without Chromium on the machine there is nothing to run it in.
describe.skipIf(executablePath === undefined)('changes by the console in a browser', { timeout: 60_000 }, () => {
  const open = consoleBrowser()

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

  test('a double click credits once, and what a form has done is said', async () => {
    const { page, show, faults, gateway } = await open()
    const before = (await gateway.accounts.get(TEST_ACCOUNT))?.balance ?? 0n
    await show(`accounts/${TEST_ACCOUNT}`)
    await page.getByText('Credit or correct').click()
    const form = page.getByRole('form', { name: 'Credit' })
    await form.getByLabel('Dollars').fill('10')
    // The second click of two comes when the first has been answered.
    const made = page.waitForResponse('**/credits')
    await form.getByRole('button').click()
    await made
    await form.getByRole('button', { name: 'Add credit' }).click()
    await form.getByRole('status').getByText('Done: $10.00.').waitFor()
    const fields = await form
      .getByRole('textbox')
      .evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value))
    const after = (await gateway.accounts.get(TEST_ACCOUNT))?.balance
    await gateway.accounts.credit(TEST_ACCOUNT, '1', { creditId: 'payment-1' })
    await form.getByLabel('Dollars').fill('1')
    await form.getByLabel(/^Payment id/).fill('payment-1')
    await form.getByRole('button').click()
    await form.getByRole('status').getByText('Nothing was changed').waitFor()
    // The focus stays for keyboard users.
    const focused = await page.evaluate(() => document.activeElement?.textContent)
    await page.getByText('New key').first().click()
    await page.getByRole('button', { name: 'Create key' }).dblclick({ delay: 50 })
    await page.getByRole('status').getByText('sk-').waitFor()

    expect(fields).toEqual(['', '', ''])
    expect(focused).toBe('Add credit')
    expect(after).toBe(before + 10_000_000_000n)
    expect(await gateway.keys.list(TEST_ACCOUNT)).toHaveLength(2)
    expect(faults).toEqual([])
  })

  test('the focus goes to the safe answer of a question and comes back, and into the form of limits', async () => {
    const { page, show, gateway } = await open()
    await gateway.keys.create({ accountId: TEST_ACCOUNT, label: 'shop' })
    await show(`accounts/${TEST_ACCOUNT}`)
    const row = page.getByRole('row', { name: 'shop' })
    const focused = () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.tagName)
    await row.getByRole('button', { name: 'Revoke' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('End this key for good?').waitFor()
    await expect.poll(focused).toBe('Keep')
    await page.keyboard.press('Enter')
    await expect.poll(focused).toBe('Revoke')
    await row.getByRole('button', { name: 'Limits' }).focus()
    await page.keyboard.press('Enter')
    const field = page.getByRole('form', { name: 'Limits' }).getByLabel('Requests per minute')
    await expect.poll(() => field.evaluate((one) => one === document.activeElement)).toBe(true)
  })

  test('the caps of an account and of a key are set, and what is used of them is shown', async () => {
    const console = await open()
    const { page, show, faults, gateway } = console
    await callThrough(console, 'hello')
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
    await callThrough(console, 'hello')
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

  test('the playground makes one call at a time, and takes any account where there are more than a list holds', async () => {
    const { page, show, gateway, events, sandbox } = await open()
    sandbox.fault({ kind: 'hang-body', events: 3, times: 1 })
    for (let number = 0; number < 1_000; number++) await gateway.accounts.create({ id: `a_${number}` })
    await show('playground')
    const form = page.getByRole('form', { name: 'Playground' })
    await form.getByLabel(/^Account that pays/).fill(TEST_ACCOUNT)
    await form.getByLabel('Model').selectOption('cl-sonnet-4-6')
    await form.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('button', { name: 'Cancel' }).waitFor()
    const isOpen = await form.getByRole('button').isEnabled()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Cancelled.').waitFor()

    expect(isOpen).toBe(false)
    expect(events.filter(({ type }) => type === 'request-started')).toMatchObject([{ accountId: TEST_ACCOUNT }])
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
})
