import { once } from 'node:events'
import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type CorsOptions, withCors } from '../../src/adapters/cors.ts'
import { expressHandler } from '../../src/adapters/express.ts'
import { fetchHandler, nextHandlers } from '../../src/adapters/fetch.ts'
import { listen } from '../support/listen.ts'
import { cors as corsOfHost, express4, MOUNTS, type Mounted } from './support/mounts.ts'
import { type EchoAnswer, StandInGateway } from './support/stand-in-gateway.ts'

const ORIGIN = 'https://app.example'
const CORS = { origins: [ORIGIN, 'http://localhost:5173'] }

const asking = (headers: Record<string, string>): RequestInit => ({
  method: 'OPTIONS',
  headers: { origin: ORIGIN, 'access-control-request-method': 'POST', ...headers },
})

const corsHeaders = (response: Response): Record<string, string> =>
  Object.fromEntries([...response.headers].filter(([name]) => name.startsWith('access-control-')))

const varies = (response: Response): string[] =>
  (response.headers.get('vary') ?? '').split(',').map((name) => name.trim().toLowerCase())

describe.each(Object.entries(MOUNTS))('cors in %s', (_name, mount) => {
  let gateway: StandInGateway
  let mounted: Mounted

  beforeEach(async () => {
    gateway = new StandInGateway()
    mounted = await mount(gateway, { cors: CORS })
  })

  afterEach(() => mounted.close())

  it('answers preflight requests itself, with what the browser asks for', async () => {
    const headers = { 'access-control-request-headers': 'authorization,content-type,x-stainless-os' }

    const response = await fetch(`${mounted.origin}/ai/v1/chat/completions`, asking(headers))

    expect(response.status).toBe(204)
    expect(corsHeaders(response)).toEqual({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
      'access-control-allow-headers': 'authorization,content-type,x-stainless-os',
      'access-control-max-age': '7200',
    })
    expect(varies(response)).toEqual(['origin', 'access-control-request-headers'])
    expect(gateway.handled).toBe(0)
  })

  it('tells pages of other origins nothing', async () => {
    const headers = { origin: 'https://other.example' }

    const asked = await fetch(`${mounted.origin}/ai/v1/x`, asking(headers))
    const answered = await fetch(`${mounted.origin}/ai/v1/x`, { headers })

    expect([asked.status, corsHeaders(asked)]).toEqual([204, {}])
    expect([answered.status, corsHeaders(answered)]).toEqual([200, {}])
    expect([varies(asked)[0], varies(answered)]).toEqual(['origin', ['x-api-key', 'origin']])
  })

  it('lets pages read whole answers, streams and errors, with the headers of the gateway', async () => {
    const headers = { origin: ORIGIN }

    const whole = await fetch(`${mounted.origin}/ai/v1/x`, { headers })
    const stream = await fetch(`${mounted.origin}/ai/v1/stream`, { headers })
    const empty = await fetch(`${mounted.origin}/ai/v1/empty`, { headers })
    const refused = await fetch(`${mounted.origin}/ai/v1/refuse`, { headers, method: 'POST', body: '{}' })

    expect(corsHeaders(whole)).toEqual({ 'access-control-allow-origin': ORIGIN })
    expect(corsHeaders(stream)).toEqual({ 'access-control-allow-origin': ORIGIN })
    expect(await stream.text()).toContain('[DONE]')
    expect(corsHeaders(empty)).toEqual({
      'access-control-allow-origin': ORIGIN,
      'access-control-expose-headers': 'x-request-id',
    })
    expect([refused.status, corsHeaders(refused)]).toEqual([401, { 'access-control-allow-origin': ORIGIN }])
    expect(varies(whole)).toEqual(['x-api-key', 'origin'])
  })

  it('passes on OPTIONS that are not a preflight, and requests without an origin', async () => {
    const options = await fetch(`${mounted.origin}/ai/v1/x`, { method: 'OPTIONS' })
    const plain = await fetch(`${mounted.origin}/ai/v1/x`)

    expect(((await options.json()) as EchoAnswer).method).toBe('OPTIONS')
    expect([corsHeaders(plain), varies(plain)]).toEqual([{}, ['x-api-key', 'origin']])
  })

  it('is notified when the caller of a stream disconnects', async () => {
    const leaving = new AbortController()
    await fetch(`${mounted.origin}/ai/v1/hang`, { headers: { origin: ORIGIN }, signal: leaving.signal })
    const left = once(gateway, 'left')

    leaving.abort()

    await left
    expect(gateway.left).toEqual(['/v1/hang'])
  })
})

