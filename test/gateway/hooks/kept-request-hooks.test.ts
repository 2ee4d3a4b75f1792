import { describe, expect, test } from 'vitest'
import type { AnyHook, HookCall, RequestResult } from '../../../src/hooks/hook.ts'
import { redact } from '../../../src/hooks/redact.ts'
import { pii } from '../../../src/hooks/redaction-rules.ts'
import { startGateway } from '../../support/start-gateway.ts'
import { closedAfterEach, type HookedGateway } from './hooked-gateway.ts'

const SECRET = 'jane.doe@example.com'
const ITEMS = [{ type: 'message', role: 'user', content: `Write to ${SECRET}` }]

const start = closedAfterEach()

/** Adds items in both ways, and gives the answers. */
async function added(gateway: HookedGateway): Promise<{ status: number; body: Record<string, never> }[]> {
  const made = await gateway.post('/v1/conversations', { items: ITEMS })
  const { id } = (await (await gateway.post('/v1/conversations', {})).json()) as { id: string }
  const more = await gateway.post(`/v1/conversations/${id}/items`, { items: ITEMS })
  return Promise.all([made, more].map(async (answer) => ({ status: answer.status, body: await answer.json() })))
}

/** A hook for the items, which has this to say. */
function saying(
  said: (call: HookCall<'responses'>) => RequestResult | undefined,
  rest: Partial<AnyHook> = {},
): AnyHook {
  return { name: 'items', endpoints: ['responses'], request: said, ...rest }
}

describe('items that a caller adds to a conversation', () => {
  test('pass the request hooks, so that no vendor and no later reader gets what these take out', async () => {
    const seen: unknown[] = []
    const watch = saying(({ endpoint, model, isStream, texts }) => {
      seen.push([endpoint, model, isStream])
      return void texts
    })
    const gateway = await startGateway({ hooks: [watch, redact([pii.email])] })
    const conversation = (await (await gateway.post('/v1/conversations', { items: ITEMS })).json()) as { id: string }
    const path = `/v1/conversations/${conversation.id}/items`
    const more = await (await gateway.post(path, { items: ITEMS })).text()
    const answer = await gateway.post('/v1/responses', {
      model: 'chat-relayed',
      input: 'Well?',
      conversation: conversation.id,
    })

    expect(answer.status, await answer.text()).toBe(200)
    expect(seen.slice(0, 2)).toEqual([
      ['responses', '', false],
      ['responses', '', false],
    ])
    expect(more).toContain('Write to [EMAIL]')
    const sent = JSON.stringify(gateway.sandbox.requests)
    await gateway.close()
    expect(sent.match(/\[EMAIL\]/g)).toHaveLength(2)
    expect(sent).not.toContain(SECRET)
  })

  test.each<[string, RequestResult, object]>([
    ['denies them', { deny: { status: 403, code: 'private' } }, { status: 403, code: 'private' }],
    ['would answer them itself', { answer: { text: 'No.' } }, { status: 400, code: 'request_denied' }],
  ])('are refused where a hook %s', async (_what, said, { status, code }: { status?: number; code?: string }) => {
    const gateway = await start([saying(() => said)])

    for (const { status: got, body } of await added(gateway))
      expect([got, body]).toEqual([status, { error: expect.objectContaining({ code }) }])
    expect(gateway.eventsOf('hook-denied')).toHaveLength(2)
  })

  test('are refused where a hook fails, unless it says otherwise', async () => {
    const fails = (): never => {
      throw new Error('broken')
    }
    const closed = await start([saying(fails)])
    expect((await added(closed)).map(({ status }) => status)).toEqual([503, 503])
    await closed.close()
    const open = await start([saying(fails, { onFailure: 'allow' })])
    expect((await added(open)).map(({ status }) => status)).toEqual([200, 200])
    expect(open.eventsOf('hook-bypassed')).toHaveLength(2)
  })

  test('are not kept where a hook charges, for nothing is held yet', async () => {
    const gateway = await start([saying((call) => void call.charge('hook_unit', 1))])

    for (const { status, body } of await added(gateway))
      expect([status, body]).toEqual([400, { error: expect.objectContaining({ code: 'invalid_request' }) }])
  })

  test('may be others afterwards, which are checked like those of a caller', async () => {
    const texts = ['Written by a hook.', 7]
    const gateway = await start([saying(({ body }) => ({ body: { ...body, input: texts[0] } }))])
    expect(JSON.stringify(await added(gateway))).toContain('Written by a hook.')
    await gateway.close()
    const other = await start([saying(({ body }) => ({ body: { ...body, input: [texts[1]] } }))])

    expect((await added(other)).map(({ status }) => status)).toEqual([400, 400])
  })
})
