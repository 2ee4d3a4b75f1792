import cluster from 'node:cluster'
import { afterEach, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { memoryStore } from '../../../src/stores/memory/memory-store.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'

const SECRET = 'a-secret-of-all-processes-1'
const wasWorker = cluster.isWorker

/** Sets whether this process is a worker of a cluster. */
const setWorker = (isWorker: boolean): void => {
  Object.defineProperty(cluster, 'isWorker', { value: isWorker, configurable: true, writable: true })
}

afterEach(() => setWorker(wasWorker))

/** Returns the warnings of a new gateway about its secret, as events and as lines of its log. */
async function warnings(isShared: boolean, responses?: GatewayOptions['responses']) {
  const events: GatewayEvent[] = []
  const logged: string[] = []
  const none = (): void => undefined
  const gateway = createGateway({
    vendors: [openai({ apiKey: 'vendor-key' })],
    billing: 'off',
    keys: [{ key: 'sk-test-0123456789', account: 'acct_test' }],
    store: { ...memoryStore(), isShared },
    logger: { debug: none, info: none, warn: (message) => void logged.push(String(message)), error: none },
    onEvent: (event) => events.push(event),
    ...(responses === undefined ? {} : { responses }),
  })
  await gateway.start()
  await gateway.close()
  const found = events.flatMap((event) => (event.type === 'configuration-warning' ? [event] : []))
  return {
    events: found.filter(({ code }) => code === 'state-secret-missing').map(({ message }) => message),
    lines: logged.filter((line) => line.includes('responses.stateSecret')),
  }
}

const MISSING = [expect.stringMatching(/^responses\.stateSecret is not set, .*Set the same secret in all of them\.$/)]

test('warns once, by an event and in the log, if a shared store has no secret for carried state', async () => {
  expect(await warnings(true)).toEqual({ events: MISSING, lines: MISSING })
})

test('warns in a worker of a cluster, whose siblings have other secrets', async () => {
  setWorker(true)
  expect(await warnings(false)).toEqual({ events: MISSING, lines: MISSING })
})

test.each<[string, boolean, GatewayOptions['responses']]>([
  ['the process is alone on its store', false, undefined],
  ['a secret is set', true, { stateSecret: SECRET }],
  ['no answers are stored', true, { store: 'never' }],
])('does not warn about the secret for carried state if %s', async (_when, isShared, responses) => {
  expect(await warnings(isShared, responses)).toEqual({ events: [], lines: [] })
})
