import { afterEach, beforeEach, expect, test } from 'vitest'
import { type FakeClock, fakeClock, type Sandbox, sandboxVendors } from '../../src/testing/index.ts'
import { CREDIT } from '../gateway/images/image-error-shapes.ts'
import { generation, IMAGES, interaction } from '../gateway/images/image-requests.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'

let clock: FakeClock
let sandbox: Sandbox
let started: StartedGateway

beforeEach(async () => {
  clock = fakeClock()
  sandbox = sandboxVendors({ clock })
  started = await startGateway({ clock, transport: sandbox.transport() })
})
afterEach(async () => {
  await started.close()
  await sandbox.close()
})

/** Lets time pass, second by second, until it is there. */
async function whileTimePasses<Value>(awaited: Promise<Value>): Promise<Value> {
  let isThere = false
  const settled = awaited.finally(() => {
    isThere = true
  })
  for (let seconds = 0; !isThere && seconds < 300; seconds++) {
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(1_000)
  }
  return settled
}

// Headers go out after 15 seconds without content, so these failures come too late for a status of their own.
const PROMPT = 'a paper boat [[fault:pace=20000]]'

test.each([
  ['generations', generation(PROMPT, { stream: true }), 'error-event', 0],
  ['interactions', interaction(PROMPT, { stream: true }), 'error-event', 3],
  ['interactions', interaction(PROMPT, { stream: true }), 'reset-mid-stream', 3],
  ['interactions', interaction(PROMPT, { stream: true }), 'end-early', 3],
] as const)(
  'charges nothing for a stream in the shape %s that fails before any part of an image (%#)',
  async (_shape, body, kind, events) => {
    sandbox.fault({ kind, events })

    const answer = await whileTimePasses(started.post(IMAGES, body))
    const text = await whileTimePasses(answer.text())
    const ended = await started.ended(answer)

    expect(answer.status).toBe(200)
    expect(text).toContain('"error":{')
    expect(ended).toMatchObject({ ending: 'failed', costNanoDollars: 0n })
    expect(sandbox.requests).toHaveLength(1)
    expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
  },
)

test('reports what the vendor may bill for a stream that breaks off after the headers and before any image (nothing before)', async () => {
  sandbox.fault({ kind: 'reset-mid-stream', events: 3 })
  const answer = await whileTimePasses(started.post(IMAGES, interaction(PROMPT, { stream: true })))
  await whileTimePasses(answer.text())

  expect(await started.ended(answer)).toMatchObject({ ending: 'failed', costNanoDollars: 0n })
  expect(started.events.filter(({ type }) => type === 'unbilled-usage')).toEqual([
    expect.objectContaining({ isEstimated: true, usage: expect.objectContaining({ images: 1 }) }),
  ])
  expect(await started.account()).toEqual({ balance: CREDIT, held: 0n })
})
