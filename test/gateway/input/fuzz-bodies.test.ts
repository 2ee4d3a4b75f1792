import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { oddBodies, rawJson } from '../../endpoints/fuzz-bodies.ts'
import {
  chatBodies,
  countBodies,
  editBodies,
  generationBodies,
  inputTokenBodies,
  interactionBodies,
  messageBodies,
  multimodalBodies,
  responseBodies,
  speechBodies,
  videoBodies,
} from '../../endpoints/fuzz-proper-bodies.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../../support/start-gateway.ts'
import { SPEECH_PRICES } from '../audio/speech-gateway.ts'

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({
    prices: SPEECH_PRICES,
    allowPrivateUrls: false,
    webhookSecret: `whsec_${btoa('s'.repeat(32))}`,
  })
  await started.gateway.accounts.credit('acct_test', '1000000')
})
afterAll(() => started.close())

function send(
  path: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const usual = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
  return started.gateway.fetch(
    new Request(`http://gateway.test${path}`, { method: 'POST', headers: { ...usual, ...headers }, body }),
  )
}

/** An answer, or a refusal that names no key and repeats no megabytes. */
async function expectAnswered(answer: Response): Promise<void> {
  const text = await answer.text()
  expect(answer.status, text.slice(0, 300)).toBeLessThan(500)
  expect(text).not.toContain('vendor-key-canary')
  if (answer.status >= 400) expect(text.length).toBeLessThan(20_000)
}

describe('an object that cannot be converted to text, in place of a text, is answered or gets a 4xx', () => {
  const odd = { toString: 1 }
  const messages = [{ role: 'user', content: 'hi' }]
  const advisor = { type: 'advisor_20260301', name: 'advisor', model: odd }
  const grammar = { type: 'grammar', syntax: odd, definition: odd }

  test.each([
    ['/v1/messages', { messages, max_tokens: 9, context_management: { edits: [{ type: odd }] } }],
    ['/v1/messages', { messages, max_tokens: 9, tools: [advisor] }],
    ['/v1/responses', { input: 'hi', tools: [{ type: 'custom', name: 'patch', format: grammar }] }],
  ])('%s %j', async (path, body) => {
    await expectAnswered(await send(path, JSON.stringify({ model: 'cl-sonnet-4-6', ...body })))
  })
})

describe.each([
  ['/v1/images/generations', multimodalBodies],
  ['/v1/images/generations', interactionBodies],
  ['/v1/images/generations', generationBodies],
  ['/v1/images/edits', editBodies],
  ['/v1/chat/completions', chatBodies],
  ['/v1/messages', messageBodies],
  ['/v1/messages/count_tokens', countBodies],
  ['/v1/responses', responseBodies],
  ['/v1/responses/input_tokens', inputTokenBodies],
  ['/v1/audio/speech', speechBodies],
  ['/v1/videos/generations', videoBodies],
] as const)('%s', (path, bodies) => {
  test('an odd body is answered, or refused with a 4xx', async () => {
    const property = fc.asyncProperty(oddBodies(bodies), async (body) => {
      await expectAnswered(await send(path, rawJson(body)))
    })
    await fc.assert(property, { numRuns: 250 })

    // Tasks that are still being rendered hold their money.
    if (path !== '/v1/videos/generations') await vi.waitFor(async () => expect((await started.account()).held).toBe(0n))
  }, 60_000)

  test('a body in another encoding, or cut, or with odd bytes in it, is refused with 400', async () => {
    const json = JSON.stringify(bodies[0])
    const utf8 = Buffer.from(json)
    const odd = [
      Buffer.from(json, 'utf16le'),
      Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(json, 'utf16le')]),
      utf8.subarray(0, utf8.length - 1),
      Buffer.concat([utf8, Buffer.from([0])]),
      Buffer.concat([utf8, utf8]),
      Buffer.concat([utf8.subarray(0, 20), Buffer.from([0xed, 0xa0, 0x80]), utf8.subarray(20)]),
      Buffer.alloc(0),
    ]
    for (const bytes of odd) {
      const answer = await send(path, new Uint8Array(bytes))
      await answer.arrayBuffer()
      expect(answer.status).toBe(400)
    }
  })

  test('a byte order mark is passed over, and does not reach the vendor', async () => {
    const answer = await send(path, `\uFEFF${JSON.stringify(bodies[0])}`)
    const text = await answer.text()
    const { bytes } = started.sandbox.requests.at(-1)!

    expect(answer.status, text).toBeLessThan(300)
    expect(Buffer.from(bytes).toString('latin1', 0, 1)).toBe('{')
  })
})
