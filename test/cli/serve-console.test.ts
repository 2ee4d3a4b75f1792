import { isDeepStrictEqual } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { type RunningServer, serve } from '../../src/cli/serve-command.ts'

/** Letters and digits, which a double click takes. */
const OPERATOR = /^operator {2}([0-9a-f]{36}) {3}\(made for this run\)$/m

let running: RunningServer | undefined
afterEach(() => running?.close())

async function start(environment: Record<string, string>, options = {}): Promise<string[]> {
  const lines: string[] = []
  running = await serve({
    environment: { PORT: '0', ...environment },
    useStandIns: true,
    serveConsole: true,
    print: (line) => void lines.push(line),
    version: '0.0.0',
    ...options,
  })
  return lines
}

const ask = async (path: string, key: string) =>
  (await fetch(`${running?.url}${path}`, { headers: { authorization: `Bearer ${key}` } })).json()

async function atLeastOne(path: string, key: string): Promise<{ data: unknown[] }> {
  for (;;) {
    const page = await ask(path, key)
    if (page.data.length > 0) return page
  }
}

test('npm start prints the address of the console with its key, and there is something to look at', async () => {
  const logged: string[] = []
  const log = (line: string) => void logged.push(line)
  const logger = { debug: log, info: log, warn: log, error: log }
  const lines = await start({}, { showExamples: true, logger })
  const text = lines.join('\n')
  const [, address = ''] =
    /^console {3}(\S+) {3}open it in a browser, and enter the operator key below$/m.exec(text) ?? []
  const [, key = ''] = OPERATOR.exec(text) ?? []
  const page = await fetch(address)
  // Calls that were not charged are written down a second later.
  const failed = await atLeastOne('/admin/v1/requests?ending=failed', key)
  const left = await atLeastOne('/admin/v1/requests?ending=abandoned', key)
  const tasks = await ask('/admin/v1/accounts/acct_shop/tasks', key)
  const usage = await ask('/admin/v1/usage?group_by=account', key)
  const prices = await ask('/admin/v1/prices', key)
  const shop = await ask('/admin/v1/accounts/acct_shop/spending', key)

  // The first line explains that the failed calls are intended.
  const calls = logged.filter((line) => !line.includes('the catalog of models'))
  expect(calls.findIndex((line) => line.includes('fail on purpose'))).toBe(0)
  expect(logged).toContain('a vendor call failed')
  expect(lines.find((text) => text.startsWith('billing'))).toContain('on, by example prices')
  expect(text).toMatch(/^examples {2}calls of two accounts: /m)
  expect(shop).toMatchObject({
    spending_cap: { amount: '40' },
    keys: [{ label: 'web site', left: expect.any(String) }],
  })
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('<title>Signalbox console</title>')
  expect(usage.data.map((row: { account: string }) => row.account)).toEqual(['acct_school', 'acct_shop'])
  expect(Number(usage.data[1].charged)).toBeGreaterThan(0)
  // The batch and the video may end between the two.
  await expect
    .poll(async () => {
      const [one, other] = [
        await ask('/console/v1/usage?group_by=account', key),
        await ask('/admin/v1/usage?group_by=account', key),
      ]
      return isDeepStrictEqual(one.data, other.data)
    })
    .toBe(true)
  expect(failed.data).toHaveLength(1)
  expect(left.data).toHaveLength(1)
  expect(tasks.data.map(({ endpoint }: { endpoint: string }) => endpoint).sort()).toEqual(['batches', 'videos'])
  expect(prices.billing).toBe('on')
})

test('every model that a stand-in answers has a price in the examples', async () => {
  const lines = await start({}, { showExamples: true })
  const [, key = ''] = OPERATOR.exec(lines.join('\n')) ?? []
  const models = (await ask('/admin/v1/models', key)).data as { id: string; available: boolean; kinds: string[] }[]
  const prices = (await ask('/admin/v1/prices', key)).data as { model: string }[]
  const priced = new Set(prices.map(({ model }) => model))
  const missing = models.filter(({ id, available, kinds }) => available && !priced.has(id) && kinds[0] !== 'moderation')

  expect(missing.map(({ id }) => id)).toEqual([])
})

