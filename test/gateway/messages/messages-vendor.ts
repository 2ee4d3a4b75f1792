import { createServer } from 'node:http'
import { listen } from '../../support/listen.ts'

/** Members of `usage` in the vendor's answers. */
export type ReportedUsage = Readonly<Record<string, unknown>>

/** Vendor of Messages on a real socket, which answers "hello" with a configurable usage report. */
export interface MessagesVendor {
  readonly origin: string
  /** Usage of whole answers, and of the first event of streams. */
  usage: ReportedUsage
  /** Usage of the second-to-last event of streams. */
  lastUsage: ReportedUsage
  close(): Promise<void>
}

/** Starts one. */
export async function messagesVendor(): Promise<MessagesVendor> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const { stream, model } = JSON.parse(text) as { stream?: boolean; model: string }
    const { usage, lastUsage } = vendor
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model, stop_reason: null, stop_sequence: null }
    if (stream !== true) {
      response.writeHead(200, { 'content-type': 'application/json' })
      const content = [{ type: 'text', text: 'hello' }]
      return void response.end(JSON.stringify({ ...message, content, stop_reason: 'end_turn', usage }))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const events = [
      { type: 'message_start', message: { ...message, content: [], usage } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: lastUsage },
      { type: 'message_stop' },
    ]
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
  })
  const { origin, close } = await listen(server)
  const vendor: MessagesVendor = {
    origin,
    usage: {},
    lastUsage: {},
    close,
  }
  return vendor
}
