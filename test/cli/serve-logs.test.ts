import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { logMoneyEvents, type RunningServer, serve } from '../../src/cli/serve-command.ts'
import { chatBody } from '../support/start-gateway.ts'

const KEY = 'sk-of-the-operator-1'
const VENDOR_KEY = 'sk-vendor-canary-91c2d3'

let running: RunningServer | undefined
let vendor: Server | undefined
let written: string[]

beforeEach(() => {
  written = []
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    written.push(String(text))
    return true
  })
})
afterEach(async () => {
  vi.restoreAllMocks()
  await running?.close()
  running = undefined
  vendor?.close()
  vendor = undefined
})

/** The lines that an operator reads, parsed. */
function lines(): Record<string, unknown>[] {
  return written
    .join('')
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((text) => JSON.parse(text) as Record<string, unknown>)
}

async function start(vendorURL: string, others: Record<string, string> = {}): Promise<void> {
  running = await serve({
    environment: {
      ...others,
      PORT: '0',
      SIGNALBOX_STORE: 'memory:',
      SIGNALBOX_API_KEYS: KEY,
      OPENAI_API_KEY: VENDOR_KEY,
      OPENAI_BASE_URL: vendorURL,
    },
    useStandIns: false,
    print: () => undefined,
    version: '0.0.0',
  })
}

async function listening(answer: (response: import('node:http').ServerResponse) => void): Promise<string> {
  vendor = createServer((request, response) => {
    request.resume()
    request.on('end', () => answer(response))
  })
  await new Promise<void>((resolve) => vendor?.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
}

/** Requests an answer, and returns status and request id. */
async function ask(isStream = false): Promise<{ status: number; requestId: string | null }> {
  const response = await fetch(`${running?.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...chatBody('gpt-5.4', 'a prompt that nobody logs'), stream: isStream }),
  })
  await response.text()
  return { status: response.status, requestId: response.headers.get('x-request-id') }
}

const failures = () => lines().filter(({ message }) => message === 'a vendor call failed')

test('a variable whose name is nearly that of a setting is a line, and no other is', async () => {
  const others = {
    SIGNALBOX_URL: 'a',
    SIGNALBOX_USER: 'b',
    SIGNALBOX_STORE_SERVICE_HOST: 'c',
    SIGNALBOX_STORE_PORT: 'd',
  }
  await start('http://127.0.0.1:9', { SIGNALBOX_LIMIT: 'rpm=5', ...others })

  const message = 'SIGNALBOX_LIMIT is not a setting; did you mean SIGNALBOX_LIMITS?'
  expect(lines().filter((line) => /is not a setting/.test(String(line['message'])))).toEqual([
    expect.objectContaining({ level: 'warn', message }),
  ])
})

test('a vendor that refuses connections is a line with vendor, model, network fault and request id', async () => {
  const url = await listening(() => undefined)
  await new Promise((resolve) => vendor?.close(resolve))
  await start(url)

  const { status, requestId } = await ask()

  expect(status).toBe(503)
  expect(failures()[0]).toMatchObject({
    level: 'warn',
    requestId,
    vendor: 'openai',
    model: 'gpt-5.4',
    reason: 'connect refused',
    vendorCode: 'ECONNREFUSED',
    vendorMessage: expect.stringContaining('ECONNREFUSED'),
  })
})

test("a vendor's 500 is a line with its status, code, text and request id, without the keys in it", async () => {
  const url = await listening((response) => {
    response.writeHead(500, { 'content-type': 'application/json', 'x-request-id': 'req_of_the_vendor' })
    response.end(JSON.stringify({ error: { message: `the backend of ${VENDOR_KEY} is down`, code: 'backend_down' } }))
  })
  await start(url)

  const { requestId } = await ask()

  expect(failures()[0]).toMatchObject({
    requestId,
    vendor: 'openai',
    status: 500,
    vendorCode: 'backend_down',
    vendorMessage: 'the backend of [redacted] is down',
    vendorRequestId: 'req_of_the_vendor',
  })
  expect(written.join('')).not.toContain(VENDOR_KEY)
})

test('logs a line for a body that is not an answer', async () => {
  const url = await listening((response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('<html>maintenance</html>')
  })
  await start(url)

  const { status } = await ask()

  expect(status).toBe(502)
  expect(failures()[0]).toMatchObject({ reason: 'invalid_response', status: 200, vendorMessage: expect.any(String) })
})

test('a stream that breaks in the middle is a line', async () => {
  const url = await listening((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: {"id":"1","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n', () => response.destroy())
  })
  await start(url)

  const { status, requestId } = await ask(true)

  expect(status).toBe(200)
  expect(failures()[0]).toMatchObject({ requestId, vendor: 'openai', reason: 'body reset' })
})

test('an operator problem is one line, as an error', async () => {
  const url = await listening((response) => {
    response.writeHead(401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }))
  })
  await start(url)

  const { requestId } = await ask()

  const ofRequest = lines().filter((line) => line['requestId'] === requestId)
  expect(ofRequest).toMatchObject([{ level: 'error', status: 401, vendorCode: 'invalid_api_key' }])
})

test('a circuit that opens is a line that says until when', async () => {
  const url = await listening((response) => {
    response.writeHead(401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } }))
  })
  await start(url)

  await ask()

  expect(lines()).toContainEqual(
    expect.objectContaining({ level: 'warn', message: 'a circuit opened', vendor: 'openai', reason: 'refused' }),
  )
})

test('a request that is refused for its content is a line without the text, which may quote the prompt', async () => {
  const url = await listening((response) => {
    response.writeHead(400, { 'content-type': 'application/json' })
    const message = 'Invalid input: a prompt that nobody logs'
    response.end(JSON.stringify({ error: { message, code: 'invalid_value', param: 'messages' } }))
  })
  await start(url)

  const { status } = await ask()

  expect(status).toBe(400)
  expect(failures()[0]).toMatchObject({ level: 'info', reason: 'caller', status: 400, vendorCode: 'invalid_value' })
  expect(written.join('')).not.toContain('a prompt that nobody logs')
})

test('counts of a vendor that cannot be are a line, as missing ones are', () => {
  const warned: unknown[] = []
  const warn = (message: string, fields?: object): void => void warned.push([message, fields])
  const log = logMoneyEvents({ debug: warn, info: warn, warn, error: warn })
  const call = { requestId: 'req_1', vendor: 'openai', model: 'm' }
  log({ type: 'usage-missing', ...call, usage: { outputTokens: 3 } })
  log({
    type: 'usage-implausible',
    ...call,
    fields: ['outputTokens'],
    reported: {},
    charged: {},
    reportedNanoDollars: undefined,
    dueNanoDollars: 1n,
  })

  expect(warned).toEqual([
    ['a vendor reported no usage; the call was charged by an estimate', expect.objectContaining(call)],
    [expect.stringContaining('a vendor reported usage that cannot be'), expect.objectContaining(call)],
  ])
})
