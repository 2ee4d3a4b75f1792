import { afterEach, expect, test, vi } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { type StartedAdmin, startAdmin } from './support/start-admin.ts'

let admin: StartedAdmin | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await admin?.close()
  admin = undefined
})

async function startLogged() {
  const store = memoryStore()
  const clock = fakeClock()
  const lines: { readonly text: string; readonly fields: unknown }[] = []
  const add = (text: string, fields?: unknown): void => void lines.push({ text, fields })
  const logger = { debug: () => undefined, info: add, warn: add, error: add }
  admin = await startAdmin({ store, clock, logger }, { clock, logger })
  lines.length = 0
  return { store, clock, lines, admin }
}

const down = () => Promise.reject(new Error('connect ECONNREFUSED'))
const texts = (lines: readonly { readonly text: string }[]): string[] => lines.map(({ text }) => text)

test('logs one line at the begin and one at the end of an outage, with the failed requests of the admin API', async () => {
  const { store, clock, lines, admin } = await startLogged()
  const spies = [vi.spyOn(store.ledger, 'account'), vi.spyOn(store.ledger, 'listAccounts')]
  for (const spy of spies) spy.mockImplementation(down)

  for (let count = 0; count < 20; count++) expect((await admin.ask('GET', '/accounts')).status).toBe(503)
  for (const spy of spies) spy.mockRestore()
  clock.advance(1_000)

  await expect
    .poll(() => lines)
    .toMatchObject([
      { text: 'the store does not answer' },
      { text: 'the store answers again', fields: { failedRequests: 20, otherFaults: 0 } },
    ])
  expect((await admin.ask('GET', '/accounts')).status).toBe(200)
})

test('logs each failed request of the admin API as its own line while the store answers', async () => {
  const { store, lines, admin } = await startLogged()
  vi.spyOn(store.ledger, 'listAccounts').mockImplementation(down)

  await Promise.all([admin.ask('GET', '/accounts'), admin.ask('GET', '/accounts')])

  await expect.poll(() => texts(lines)).toEqual(Array(2).fill('a request failed inside the admin API'))
})

test('counts a change that was made and could not be added to the audit as a fault of the outage', async () => {
  const { store, clock, lines, admin } = await startLogged()
  const spies = [vi.spyOn(store.ledger, 'account'), vi.spyOn(store.audit!, 'add')]
  spies[1]!.mockImplementation(down)
  const made = await admin.ask('POST', '/accounts', { id: 'acct_new' })
  await expect.poll(() => texts(lines)).toContain('a change by an operator could not be added to the audit')
  lines.length = 0

  spies[0]!.mockImplementation(down)
  await admin.ask('POST', '/accounts', { id: 'acct_other' })
  await expect.poll(() => texts(lines)).toContain('the store does not answer')
  for (const spy of spies) spy.mockRestore()
  clock.advance(1_000)

  expect(made.status).toBe(200)
  await expect.poll(() => texts(lines)).toContain('the store answers again')
  expect(texts(lines)).not.toContain('a change by an operator could not be added to the audit')
})