test('a given key opens it and stays out of what is printed; the gateway is as before', async () => {
  const key = 'operator-key-0123456789abcdef'
  const lines = await start({ SIGNALBOX_OPERATOR_KEY: key })
  const text = lines.join('\n')
  const [, callerKey = ''] = /^key +(\S+)/m.exec(text) ?? []

  expect(text).toContain('/console/   open it in a browser, and enter SIGNALBOX_OPERATOR_KEY')
  expect(text).not.toContain(key)
  expect(await ask('/admin/v1/session', key)).toMatchObject({ operator: 'operator', read_only: false })
  expect((await ask('/v1/account', callerKey)).object).toBe('account')
  expect((await fetch(`${running?.url}/admin/v1/session`)).status).toBe(401)
})

test('without stand-ins the console needs a key, and examples are refused', async () => {
  await expect(start({ SIGNALBOX_STORE: 'memory:' }, { useStandIns: false })).rejects.toThrow(/SIGNALBOX_OPERATOR_KEY/)
  await expect(
    start(
      { SIGNALBOX_STORE: 'memory:', SIGNALBOX_OPERATOR_KEY: 'operator-key-0123456789abcdef' },
      { useStandIns: false, showExamples: true },
    ),
  ).rejects.toThrow(/--sandbox/)
})

test('without --console there is neither page nor admin API', async () => {
  await start({ SIGNALBOX_OPERATOR_KEY: 'operator-key-0123456789abcdef' }, { serveConsole: false })

  expect((await fetch(`${running?.url}/console/`)).status).toBe(404)
  expect((await fetch(`${running?.url}/admin/v1/session`)).status).toBe(404)
})

test('serves metrics at /metrics with an operator key, only for the operator', async () => {
  const key = 'operator-key-0123456789abcdef'
  await start({ SIGNALBOX_OPERATOR_KEY: key }, { serveConsole: false })
  const unknown = await fetch(`${running?.url}/v1/chat/completions`, { method: 'POST' })
  const closed = await fetch(`${running?.url}/metrics`)
  const open = await fetch(`${running?.url}/metrics`, { headers: { authorization: `Bearer ${key}` } })

  expect([unknown.status, closed.status, open.status]).toEqual([401, 401, 200])
  expect(await open.text()).toMatch(/^signalbox_refusals_total\{endpoint="chat",code="\w+"\} 1$/m)
})

test('wrong operator keys of one client behind a proxy are limited over all doors, and no right key is', async () => {
  const key = 'operator-key-0123456789abcdef'
  await start({ SIGNALBOX_OPERATOR_KEY: key, SIGNALBOX_TRUST_PROXY: '127.0.0.1,::1' })
  const statusOf = async (path: string, token: string, client: string) => {
    const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': client }
    const response = await fetch(`${running?.url}${path}`, { headers })
    await response.arrayBuffer()
    return response.status
  }
  const doors = ['/admin/v1/session', '/readyz?verbose', '/metrics']
  const statusesOf = (token: string, client: string) => Promise.all(doors.map((door) => statusOf(door, token, client)))
  const first = await statusesOf('wrong', '198.51.100.7')
  const second = [
    await statusOf('/readyz?verbose', 'wrong', '198.51.100.7'),
    await statusOf('/metrics', 'w', '198.51.100.7'),
  ]

  expect([...first, ...second]).toEqual([401, 401, 401, 401, 401])
  expect(await statusesOf('wrong', '198.51.100.7')).toEqual([429, 429, 429])
  expect(await statusesOf(key, '198.51.100.7')).toEqual([200, 200, 200])
  expect(await statusesOf('wrong', '198.51.100.8')).toEqual([401, 401, 401])
})

test('does not start with a trusted proxy that is not an address', async () => {
  await expect(start({ SIGNALBOX_TRUST_PROXY: 'loopback' })).rejects.toThrow(
    'SIGNALBOX_TRUST_PROXY: "loopback" is neither an IP address nor a block such as 10.0.0.0/8',
  )
})

test('without an operator key there are no metrics', async () => {
  await start({}, { serveConsole: false })

  expect((await fetch(`${running?.url}/metrics`)).status).toBe(404)
})
