import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { chatBody, type StartedGateway, startGateway, TEST_KEY } from '../../test/support/start-gateway.ts'

const ROUNDS = 60

/** Far above the usual milliseconds, so that a busy machine does not matter, but a sleep in the path fails the check. */
const BOUND_MS = 25

let started: StartedGateway
let vendor: Sandbox
let vendorOrigin: string

beforeAll(async () => {
  started = await startGateway()
  vendor = sandboxVendors()
  vendorOrigin = (await vendor.listen()).origin
})
afterAll(async () => {
  await started.close()
  await vendor.close()
})

test('the first event of a stream comes less than 25 ms later than straight from the vendor', async () => {
  const added: number[] = []
  // Both take turns, so that other work of the machine affects both.
  for (let round = 0; round < ROUNDS; round++) {
    const directMs = await firstEventMs(vendorOrigin, 'gpt-5.4')
    const throughMs = await firstEventMs(started.url, 'chat-relayed')
    added.push(throughMs - directMs)
  }

  expect(median(added)).toBeLessThan(BOUND_MS)
})

test.each([['cl-sonnet-4-6'], ['gmn-2.5-flash']])(
  'a stream of %s, which is translated, begins less than 25 ms later than one that is relayed',
  async (model) => {
    const added: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const relayedMs = await firstEventMs(started.url, 'chat-relayed')
      const translatedMs = await firstEventMs(started.url, model)
      added.push(translatedMs - relayedMs)
    }

    expect(median(added)).toBeLessThan(BOUND_MS)
  },
)

/** Returns the milliseconds from the request to the first event with text. Reads the rest too, to free the connection. */
async function firstEventMs(origin: string, model: string): Promise<number> {
  const startedAtMs = performance.now()
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(chatBody(model, 'one two three', { stream: true })),
  })
  let elapsedMs: number | undefined
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    if (elapsedMs === undefined && text.includes('You')) elapsedMs = performance.now() - startedAtMs
  }
  if (elapsedMs === undefined) throw new Error(`no event came: ${text}`)
  return elapsedMs
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
