import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { oddBodies, rawJson } from '../endpoints/fuzz-bodies.ts'
import { responseBodies } from '../endpoints/fuzz-proper-bodies.ts'
import { checkGrammar, responseEvents } from '../endpoints/responses/response-events.ts'
import { type StartedGateway, startGateway, TEST_KEY } from '../support/start-gateway.ts'

const isLong = process.env['DRILL'] === 'long'
const BODIES = isLong ? 100_000 : 3_000
const MODELS = ['chat-relayed', 'cl-sonnet-4-6', 'gmn-2.5-flash', 'chat-qwen']

let started: StartedGateway

beforeAll(async () => {
  started = await startGateway({ allowPrivateUrls: false, disconnect: 'cancel' })
  await started.gateway.accounts.credit('acct_test', '1000000')
})
afterAll(() => started.close())

const codingClient = ['unknown-model', 'custom-tools', 'tools-in-input'].map(
  (name) =>
    JSON.parse(
      readFileSync(new URL(`../gateway/responses/fixtures/coding-client/${name}.json`, import.meta.url), 'utf8'),
    ) as Record<string, unknown>,
)

/** Requests of every shape, for one vendor: all fields, a follow-up, references, and what a coding client sends. */
async function properBodies(model: string): Promise<Record<string, unknown>[]> {
  const first = await started.post('/v1/responses', { model, input: 'hi' })
  const { id, output } = (await first.json()) as { id: string; output: { id: string }[] }
  const reference = { type: 'item_reference', id: output.at(-1)!.id }
  return [
    ...responseBodies,
    { input: [reference, { role: 'user', content: 'go on' }], store: true },
    { input: 'go on', previous_response_id: id, conversation: null },
    { input: [{ role: 'user', content: 'go on' }], previous_response_id: id, stream: true, metadata: { a: 'b' } },
    ...codingClient,
  ].map((body) => ({ ...body, model }))
}

const ENDS = /^event: response\.(?:completed|incomplete|failed)$/gm

async function expectAnswered(json: string): Promise<number> {
  const answer = await started.gateway.fetch(
    new Request('http://gateway.test/v1/responses', {
      method: 'POST',
      headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
      body: json,
    }),
  )
  const text = await answer.text()
  expect(answer.status, text.slice(0, 300)).toBeLessThan(500)
  expect(text).not.toContain('vendor-key-canary')
  if (answer.headers.get('content-type')?.startsWith('text/event-stream') === true) {
    expect(text.match(ENDS)).toHaveLength(1)
    checkGrammar(responseEvents(text))
  } else if (answer.status >= 400) {
    const { error } = JSON.parse(text) as { error: { message: unknown; type: unknown; param: unknown } }
    expect([typeof error.message, typeof error.type]).toEqual(['string', 'string'])
    expect(text.length).toBeLessThan(20_000)
  }
  return answer.status
}

test(`${BODIES} mutated requests for a response are answered or refused, none by a fault, and no money stays held`, async () => {
  const statuses = new Map<number, number>()
  const proper = (await Promise.all(MODELS.map(properBodies))).flat()
  const property = fc.asyncProperty(oddBodies(proper), async (body) => {
    const status = await expectAnswered(rawJson(body))
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  })
  await fc.assert(property, { numRuns: BODIES })

  // Both happen often: mutants that are all refused would prove little.
  expect(statuses.get(200)).toBeGreaterThan(BODIES / 10)
  expect(statuses.get(400)).toBeGreaterThan(BODIES / 10)
  expect(started.events.filter(({ type }) => type === 'internal-error')).toEqual([])
  await vi.waitFor(async () => expect((await started.account()).held).toBe(0n), { timeout: 20_000 })
  console.log(`statuses: ${[...statuses].map(([status, count]) => `${status} x ${count}`).join(', ')}`)
}, 3_600_000)
