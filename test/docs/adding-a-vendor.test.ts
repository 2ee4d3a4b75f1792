import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { createGateway, type GatewayEvent, type Transport, type TransportRequest } from '../../src/index.ts'
import { readEvents } from '../support/read-events.ts'
import { codeBlocks, firstTable, ROOT, readPage, section } from './support/markdown.ts'
import { parrot } from './support/parrot-vendor.ts'

const page = readPage('docs/adding-a-vendor.md')

/** A transport that answers every call with the same bytes and keeps what was sent. */
function stubTransport(status: number, contentType: string, pieces: readonly string[]) {
  const sent: TransportRequest[] = []
  const transport: Transport = {
    send(request, handler) {
      sent.push(request)
      queueMicrotask(() => {
        handler.onHead(status, { 'content-type': contentType })
        for (const piece of pieces) handler.onData(Buffer.from(piece))
        handler.onEnd()
      })
      return { abort() {}, pause() {}, resume() {} }
    },
    close: async () => {},
  }
  return { transport, sent }
}

function startGateway(transport: Transport) {
  const events: GatewayEvent[] = []
  const gateway = createGateway({
    vendors: [parrot({ apiKey: 'parrot-key' })],
    keys: [{ key: 'sk-test-0123456789', account: 'acct_test' }],
    billing: 'off',
    transport,
    onEvent: (event) => events.push(event),
  })
  const ask = (body: Record<string, unknown>): Promise<Response> =>
    gateway.fetch(
      new Request('https://gateway.example/v1/chat/completions', {
        method: 'POST',
        headers: { authorization: 'Bearer sk-test-0123456789', 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'parrot-1', messages: [{ role: 'user', content: 'Hello' }], ...body }),
      }),
    )
  return { ask, events }
}

const WHOLE = '{"id":"p1","text":"Hello, hello","stop":"done","tokens":{"in":3,"out":2}}'

describe("the page's vendor", () => {
  test('is equal on the page and in this test', () => {
    const code = readFileSync(join(import.meta.dirname, 'support/parrot-vendor.ts'), 'utf8')
    const shown = codeBlocks(page).find((block) => block.code.includes('export function parrot('))

    expect(shown?.code).toBe(code.replace('../../../src/index.ts', 'signalbox'))
  })

  test('answers a chat, and names what it leaves out', async () => {
    const { transport, sent } = stubTransport(200, 'application/json', [WHOLE])
    const { ask, events } = startGateway(transport)

    const response = await ask({ max_tokens: 7, seed: 1 })
    const answer = await response.json()

    expect(answer).toMatchObject({
      model: 'parrot-1',
      choices: [{ message: { content: 'Hello, hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    })
    expect(response.headers.get('x-signalbox-dropped')).toBe('seed')
    expect(sent[0]).toMatchObject({ origin: 'https://parrot.example', path: '/speak' })
    expect(JSON.parse(String(sent[0]?.body))).toEqual({
      voice: 'parrot-1',
      lines: [{ role: 'user', text: 'Hello' }],
      limit: 7,
      stream: false,
    })
    expect(events.at(-1)).toMatchObject({ type: 'request-ended', usage: { inputTokens: 3, outputTokens: 2 } })
  })

  test('streams, whatever the pieces in which the bytes arrive', async () => {
    const stream = 'data: {"id":"p1"}\n\ndata: {"text":"Hällo"}\n\ndata: {"stop":"limit","tokens":{"in":3,"out":2}}\n\n'
    const { transport } = stubTransport(200, 'text/event-stream', [stream.slice(0, 30), stream.slice(30)])
    const { ask } = startGateway(transport)

    const events = await readEvents(await ask({ stream: true, stream_options: { include_usage: true } }))

    const chunks = events.slice(0, -1).map((event) => JSON.parse(event))
    expect(events.at(-1)).toBe('[DONE]')
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('Hällo')
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 5 } })
    expect(chunks.some((chunk) => chunk.choices[0]?.finish_reason === 'length')).toBe(true)
  })

  test.each([
    [400, 400, 'upstream_rejected'],
    [401, 503, 'upstream_unavailable'],
    [429, 429, 'Throttling.RateQuota'],
    [200, 502, 'upstream_invalid_response'],
  ])('turns status %i with an unreadable body into %i', async (status, expectedStatus, expectedCode) => {
    const { transport } = stubTransport(status, 'application/json', ['no'])
    const { ask } = startGateway(transport)

    const response = await ask({})

    expect(response.status).toBe(expectedStatus)
    expect((await response.json()).error.code).toBe(expectedCode)
  })

  test('refuses what it cannot do before anything is sent', async () => {
    const { transport, sent } = stubTransport(200, 'application/json', [WHOLE])
    const { ask } = startGateway(transport)
    const image = { type: 'image_url', image_url: { url: 'https://pictures.example/1.png' } }

    const response = await ask({ messages: [{ role: 'user', content: [image] }] })

    expect(response.status).toBe(400)
    expect((await response.json()).error).toMatchObject({ code: 'unsupported_parameter', param: 'messages' })
    expect(sent).toEqual([])
  })
})

test('the tables list the members of their interfaces, inherited ones too', { timeout: 60_000 }, () => {
  const path = join(ROOT, 'src/vendors/vendor.ts')
  const program = ts.createProgram([path], {
    module: ts.ModuleKind.NodeNext,
    allowImportingTsExtensions: true,
    noEmit: true,
  })
  const checker = program.getTypeChecker()
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path)!)!)
  const membersOf = (name: string): string[] => {
    const symbol = exported.find((candidate) => candidate.name === name)!
    const declared = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
    return checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(declared)).map((property) => property.name)
  }

  for (const name of ['Vendor', 'ChatOperation', 'EmbeddingsOperation']) {
    const [, ...rows] = firstTable(section(page, name))
    const members = membersOf(name)

    expect(members.length, name).toBeGreaterThan(3)
    expect(rows.map((row) => row[0]).sort(), name).toEqual(members.sort())
  }
})
