import { afterEach, describe, expect, test } from 'vitest'
import type { AnyHook } from '../../../src/hooks/hook.ts'
import { chatBody } from '../../support/start-gateway.ts'
import { completion, type HookedGateway, hookedGateway, spoken } from './hooked-gateway.ts'

const CHAT = '/v1/chat/completions'

const FAULTS: Record<string, () => unknown> = {
  throws: () => {
    throw new Error('the secret of the hook')
  },
  rejects: () => Promise.reject(new Error('the secret of the hook')),
  hangs: () => new Promise(() => undefined),
  'returns a text': () => 'the secret of the hook',
  'returns an unknown member': () => ({ replaced: 'x' }),
  'returns a text that is not there': () => ({ texts: new Map([['choices[7].message.content', 'x']]) }),
}

let gateway: HookedGateway | undefined

afterEach(async () => {
  await gateway?.close()
  gateway = undefined
})

describe.each([false, true])('an answer (streamed: %s)', (stream) => {
  const script = stream ? spoken(['Hel', 'lo.']) : completion('Hello.')

  test.each(Object.entries(FAULTS))('gets 503, costs nothing and ends its hold if a hook %s', async (_name, answer) => {
    gateway = await hookedGateway([{ name: 'bad', timeoutMs: 20, answer: answer as AnyHook['answer'] & {} }], script)
    const before = await gateway.account()
    const response = await gateway.post(CHAT, chatBody('chat-relayed', 'hi', { stream }))
    const text = await response.text()
    const event = await gateway.ended(response)

    expect([response.status, JSON.parse(text).error.code, event.code]).toEqual([503, 'hook_failed', 'hook_failed'])
    expect(text).not.toContain('secret')
    expect(await gateway.account()).toEqual(before)
    expect([gateway.eventsOf('internal-error').length, gateway.eventsOf('request-ended').length]).toEqual([1, 1])
  })

  test.each(Object.entries(FAULTS))('passes a hook that %s if the host allows it', async (_name, answer) => {
    const bad: AnyHook = { name: 'bad', timeoutMs: 20, onFailure: 'allow', answer: answer as AnyHook['answer'] & {} }
    gateway = await hookedGateway([bad], script)
    const before = await gateway.account()
    const response = await gateway.post(CHAT, chatBody('chat-relayed', 'hi', { stream }))
    const text = await response.text()
    const { costNanoDollars } = await gateway.ended(response)

    expect(response.status).toBe(200)
    expect(stream ? text : JSON.parse(text).choices[0].message.content).toContain('lo.')
    expect(await gateway.account()).toEqual({ balance: before.balance - costNanoDollars, held: 0n })
    expect(costNanoDollars).toBe(27_000n)
    expect(gateway.eventsOf('hook-bypassed')).toMatchObject([{ hook: 'bad', point: 'answer' }])
  })
})

describe('a whole answer of more than a mebibyte of text', () => {
  const text = 'x'.repeat(1024 * 1024 + 1)

  test.each(['answer', 'text'] as const)(
    'fails with 503 and without a charge before a hook with `%s` is called',
    async (point) => {
      let calls = 0
      const called = (): undefined => {
        calls += 1
      }
      const hook: AnyHook =
        point === 'answer' ? { name: 'all', answer: called } : { name: 'all', text: { holdBack: 'all', check: called } }
      gateway = await hookedGateway([hook], completion(text))
      const before = await gateway.account()
      const response = await gateway.post(CHAT, chatBody('chat-relayed', 'hi'))
      await response.text()
      await gateway.ended(response)

      expect([response.status, calls]).toEqual([503, 0])
      expect(await gateway.account()).toEqual(before)
    },
  )

  test("passes where the hook says `onFailure: 'allow'`, with an event that names the reason", async () => {
    gateway = await hookedGateway([{ name: 'all', onFailure: 'allow', answer: () => undefined }], completion(text))
    const response = await gateway.post(CHAT, chatBody('chat-relayed', 'hi'))
    const answer = JSON.parse(await response.text())

    expect(answer.choices[0].message.content).toHaveLength(text.length)
    expect(gateway.eventsOf('hook-bypassed')).toMatchObject([{ hook: 'all', point: 'answer', reason: 'too-large' }])
  })
})
