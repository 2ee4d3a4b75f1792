import { afterEach, expect, test } from 'vitest'
import type { CredentialProvider } from '../../src/core/credential.ts'
import type { Transport, TransportRequest } from '../../src/transport/transport.ts'
import { anthropic, anthropicVertex } from '../../src/vendors/anthropic/anthropic.ts'
import { cohere } from '../../src/vendors/cohere/cohere.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { gemini, vertex } from '../../src/vendors/gemini/gemini.ts'
import { openai } from '../../src/vendors/openai/openai.ts'
import { voyage } from '../../src/vendors/voyage/voyage.ts'
import { type StartedGateway, startGateway } from '../support/start-gateway.ts'
import { type TaskBench, taskBench } from '../tasks/support/task-bench.ts'

let started: StartedGateway | undefined
let bench: TaskBench | undefined
afterEach(async () => {
  await started?.close()
  await bench?.close()
  started = undefined
  bench = undefined
})

const CREDENTIAL_HEADERS = new Set(['authorization', 'x-api-key', 'x-goog-api-key', 'api-key'])

/** The credential headers of a request, each as `name: value`. */
function credentialsOf({ headers }: TransportRequest): string[] {
  return headers.flatMap((name, place) =>
    place % 2 === 0 && CREDENTIAL_HEADERS.has(name.toLowerCase()) ? [`${name}: ${headers[place + 1]}`] : [],
  )
}

/** A transport that notes requests and sends none of them. */
function notingTransport(sent: TransportRequest[]): Transport {
  return {
    send(request, handler) {
      sent.push(request)
      const failure = { phase: 'connect', kind: 'refused', error: new Error('not sent') } as const
      queueMicrotask(() => handler.onFailure(failure))
      return { abort() {}, pause() {}, resume() {} }
    },
    close: () => Promise.resolve(),
  }
}

test('sends the token of a provider to every vendor as a bearer, and no other credential', async () => {
  const apiKey: CredentialProvider = () => ({ token: 'provided-token' })
  const common = { apiKey, headers: { 'x-team': 'search' }, query: { tag: '1' } }
  const sent: TransportRequest[] = []
  started = await startGateway({
    vendors: [
      openai(common),
      anthropic(common),
      gemini(common),
      dashscope(common),
      voyage(common),
      cohere(common),
      vertex({ ...common, project: 'our-project', location: 'us' }),
      anthropicVertex({ ...common, project: 'our-project', location: 'eu' }),
    ],
    transport: notingTransport(sent),
    billing: 'off',
  })
  const { gateway } = started
  const input = { role: 'user', content: 'hello' }
  const bodies: Readonly<Record<string, Record<string, unknown>>> = {
    '/v1/chat/completions': { messages: [input], max_tokens: 10 },
    '/v1/messages': { messages: [input], max_tokens: 10 },
    '/v1/embeddings': { input: 'hello' },
    '/v1/rerank': { query: 'hello', documents: ['hello'] },
  }
  const origins = new Set<string>()
  const oneOfEach = new Map(gateway.models().map((model) => [`${model.owned_by} ${model.kinds.join()}`, model]))
  for (const model of oneOfEach.values()) {
    const paths = model.kinds.includes('chat')
      ? ['/v1/chat/completions', '/v1/messages']
      : model.kinds.includes('embedding')
        ? ['/v1/embeddings']
        : model.kinds.includes('rerank')
          ? ['/v1/rerank']
          : []
    for (const path of paths) {
      sent.length = 0
      await (await started.post(path, { model: model.id, ...bodies[path] })).text()
      expect(sent.length, `${model.id} ${path}`).toBeGreaterThan(0)
      for (const request of sent) {
        expect(credentialsOf(request), `${model.id} ${path}`).toEqual(['authorization: Bearer provided-token'])
        expect(request.path).toMatch(/[?&]tag=1$/)
        expect(request.headers.join()).toContain('x-team,search')
        origins.add(request.origin)
      }
    }
  }
  expect(origins.size).toBe(8)
})

/** Notes credentials, and puts one key in their place: to the stand-in every other key is another account. */
function sameAccount(inner: Transport, seen: string[][]): Transport {
  return {
    send(request, handler) {
      seen.push(credentialsOf(request))
      const headers = request.headers.map((text) => text.replace(/^Bearer token-\d+$/, 'Bearer one-account-0123456789'))
      return inner.send({ ...request, headers }, handler)
    },
    close: () => inner.close(),
  }
}

async function videoBench(apiKey: CredentialProvider, seen: string[][]): Promise<TaskBench> {
  const first = await taskBench()
  const vendors = [dashscope({ apiKey, baseURL: 'https://vendor.example' })]
  const second = await first.another({ vendors, transport: sameAccount(first.sandbox.transport(), seen) })
  await first.close()
  return second
}

test('videos are submitted and followed with a token that is renewed meanwhile', async () => {
  let made = 0
  const seen: string[][] = []
  bench = await videoBench(({ nowMs }) => ({ token: `token-${++made}`, expiresAtMs: nowMs + 20_000 }), seen)
  const id = await bench.submit('a boat')
  await bench.pass(60_000, 1_000)
  expect(await bench.read(id)).toMatchObject({ status: 'completed' })
  expect(seen.every((credentials) => credentials.length === 1)).toBe(true)
  expect(new Set(seen.flat()).size).toBeGreaterThan(1)
})

test('a poll whose token is refused is repeated at once with a new one', async () => {
  let made = 0
  const seen: string[][] = []
  bench = await videoBench(() => ({ token: `token-${++made}` }), seen)
  const id = await bench.submit('a boat')
  bench.sandbox.fault({ kind: 'bad-key', vendor: 'dashscope', operation: 'video-task', times: 1 })
  await bench.pass(60_000, 1_000)
  expect(await bench.read(id)).toMatchObject({ status: 'completed' })
  expect(made).toBe(2)
  expect(seen.slice(1, 3).flat()).toEqual(['authorization: Bearer token-1', 'authorization: Bearer token-2'])
})
