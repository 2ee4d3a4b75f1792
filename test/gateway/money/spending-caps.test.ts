import { afterEach, expect, test } from 'vitest'
import { parseDollars } from '../../../src/core/money.ts'
import { chatBody, type StartedGateway, startGateway, TEST_ACCOUNT } from '../../support/start-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const CHAT = '/v1/chat/completions'

test('a key stops at its own spending cap with 402, and other keys of the account go on', async () => {
  started = await startGateway()
  const spendingCap = { amount: parseDollars('0.0001'), period: 'day' } as const
  const capped = await started.gateway.keys.create({ accountId: TEST_ACCOUNT, spendingCap })
  const free = await started.gateway.keys.create({ accountId: TEST_ACCOUNT })
  const ask = (key: string): Promise<Response> =>
    started.post(CHAT, chatBody('chat-relayed', 'hello', { max_tokens: 16 }), { authorization: `Bearer ${key}` })

  const first = await ask(capped.key)
  await first.text()
  await started.ended(first)
  const statuses: number[] = []
  for (let call = 0; call < 5; call++) statuses.push((await ask(capped.key)).status)
  const other = await ask(free.key)

  expect(first.status).toBe(200)
  expect(statuses.at(-1)).toBe(402)
  expect(other.status).toBe(200)
})

test('an account stops at its cap whatever the key, before anything is sent, and goes on when the cap is raised', async () => {
  started = await startGateway()
  await started.gateway.accounts.update(TEST_ACCOUNT, { spendingCap: { amount: 1n, period: 'month' } })
  const refused = await started.post(CHAT, chatBody('chat-relayed', 'hello'))
  const sent = started.sandbox.requests.length

  expect(refused.status).toBe(402)
  expect(await refused.json()).toEqual({
    error: {
      message: expect.stringMatching(
        /^This request needs \$0\.00\d+, available \$0\.000000001; .* raise the spending cap\.$/,
      ),
    },
  })
  expect(sent).toBe(0)
})

test('the estimate of tokens is the host’s to make', async () => {
  started = await startGateway({ estimateTokens: () => 1_000_000, limits: { tokensPerMinute: 2_000_000 } })
  const response = await started.post(
    CHAT,
    chatBody('chat-relayed', '[[fault:hang-body=3]] hello', { stream: true, max_tokens: 10 }),
  )
  const { held } = await started.account()
  await response.body?.cancel()

  expect(held).toBe(1_000_000n * 1000n + 10n * 4000n)
})
