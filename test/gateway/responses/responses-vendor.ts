import { createServer } from 'node:http'
import { listen } from '../../support/listen.ts'

/** Usage as the vendor reports it. */
export const VENDOR_USAGE = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 27,
}

type Json = Record<string, unknown>

/** A tool, in the dialects that have its members flat. */
const TOOL = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }

/** The same question on three paths. */
export function sameQuestion(model: string): Readonly<Record<string, object>> {
  return {
    '/v1/chat/completions': {
      model,
      messages: [{ role: 'user', content: 'look at x' }],
      tools: [{ type: 'function', function: TOOL }],
    },
    '/v1/messages': {
      model,
      max_tokens: 16_384,
      messages: [{ role: 'user', content: 'look at x' }],
      tools: [{ name: 'look', description: 'Looks.', input_schema: TOOL.parameters }],
    },
    '/v1/responses': { model, input: 'look at x', tools: [{ type: 'function', ...TOOL }] },
  }
}

/** The answer of the vendor, with a member that the gateway does not know. */
export function vendorResponse(rest: Json = {}): Json {
  return {
    id: 'resp_vendor1',
    object: 'response',
    created_at: 1_795_132_800,
    status: 'completed',
    of_the_future: { a: [1] },
    model: 'gpt-5.4-2026-03-05',
    output: [
      { type: 'reasoning', id: 'rs_vendor1', summary: [], encrypted_content: 'gAAAA' },
      {
        type: 'message',
        id: 'msg_vendor1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'hello there', annotations: [], logprobs: [] }],
      },
    ],
    usage: VENDOR_USAGE,
    ...rest,
  }
}

/** The events of a stream, written with odd blanks, so that a test sees whether bytes pass. */
export function vendorEvents(response: Json = vendorResponse()): string[] {
  const [reasoning, message] = response['output'] as [Json, Json]
  const begun = { ...response, status: 'in_progress', output: [], usage: null }
  const place = { item_id: 'msg_vendor1', output_index: 1, content_index: 0 }
  const part = { type: 'output_text', text: 'hello there', annotations: [], logprobs: [] }
  const events: [string, Json][] = [
    ['response.created', { response: begun }],
    ['response.in_progress', { response: begun }],
    ['response.output_item.added', { output_index: 0, item: { ...reasoning, encrypted_content: null } }],
    ['response.output_item.done', { output_index: 0, item: reasoning }],
    ['response.output_item.added', { output_index: 1, item: { ...message, status: 'in_progress', content: [] } }],
    ['response.content_part.added', { ...place, part: { ...part, text: '' } }],
    ['response.output_text.delta', { ...place, delta: 'hello ', logprobs: [], obfuscation: 'x9' }],
    ['response.output_text.delta', { ...place, delta: 'there', logprobs: [] }],
    ['response.output_text.done', { ...place, text: 'hello there', logprobs: [] }],
    ['response.content_part.done', { ...place, part }],
    ['response.output_item.done', { output_index: 1, item: message }],
    [`response.${String(response['status'])}`, { response }],
  ]
  return events.map(
    ([type, members], sequence_number) =>
      `event: ${type}\ndata: {"type":"${type}", "sequence_number":${sequence_number}, ${JSON.stringify(members).slice(1)}\n\n`,
  )
}

/** A vendor of Responses behind a real socket. */
export interface ResponsesVendor {
  readonly origin: string
  /** The bodies that arrived, and the keys they came with. */
  readonly calls: { readonly body: string; readonly key: string; readonly path: string }[]
  /** Calls whose connection was closed before their answer was whole. */
  readonly aborted: number
  nextAbort(): Promise<void>
  /** Configured answer. A stream may end early, or stay open. */
  answer: { whole: string; events: string[]; end: 'clean' | 'reset' | 'open' }
  /** Which keys get 503. */
  refuses: (key: string) => boolean
  close(): Promise<void>
}

/** Starts one. */
export async function responsesVendor(): Promise<ResponsesVendor> {
  let aborted = 0
  const waiting: (() => void)[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const { method, url = '', headers } = request
    vendor.calls.push({ body, key: headers.authorization ?? '', path: `${method} ${url}` })
    response.on('close', () => {
      if (response.writableEnded) return
      aborted += 1
      for (const resolve of waiting.splice(0)) resolve()
    })
    if (vendor.refuses(headers.authorization ?? '')) return void response.writeHead(503).end()
    const { whole, events, end } = vendor.answer
    if ((JSON.parse(body || '{}') as Json)['stream'] !== true) {
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(whole)
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of events) await new Promise<void>((resolve) => response.write(event, () => resolve()))
    if (end === 'clean') response.end()
    else if (end === 'reset') response.socket?.resetAndDestroy()
  })
  const { origin, close } = await listen(server)
  const vendor: ResponsesVendor = {
    origin,
    calls: [],
    get aborted() {
      return aborted
    },
    nextAbort: () => new Promise((resolve) => waiting.push(resolve)),
    answer: { whole: JSON.stringify(vendorResponse(), null, 1), events: vendorEvents(), end: 'clean' },
    refuses: () => false,
    close,
  }
  return vendor
}
