import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import { fakeClock, type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { IMAGES, interaction } from '../gateway/images/image-requests.ts'
import { temporaryPaths } from '../stores/sqlite/support/temporary-folder.ts'
import { type StartedGateway, startGateway, TEST_ACCOUNT, TEST_KEY } from '../support/start-gateway.ts'

const DAY_MS = 24 * 60 * 60_000
const OTHER_KEY = 'sk-other-0123456789'
const newPath = temporaryPaths()

let started: StartedGateway

afterEach(() => started.close())

async function begin(members: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const answer = await started.post(IMAGES, interaction('a mug', members))
  expect(answer.status).toBe(200)
  const [, id = ''] = /"id": ?"(v1_[^"]+)"/.exec(await answer.text()) ?? []
  expect(id).toMatch(/^v1_/)
  return id
}

function resume(id: string, headers: Record<string, string> = {}): Promise<Response> {
  return started.post(IMAGES, interaction('make it green', { previous_interaction_id: id }), headers)
}

describe('how long an answer can be continued', () => {
  test.each([
    ['paid', 55],
    ['free', 1],
  ] as const)('on the tier %s it is %i days to the millisecond', async (tier, days) => {
    const clock = fakeClock()
    started = await startGateway({ clock, keys: [{ key: TEST_KEY, account: TEST_ACCOUNT, tier }] })
    const id = await begin()

    clock.advance(days * DAY_MS - 1)
    const before = await resume(id)
    clock.advance(1)
    const after = await resume(id)
    const unknown = await resume('v1_nobody')

    expect([before.status, after.status, unknown.status]).toEqual([200, 404, 404])
    expect(await after.text()).toBe(await unknown.text())
  })

  test('each answer counts from its own time', async () => {
    const clock = fakeClock()
    started = await startGateway({ clock, keys: [{ key: TEST_KEY, account: TEST_ACCOUNT, tier: 'free' }] })
    const first = await begin()
    clock.advance(DAY_MS - 1)
    const second = ((await (await resume(first)).json()) as { id: string }).id
    clock.advance(DAY_MS - 1)

    expect((await resume(first)).status).toBe(404)
    expect((await resume(second)).status).toBe(200)
  })
})

describe('a conversation goes on at the vendor key that began it', () => {
  const KEYS = ['vendor-key-a', 'vendor-key-b']
  let sandbox: Sandbox

  beforeEach(() => {
    sandbox = sandboxVendors()
  })
  afterEach(() => sandbox.close())

  /** A gateway with these keys, in a process that has just begun. */
  async function startWith(apiKey: readonly string[], path: string): Promise<void> {
    const vendors = [gemini({ apiKey })]
    started = await startGateway({ vendors, transport: sandbox.transport(), store: sqliteStore({ path }) })
  }
  const keysUsed = (): unknown[] => sandbox.requests.map(({ headers }) => headers['x-goog-api-key'])

  test('after a restart with the keys in another order', async () => {
    const path = newPath()
    await startWith(KEYS, path)
    const id = await begin()
    await started.close()
    await startWith([...KEYS].reverse(), path)

    const next = await resume(id)
    await begin()

    expect(next.status).toBe(200)
    expect(keysUsed()).toEqual(['vendor-key-a', 'vendor-key-a', 'vendor-key-b'])
    expect(sandbox.requests[1]?.body).toMatchObject({ previous_interaction_id: id })
  })

  test('reads as unknown once that key is no longer configured; nothing is sent or charged', async () => {
    const path = newPath()
    await startWith(KEYS, path)
    const id = await begin({ stream: true })
    await started.close()
    await startWith(['vendor-key-b'], path)
    const before = await started.account()

    const gone = await resume(id)
    const unknown = await resume('v1_nobody')

    expect([gone.status, unknown.status]).toEqual([404, 404])
    expect(await gone.text()).toBe(await unknown.text())
    expect(sandbox.requests).toHaveLength(1)
    expect(await started.account()).toEqual(before)
  })
})

describe('the answers of one account do not exist for another', () => {
  const AS_OTHER = { authorization: `Bearer ${OTHER_KEY}` }

  test.each([
    ['whole', {}],
    ['streamed', { stream: true }],
  ])(
    'answers a %s one with 404 and the bytes of an unknown id, in whole and streamed requests',
    async (_name, members) => {
      started = await startGateway({
        keys: [
          { key: TEST_KEY, account: TEST_ACCOUNT },
          { key: OTHER_KEY, account: 'acct_other' },
        ],
      })
      await started.gateway.accounts.credit('acct_other', '5')
      const id = await begin(members)
      const ask = async (previous: string, stream: boolean): Promise<readonly [number, string]> => {
        const answer = await started.post(
          IMAGES,
          interaction('x', { previous_interaction_id: previous, stream }),
          AS_OTHER,
        )
        return [answer.status, await answer.text()]
      }

      for (const stream of [false, true]) {
        const [status, text] = await ask(id, stream)
        expect(status).toBe(404)
        expect([status, text]).toEqual(await ask('v1_nobody', stream))
      }
      expect((await resume(id)).status).toBe(200)
      expect(started.sandbox.requests).toHaveLength(2)
      expect((await started.gateway.accounts.get('acct_other'))?.balance).toBe(5_000_000_000n)
    },
  )

  test.each(['../../etc/passwd', 'v1_\u0000', `v1_${'x'.repeat(10_000)}`, '__proto__', 'constructor'])(
    'answers an id such as %j with 404 without a call',
    async (id) => {
      started = await startGateway()

      const answer = await resume(id)

      expect(answer.status).toBe(404)
      expect((await answer.json()).error.code).toBe('interaction_not_found')
      expect(started.sandbox.requests).toEqual([])
    },
  )
})
