import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { listen } from '../../support/listen.ts'

/** A call as the stand-in got it. */
export interface StandInCall {
  /** The bearer token. */
  readonly key: string
  /** The vendor's id of the model. */
  readonly model: string
}

/** How it answers a call. */
export interface StandInAnswer {
  /** Default 200; `reset` breaks the connection without an answer. */
  readonly status?: number | 'reset'
  readonly retryAfterSeconds?: number
  /** Member `code` of an error. */
  readonly code?: string
  readonly delayMs?: number
  /** A stream that breaks after its first content. */
  readonly breaksOff?: boolean
  /** A stream that stops after its first content, and stays open. */
  readonly stops?: boolean
}

/** Vendor of OpenAI's dialect on a real socket, with configurable answers, which counts its calls. */
export interface StandInVendor {
  /** `http://127.0.0.1:…/v1` */
  readonly baseURL: string
  readonly calls: StandInCall[]
  /** Calls whose caller disconnected before the answer. */
  abandoned: number
  answer: (call: StandInCall) => StandInAnswer
  close(): Promise<void>
}

/** Starts one that answers everything with 200. */
export async function standInVendor(answer: StandInVendor['answer'] = () => ({})): Promise<StandInVendor> {
  const server = createServer((request, response) => void respond(vendor, request, response))
  const { origin, close } = await listen(server)
  const vendor: StandInVendor = {
    baseURL: `${origin}/v1`,
    calls: [],
    abandoned: 0,
    answer,
    close,
  }
  return vendor
}

async function respond(vendor: StandInVendor, request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  const { model, stream } = JSON.parse(text) as { model: string; stream?: boolean }
  const call = { key: request.headers.authorization?.replace('Bearer ', '') ?? '', model }
  vendor.calls.push(call)
  const { status = 200, retryAfterSeconds, code, delayMs, breaksOff, stops } = vendor.answer(call)
  response.once('close', () => {
    if (!response.writableEnded && status !== 'reset' && breaksOff !== true) vendor.abandoned += 1
  })
  if (delayMs !== undefined) await wait(delayMs)
  if (status === 'reset') return void request.socket.destroy()
  if (status !== 200) {
    const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    return void response.end(JSON.stringify({ error: { message: 'no', type: 'error', code: code ?? null } }))
  }
  if (stream === true) return void streamTo(response, model, { breaksOff: breaksOff === true, stops: stops === true })
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(completionOf(model)))
}

const HEAD = { id: 'chatcmpl-1', created: 1 }
const USAGE = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }

function completionOf(model: string): object {
  const message = { role: 'assistant', content: 'hello' }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  return { ...HEAD, object: 'chat.completion', model, choices, usage: USAGE }
}

function streamTo(
  response: ServerResponse,
  model: string,
  { breaksOff, stops }: { readonly breaksOff: boolean; readonly stops: boolean },
): void {
  const event = (rest: object): string =>
    `data: ${JSON.stringify({ ...HEAD, object: 'chat.completion.chunk', model, ...rest })}\n\n`
  const content = { choices: [{ index: 0, delta: { role: 'assistant', content: 'hello' }, finish_reason: null }] }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(event(content), () => {
    if (breaksOff) return void response.destroy()
    if (stops) return
    response.write(event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }))
    response.end(`${event({ choices: [], usage: USAGE })}data: [DONE]\n\n`)
  })
}
