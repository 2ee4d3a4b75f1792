import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { nodeHandler } from '../../src/adapters/node.ts'
import type { GatewayEvent } from '../../src/core/events.ts'
import { createGateway, type Gateway } from '../../src/gateway/gateway.ts'
import type { GatewayOptions } from '../../src/gateway/options.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { type Sandbox, type SandboxOptions, sandboxVendors } from '../../src/testing/index.ts'
import { anthropic } from '../../src/vendors/anthropic/anthropic.ts'
import { cohere } from '../../src/vendors/cohere/cohere.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { voyage } from '../../src/vendors/voyage/voyage.ts'
import { testPrices } from './test-prices.ts'

/** The key and account that every test gateway knows from the start. */
export const TEST_KEY = 'sk-test-0123456789'
export const TEST_ACCOUNT = 'acct_test'

/** Models that tests add to the catalog: chat at the vendors for which the specification names none. */
export const TEST_MODELS = [
  { id: 'chat-relayed', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4', limits: { maxOutputTokens: 2000 } },
  // Offered by Responses only, which the catalog knows.
  { id: 'chat-pro', kind: 'chat', vendor: 'openai', upstream: 'gpt-5.4-pro', limits: { maxOutputTokens: 2000 } },
  { id: 'chat-qwen', kind: 'chat', vendor: 'dashscope', upstream: 'qwen3-max', limits: { maxOutputTokens: 2000 } },
  {
    id: 'embedding-relayed',
    kind: 'embedding',
    vendor: 'openai',
    upstream: 'text-embedding-3-small',
    limits: { dimensions: 1536 },
  },
] as const

/** The event that closes a request. */
export type RequestEnded = Extract<GatewayEvent, { type: 'request-ended' }>

/** The event that closes a task. */
export type TaskEnded = Extract<GatewayEvent, { type: 'task-ended' }>

/** A gateway behind a real socket, with stand-ins behind real sockets. */
export interface StartedGateway {
  /** `http://127.0.0.1:…` */
  readonly url: string
  readonly gateway: Gateway
  readonly sandbox: Sandbox
  readonly events: readonly GatewayEvent[]
  /** The `request-ended` event of an answer, awaited when it has not come yet. */
  ended(response: Response): Promise<RequestEnded>
  /** The `task-ended` event of a task, awaited when it has not come yet. */
  taskEnded(taskId: string): Promise<TaskEnded>
  /** The next `request-ended` event, for a request whose answer nobody gets. */
  nextEnded(): Promise<RequestEnded>
  /** Balance and held money of the test account, nano-dollars. */
  account(): Promise<{ balance: bigint; held: bigint }>
  /** Posts JSON with the test key. */
  post(path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>
  close(): Promise<void>
}

/** Starts one. Billing is on, and the account holds 100 dollars, unless the options say otherwise. */
export async function startGateway(
  options: Partial<GatewayOptions> = {},
  sandboxOptions: SandboxOptions = {},
): Promise<StartedGateway> {
  const sandbox = sandboxVendors(sandboxOptions)
  const { origin } = await sandbox.listen()
  const events: GatewayEvent[] = []
  const endings = new Map<string, RequestEnded>()
  const watchers = new Set<(event: RequestEnded) => void>()
  const taskWatchers = new Set<(event: TaskEnded) => void>()
  const store = options.store ?? memoryStore()
  const connection = { apiKey: 'vendor-key-canary-7f3a', baseURL: origin }
  const gateway = createGateway({
    vendors: [
      openai(connection),
      anthropic(connection),
      gemini(connection),
      dashscope(connection),
      voyage(connection),
      cohere(connection),
    ],
    models: [...TEST_MODELS],
    ...(options.billing === 'off' ? {} : { prices: testPrices }),
    ...(options.authenticate === undefined ? { keys: [{ key: TEST_KEY, account: TEST_ACCOUNT }] } : {}),
    allowPrivateUrls: true,
    onEvent: (event) => {
      events.push(event)
      if (event.type === 'task-ended') for (const watcher of taskWatchers) watcher(event)
      if (event.type !== 'request-ended') return
      endings.set(event.requestId, event)
      for (const watcher of watchers) watcher(event)
    },
    ...options,
    store,
  })
  await gateway.start()
  if (options.authenticate === undefined) await gateway.accounts.credit(TEST_ACCOUNT, '100')
  const server = createServer(nodeHandler(gateway))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    gateway,
    sandbox,
    events,
    ended(response) {
      const requestId = response.headers.get('x-request-id') ?? ''
      const event = endings.get(requestId)
      return event === undefined
        ? watch(watchers, (candidate) => candidate.requestId === requestId)
        : Promise.resolve(event)
    },
    taskEnded(taskId) {
      const isIt = (event: GatewayEvent): event is TaskEnded => event.type === 'task-ended' && event.taskId === taskId
      const event = events.find(isIt)
      return event === undefined ? watch(taskWatchers, isIt) : Promise.resolve(event)
    },
    nextEnded: () => watch(watchers, () => true),
    async account() {
      const account = await gateway.accounts.get(TEST_ACCOUNT)
      return { balance: account?.balance ?? 0n, held: account?.held ?? 0n }
    },
    post: (path, body, headers = {}, signal) =>
      fetch(`${url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        signal: signal ?? null,
      }),
    async close() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
      // A clock that tests advance does not end a wait.
      await gateway.close({ drainMs: options.clock === undefined ? 1 : 0 })
      await sandbox.close()
    },
  }
}

function watch<Event>(watchers: Set<(event: Event) => void>, fits: (event: Event) => boolean): Promise<Event> {
  return new Promise((resolve) => {
    const watcher = (event: Event): void => {
      if (!fits(event)) return
      watchers.delete(watcher)
      resolve(event)
    }
    watchers.add(watcher)
  })
}

/** A chat request with one user message. */
export function chatBody(model: string, text: string, rest: Record<string, unknown> = {}): Record<string, unknown> {
  return { model, messages: [{ role: 'user', content: text }], ...rest }
}