describe('cors options', () => {
  const answer = async (cors: CorsOptions, init: RequestInit): Promise<Response> =>
    await fetchHandler(new StandInGateway(), { cors })(new Request('https://host.example/v1/empty', init))

  it('need no vary for all origins', async () => {
    const response = await answer({ origins: '*' }, { headers: { origin: ORIGIN } })

    expect(corsHeaders(response)['access-control-allow-origin']).toBe('*')
    expect(response.headers.get('vary')).toBeNull()
    expect(corsHeaders(await answer({ origins: ['*'] }, {}))['access-control-allow-origin']).toBe('*')
  })

  it('may name the request headers, the age and credentials', async () => {
    const cors = { origins: [ORIGIN], headers: ['authorization', 'x-team'], maxAgeSeconds: 0, credentials: true }

    const asked = await answer(cors, asking({ 'access-control-request-headers': 'x-other' }))
    const answered = await answer(cors, { headers: { origin: ORIGIN } })

    expect(corsHeaders(asked)).toMatchObject({
      'access-control-allow-headers': 'authorization, x-team',
      'access-control-allow-credentials': 'true',
      'access-control-max-age': '0',
    })
    expect(asked.headers.get('vary')).toBe('origin')
    expect(corsHeaders(answered)['access-control-allow-credentials']).toBe('true')
  })

  it('know the origins of apps', async () => {
    const origin = 'capacitor://localhost'

    const response = await answer({ origins: [origin] }, { headers: { origin } })

    expect(corsHeaders(response)['access-control-allow-origin']).toBe(origin)
  })

  it.each<[unknown, string]>([
    [{}, "cors: origins: must be '*' or a list such as ['https://app.example.com']"],
    [{ origins: [] }, "cors: origins: must be '*' or a list"],
    [{ origins: ['https://app.example/'] }, 'must be an origin as browsers send it, here "https://app.example"'],
    [{ origins: ['HTTPS://App.Example:443'] }, 'here "https://app.example"'],
    [{ origins: ['app.example'] }, 'such as https://app.example.com'],
    [{ origins: ['*', ORIGIN] }, 'cors: origins: "*" must be an origin'],
    [{ origins: ['null'] }, 'cors: origins: "null" must be an origin'],
    [{ origins: '*', credentials: true }, 'cors: credentials: browsers refuse it for all origins'],
    [{ origins: '*', headers: ['x y'] }, 'cors: headers: "x y" is not the name of a header'],
    [{ origins: '*', maxAgeSeconds: -1 }, 'cors: maxAgeSeconds: must be a whole number from 0 to 86400'],
    [{ origins: '*', origin: ORIGIN }, 'cors: origin is unknown; did you mean origins?'],
  ])('%j are refused when the gateway is mounted', (cors, message) => {
    expect(() => withCors(new StandInGateway(), cors as CorsOptions)).toThrow(TypeError)
    expect(() => withCors(new StandInGateway(), cors as CorsOptions)).toThrow(message)
  })

  it('add to the vary of a host, and leave what the host answers by itself', async () => {
    const app = express4()
      .use(corsOfHost({ origin: 'https://host.example' }))
      .use('/ai', expressHandler(new StandInGateway(), { cors: CORS, passUnknown: true }))
    const mounted = await listen(app)

    const answered = await fetch(`${mounted.origin}/ai/v1/x`, { headers: { origin: ORIGIN } })
    await mounted.close()

    expect(varies(answered)).toEqual(['origin', 'x-api-key', 'origin'])
    expect(corsHeaders(answered)['access-control-allow-origin']).toBe(ORIGIN)
  })
})

describe('nextHandlers', () => {
  it('are the exports of a route file, preflight included', async () => {
    const { GET, POST, DELETE, HEAD, OPTIONS } = nextHandlers(new StandInGateway(), { cors: CORS })
    const url = 'https://host.example/api/ai/v1/responses/resp_1'

    const read = (await (await GET(new Request(url))).json()) as EchoAnswer
    const sent = (await (await POST(new Request(url, { method: 'POST', body: 'x' }))).json()) as EchoAnswer
    const asked = await OPTIONS(new Request(url, asking({})))

    expect([read.method, read.path, sent.body]).toEqual(['GET', '/v1/responses/resp_1', 'x'])
    expect([asked.status, corsHeaders(asked)['access-control-allow-origin']]).toEqual([204, ORIGIN])
    expect([HEAD, DELETE]).toEqual([GET, GET])
  })

  it('serve one endpoint under any path', async () => {
    const { POST } = nextHandlers(new StandInGateway(), { endpoint: '/v1/chat/completions' })
    const app = new Hono().all('/api/chat', (context) => POST(context.req.raw))

    const answered = await app.request('/api/chat?x=1', { method: 'POST', body: '{}' })

    expect(await answered.json()).toMatchObject({ path: '/v1/chat/completions', query: 'x=1', body: '{}' })
  })

  it('reject an endpoint that is not a path of the gateway', () => {
    const gateway = new StandInGateway()

    expect(() => nextHandlers(gateway, { endpoint: '/chat' })).toThrow(
      'endpoint: "/chat" must be a path of the gateway',
    )
    expect(() => nextHandlers(gateway, { endpoint: '/v1/models', basePath: '/ai' })).toThrow(
      'endpoint and basePath cannot be combined',
    )
  })
})
