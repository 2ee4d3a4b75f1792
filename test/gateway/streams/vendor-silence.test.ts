import { afterEach, expect, test } from 'vitest'
import { fakeClock } from '../../../src/testing/index.ts'
import { rawPost } from '../../support/raw-caller.ts'
import { chatBody, type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway

afterEach(() => started.close())

const silences = () => started.events.filter(({ type }) => type === 'vendor-silent')

async function waitingCall(prompt: string, isStream: boolean) {
  const clock = fakeClock()
  const warnings: string[] = []
  const quiet = () => undefined
  const logger = { debug: quiet, info: quiet, error: quiet, warn: (text: string) => void warnings.push(text) }
  started = await startGateway({ clock, logger })
  const body = chatBody('chat-relayed', prompt, isStream ? { stream: true } : {})
  const caller = rawPost(started.url, '/v1/chat/completions', body)
  const advance = (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 5) clock.advance(5_000)
  }
  return { caller, warnings, advance }
}

test('reports a stream whose vendor sends no first byte for 15 seconds, once', async () => {
  const { caller, warnings, advance } = await waitingCall('[[fault:hang]] Hello', true)
  await expect.poll(() => started.sandbox.requests.length).toBe(1)

  advance(10)
  expect(silences()).toEqual([])
  advance(5)
  advance(30)

  expect(silences()).toMatchObject([{ vendor: 'openai', model: 'chat-relayed', silentMs: 15_000 }])
  expect(warnings.filter((text) => text === 'a vendor sends nothing')).toHaveLength(1)
  caller.leave()
})

test('reports a stream that stops in the middle for 15 seconds', async () => {
  const { caller, advance } = await waitingCall('[[fault:hang-body=3]] one two three four', true)
  await caller.received('You')

  advance(20)

  expect(silences()).toMatchObject([{ silentMs: 15_000 }])
  caller.leave()
})

test('reports a whole answer after 60 seconds without a byte', async () => {
  const { caller, advance } = await waitingCall('[[fault:hang]] Hello', false)
  await expect.poll(() => started.sandbox.requests.length).toBe(1)

  advance(55)
  expect(silences()).toEqual([])
  advance(5)

  expect(silences()).toMatchObject([{ silentMs: 60_000 }])
  advance(540)
  await caller.received('upstream_timeout')
  caller.leave()
})

test('reports nothing of a call that has ended', async () => {
  const { caller, advance } = await waitingCall('Hello', true)
  await caller.received('[DONE]')
  await expect.poll(() => started.events.some(({ type }) => type === 'request-ended')).toBe(true)

  advance(90)

  expect(silences()).toEqual([])
  caller.leave()
})

test.each([
  ['whose caller waits', false],
  ['whose caller disconnected', true],
])('closes without a move of the clock while a silent vendor holds a call %s', async (_whose, leaves) => {
  const { caller } = await waitingCall('[[fault:hang]] Hello', false)
  await expect.poll(() => started.sandbox.requests.length).toBe(1)
  if (leaves) caller.leave()

  await started.gateway.close({ drainMs: 0 })

  expect(started.events.filter(({ type }) => type === 'request-ended')).toHaveLength(1)
  expect(await started.account()).toMatchObject({ held: 0n })
})
